"""Logs say who and which, never what was said: not even when the database refuses a row and quotes it."""

import logging

import pytest
from django.db import IntegrityError, connection, transaction

from maxclaw.logs import logging_settings, without_rows
from tests.threads.records import say, thread_of
from threads.models import Message

WORDS = "words-2b7e"


def formatter(log_format):
    options = dict(logging_settings(log_format, "INFO")["formatters"]["structured"])
    return options.pop("()")(**options)


def refused(thread):
    """A row with words in it that the database refuses and quotes."""
    message = say(thread, Message.Role.USER, WORDS)
    with pytest.raises(IntegrityError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(
            "UPDATE threads_message SET text = %s, left_at_cut = 1, left_because = '' WHERE id = %s",
            [f"{WORDS}\n{WORDS} second line", message.pk],
        )
    assert WORDS in str(caught.value), "else this proves nothing"
    return caught.value


@pytest.mark.django_db
@pytest.mark.parametrize("log_format", ["console", "json"])
def test_a_refused_row_is_not_quoted(alice, log_format):
    error = refused(thread_of(alice))
    record = logging.LogRecord(
        "chat", logging.ERROR, __file__, 1, "It failed.", (), (type(error), error, error.__traceback__)
    )
    line = formatter(log_format).format(record)
    assert "message_left_says_why" in line
    assert "Traceback" in line
    assert WORDS not in line


def test_a_quoted_row_ends_where_the_next_exception_is_told():
    text = "IntegrityError: refused\nDETAIL:  Failing row (1, a\n\nThe b).\n\nThe above exception was the cause"
    assert without_rows(text) == "IntegrityError: refused\nDETAIL: (left out)\nThe above exception was the cause"


def test_what_follows_a_quoted_row_stays():
    text = "IntegrityError: refused\nDETAIL:  Failing row contains (1, a\n\nb\nc).\nHINT: look\n\nThe above exception"
    assert without_rows(text) == "IntegrityError: refused\nDETAIL: (left out)\nHINT: look\n\nThe above exception"


@pytest.mark.django_db
def test_the_embedded_server_logs_no_statement_and_no_row():
    with connection.cursor() as cursor:
        cursor.execute("SHOW log_error_verbosity")
        if cursor.fetchone()[0] != "terse":
            pytest.skip("this run uses a server that is not the embedded one")
        cursor.execute("SHOW log_min_error_statement")
        assert cursor.fetchone()[0] == "panic"


def test_the_context_of_an_error_is_left_out_like_its_details():
    text = "DataError: bad\nDETAIL: Token x\nCONTEXT:  COPY t, line 1: words\nmore words\nHINT: look"
    assert without_rows(text) == "DataError: bad\nDETAIL: (left out)\nCONTEXT: (left out)\nHINT: look"


@pytest.mark.django_db
def test_the_address_in_the_log_is_the_connections_own_whatever_headers_say(client, caplog):
    client.get("/nowhere/", REMOTE_ADDR="192.0.2.9", headers={"X-Forwarded-For": "203.0.113.1"})
    [told] = [record.msg for record in caplog.records if record.name.startswith("django_structlog")]
    assert told["ip"] == "192.0.2.9"
    assert "203.0.113.1" not in caplog.text


@pytest.mark.django_db
def test_what_stands_in_an_address_is_not_logged_and_its_pattern_is(client, alice, caplog):
    client.force_login(alice)
    for path in (f"/nowhere/{WORDS}/", f"/c/{WORDS}/", f"/api/threads/{WORDS}/", f"/nowhere/字{WORDS}/?q={WORDS}"):
        client.get(path)
    client.put(f"/c/{WORDS}/")
    lines = [formatter("json").format(record) for record in caplog.records]
    said = "\n".join(lines)
    assert len(lines) >= 8 and WORDS not in said
    for pattern in ("GET (an address of no page)", "Not Found: /api/threads/<"):
        assert pattern in said
