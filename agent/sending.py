"""The one way in for the user's words: page, API and tools alike. Every send is an InboxItem first."""

import json
from typing import Any

from django.db import connection, transaction
from django.utils.translation import gettext as _

from accounts.models import User
from agent import questions, quoting, speaking
from agent.events import emit_all
from agent.models import InboxItem, Level
from agent.projection import item_view
from agent.refusals import Refused
from threads.models import Thread

CLIENT_KEY_MAX_CHARS = 100


def send(user: User, channel: str, text: Any, *, client_key: str, quote: quoting.Quote | None = None) -> InboxItem:
    """Store the user's words for the thread's next safe point and wake whoever runs turns.

    `client_key` (1 to 100 characters) makes a repeated send the same send: the first one's item comes back. While a
    question card is open the words are its answer. `quote` is a frozen one (see `agent.quoting`), which the caller
    checked in this transaction. Raises Refused (nothing stored) for an unknown thread, an empty or oversized text, an
    archived thread, a key that was used for other words, or a quote where an answer is waited for.
    """
    text = speaking.checked_text(text)
    check_key(client_key)
    with transaction.atomic():
        return store(speaking.locked_open_thread(user, channel), text, client_key, quote)


def store(thread: Thread, text: str, client_key: str, quote: quoting.Quote | None) -> InboxItem:
    """The same for checked words in a thread that takes words and that this transaction locked."""
    speaking.check_size(text if quote is None else f"{quoting.note(quote)}{text}", thread)
    item = InboxItem(
        thread=thread,
        owner_id=thread.owner_id,
        level=Level.USER,
        text=text,
        quote=quote,
        client_key=client_key,
    )
    if thread.state == Thread.State.WAITING:
        said = InboxItem.objects.filter(thread=thread, client_key=client_key).first()
        if said is None and quote is not None and questions.open_questions(thread).exists():
            raise Refused(
                "question-open", _("A question waits for your answer here. Answer it first, then send the quote.")
            )
        if said is None and questions.take_words_as_answer(thread, item):
            return item
    if not _insert(item):
        return _said_before(item)
    emit_all(thread.pk, thread.owner_id, [("queued", {"item": item_view(item)})], wake=True)
    speaking.after_speaking(thread)
    return item


def check_key(client_key: Any) -> None:
    """Raise Refused for what cannot make a repeated send the same send."""
    if not isinstance(client_key, str) or not 0 < len(client_key) <= CLIENT_KEY_MAX_CHARS:
        raise Refused("bad-key", _("A message needs a key of 1 to 100 characters."))


def said_before(thread: Thread, client_key: str, text: str, pointer: quoting.Quote | None) -> InboxItem | None:
    """What was sent with this key already. Raises Refused when that had other words, or quoted something else."""
    repeated = InboxItem.objects.filter(thread_id=thread.pk, client_key=client_key).first()
    if repeated is not None and (repeated.text != text or quoting.pointer_of(repeated.quote) != pointer):
        raise Refused("key-reused", _("This key was already used for another message. Send it with a new key."))
    return repeated


def _insert(item: InboxItem) -> bool:
    """Insert, unless its key was used in the thread before. One statement for the usual case."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO agent_inboxitem (thread_id, owner_id, level, source, text, quote, client_key, state, created)
            VALUES (%s, %s, %s, %s, %s, %s::jsonb, %s, %s, %s)
            ON CONFLICT (thread_id, client_key) DO NOTHING RETURNING id
            """,
            [
                item.thread_id,
                item.owner_id,
                item.level,
                item.source,
                item.text,
                None if item.quote is None else json.dumps(item.quote),
                item.client_key,
                item.state,
                item.created,
            ],
        )
        row = cursor.fetchone()
    if row is not None:
        item.pk = row[0]
        item._state.adding = False
    return row is not None


def _said_before(item: InboxItem) -> InboxItem:
    repeated = said_before(item.thread, item.client_key or "", item.text, quoting.pointer_of(item.quote))
    assert repeated is not None  # its insert met it, and nothing deletes single items
    return repeated
