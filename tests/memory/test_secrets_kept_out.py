"""Secrets of every shape are kept out of what is remembered: no writer puts one into a fact, and one that is in a row
all the same reaches neither an embedding model nor an export."""

import json

import pytest
from django.urls import reverse

from accounts import erasing
from llm.catalog_entries import ALL
from memory import changing, embedding_work, fact_embedding, legacy_import, query_vectors, writing
from memory.fact_drafts import FactDraft
from memory.models import Fact, FactLog
from memory.refusals import FactRefused
from tests.accounts.test_erasing import places_with
from tests.memory.facts import about_user, fact_row, remember, stated
from tests.shadow.records import proposal_row, run_row
from tests.threads.records import call_tool, exchange, give_result, say, thread_of
from threads.models import Message

pytestmark = pytest.mark.django_db

CORE = "Zq7hV3kP9xW2"
LINES = "\n".join(f"MIIE{CORE}{number:02}vQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQDa" for number in range(30))
# By shape: the words, and what of them is never to be seen.
SHAPES = {
    "API key": (f"sk-ant-api03-{CORE}{CORE}", CORE),
    "bearer token": (f"Authorization: Bearer {CORE}.{CORE}", CORE),
    "private key": (f"-----BEGIN RSA PRIVATE KEY-----\n{LINES}\n-----END RSA PRIVATE KEY-----", CORE),
    "password in a URL": (f"https://alice:{CORE}@example.org/inbox", CORE),
    "password in a DSN": (f"host=db.example.org user=alice password={CORE} dbname=orders", CORE),
    "webhook URL": (f"https://hooks.slack.com/services/T0/B0/{CORE}", CORE),
    "cookie": (f"Cookie: theme=dark; sessionid={CORE}", CORE),
    "card number": ("4111 1111 1111 1111", "1111 1111"),
}
of_every_shape = pytest.mark.parametrize(("secret", "core"), SHAPES.values(), ids=SHAPES)


class Backend:
    """Keeps what it is sent."""

    name, max_chars, categories = "kept", 1_000, ALL

    def __init__(self):
        self.seen = ""

    def embed(self, texts):
        self.seen += "\n".join(texts)
        return [[1.0, 0.0] for _text in texts]


@of_every_shape
def test_no_writer_puts_a_secret_into_a_fact(alice, client, secret, core):
    said = say(thread_of(alice), Message.Role.USER, f"Remember mine: {secret}")
    short = secret[:600]  # as long as a fact may be
    fact = remember(said, "Has an account there.", aspect="fact").fact
    for changed in ({"text": f"Has {short}"}, {"applies_to": short[:200]}, {"project": short[:200]}):
        draft = FactDraft(**({"text": "Has one.", "kind": "about-user", "aspect": "fact"} | changed))
        for writer in Fact.Writer.values:
            with pytest.raises(FactRefused, match="Secrets are not remembered"):
                writing.write_fact(alice.pk, draft, [stated(said)], writer=writer, thread=said.thread)
        with pytest.raises(FactRefused, match="Secrets are not remembered"):
            changing.correct(fact, draft, reason="", writer="person", actor=alice)
        line = json.dumps({"text": draft.text, "applies_to": draft.applies_to, "project": draft.project})
        problems = []
        report = legacy_import.import_facts(
            alice, [line.encode()], on_problem=lambda _number, why, told=problems: told.append(why)
        )
        assert (report.broken, report.added) == (1, 0)
        assert core not in "".join(problems)
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    typed = {"text": f"Has {short}", "applies_to": "", "tone": "remark"}
    assert client.post(reverse("memory-correct", args=[fact.pk]), typed).status_code == 400
    changing.retire(fact, reason=f"It was {short}", writer="person", actor=alice)
    assert {place.split(".")[0] for place in places_with(core)} == {"threads_message"}, "where it was said"


@of_every_shape
def test_a_secret_in_a_row_reaches_neither_an_embedding_model_nor_an_export_of_memory(alice, client, secret, core):
    """A row of before the shape was known, or of whoever wrote past the one entry."""
    thread = thread_of(alice)
    said, _answer = exchange(thread, "Hello.")
    short = secret[:150]
    fields = {"applies_to": short, "project": short, "why": secret, "graduated_rule": short}
    fact_row(alice, said, f"Uses {secret}\nevery day.", **fields)
    FactLog.objects.create(owner=alice, writer="person", action="retire", reason=f"Had {secret}")
    words = {"validation_error": f"Has {secret}", "raw": {"text": [f"Has {secret}"]}}
    proposal_row(said, f"Uses {secret}.", run_row(thread, said.generation, "completed"), applies_to=short, **words)
    backend = Backend()
    assert fact_embedding.embed_facts(backend=backend) == 1
    assert "[redacted]" in backend.seen and "every day." in backend.seen
    assert core not in backend.seen
    client.force_login(alice, backend="django.contrib.auth.backends.ModelBackend")
    downloaded = b"".join(client.post(reverse("memory-export"))).decode()
    assert '"record": "fact"' in downloaded and "[redacted]" in downloaded
    assert core not in downloaded
    exported = [json.dumps(record, ensure_ascii=False) for record in erasing.export_user(alice)]
    kinds = {json.loads(record)["record"] for record in exported}
    assert kinds >= {"fact", "memory_log", "shadow_proposal"}
    assert [record for record in exported if core in record] == []


@of_every_shape
def test_no_chunk_of_what_was_said_shows_a_secret_that_is_cut_in_two(alice, secret, core):
    """Whether a person says it or a tool answers it, wherever the cut goes through."""
    thread = thread_of(alice)
    call_tool(thread)
    before = "word " * 196  # a chunk ends within the secret
    give_result(thread, text=f"{'filling ' * 3_000} {secret}\n{'and ' * 60}")
    for shift in range(0, 40, 8):
        say(thread, Message.Role.USER, f"{before}{'x' * shift} {secret}\n{'after ' * 40}")
    backend = Backend()
    embedding_work.embed_some(thread.pk, backend)
    assert "filling" in backend.seen and "after" in backend.seen
    assert "[redacted]" in backend.seen
    assert core not in backend.seen
    for shift in range(0, 40, 8):
        asked = query_vectors.pieces(f"{before}{'x' * shift} {secret} and more")
        assert core not in "".join(asked)


def test_a_fact_that_only_speaks_of_a_secret_is_remembered(alice):
    said = say(thread_of(alice), Message.Role.USER, "I keep my password in the vault.")
    written = writing.write_fact(
        alice.pk, about_user("Keeps passwords in a vault."), [stated(said)], writer="steward", thread=said.thread
    )
    assert written.fact.text == "Keeps passwords in a vault."
