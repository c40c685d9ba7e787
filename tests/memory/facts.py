"""Records for tests of facts: tool calls with results that the product would have written, and facts by hand."""

from django.db import connection, transaction

from agent.models import ToolCall
from agent.registry import Tool as RegisteredTool
from agent.registry import ToolOutput, register, unregister
from memory import writing
from memory.claims import parse
from memory.fact_drafts import FactDraft, fingerprint_of
from memory.models import Fact, FactEvidence
from tests.threads.records import call_tool, give_result


def tool_result(thread, tool="look", text="found", status="done", call_id="toolu_1", is_error=False):
    """A result row with its call, of a tool of this name."""
    asked = call_tool(thread, call_id)
    result = give_result(thread, call_id, text, is_error=is_error)
    ToolCall.objects.create(
        message=asked, thread=thread, owner_id=thread.owner_id, call_id=call_id, tool=tool, status=status, result=result
    )
    return result


class reading_tool:
    """A tool that only reads, registered for the length of a block."""

    def __init__(self, name="look", answers=lambda *_: ToolOutput("found")):
        self.name, self.answers = name, answers

    def __enter__(self):
        register(RegisteredTool(self.name, "Look.", {"type": "object"}, self.answers, reads_only=True))

    def __exit__(self, *_error):
        unregister(self.name)


def stated(message):
    return parse({"kind": "max-stated", "message_id": message.pk})


def about_user(text="Prefers tea.", aspect="preference", **options):
    return FactDraft(text=text, kind="about-user", aspect=aspect, **options)


def remember(message, text="Prefers tea.", *, writer="steward", thread=None, replaces=None, viewer=None, **options):
    """Write a fact about the person, proved by a message of theirs, at the level of its thread."""
    return writing.write_fact(
        message.owner_id,
        about_user(text, **options),
        [stated(message)],
        writer=writer,
        thread=thread or message.thread,
        replaces=replaces,
        viewer=viewer,
    )


def fact_row(owner, message=None, text="Prefers tea.", **fields):
    """A fact as plain rows, unchecked, with one piece of evidence where a message is given."""
    values = {"kind": "about-user", "aspect": "fact", "writer": "steward"} | fields
    with transaction.atomic():
        fact = Fact.objects.create(owner=owner, text=text, fingerprint=fingerprint_of(text), **values)
        if message is not None:
            FactEvidence.objects.create(fact=fact, owner=owner, kind="max-stated", message=message)
    return fact


def many_facts(owner, count):
    """So many facts of an owner's, as imported ones are: without evidence."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO memory_fact (owner_id, text, kind, aspect, applies_to, tone, project, scope, category, status,
                                     writer, legacy, graduated_rule, graduated_commit, why, fingerprint,
                                     embedding_model, created, changed)
            SELECT %s, 'Fact number ' || place, 'about-user', 'fact', '', 'remark', '', 'open', '', 'active', 'import',
                   true, '', '', '', 'f', '', now(), now()
            FROM generate_series(1, %s) AS place
            """,
            [owner.pk, count],
        )
        cursor.execute("ANALYZE memory_fact")
