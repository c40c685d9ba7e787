"""Static files of an asynchronous server: sent whole, a piece at a time, and without a word of complaint."""

import warnings
from pathlib import Path

from asgiref.sync import async_to_sync
from asgiref.testing import ApplicationCommunicator
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.asgi import get_asgi_application
from django.test import Client

from maxclaw.static_files import PIECE_BYTES


async def fetched(path):
    """The status of one GET, and the pieces of its body."""
    scope = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": [(b"host", b"localhost")]}
    application = ApplicationCommunicator(get_asgi_application(), scope)
    await application.send_input({"type": "http.request"})
    start = await application.receive_output(60)
    pieces, more = [], True
    while more:
        message = await application.receive_output(60)
        pieces.append(message.get("body", b""))
        more = message.get("more_body", False)
    await application.wait(60)
    return start["status"], pieces


def test_a_static_file_is_sent_a_piece_at_a_time():
    content = Path(finders.find("unfold/css/styles.css")).read_bytes()
    assert len(content) > 2 * PIECE_BYTES, "else this proves nothing"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        status, pieces = async_to_sync(fetched)("/static/unfold/css/styles.css")
    assert status == 200
    assert b"".join(pieces) == content
    assert max(map(len, pieces)) == PIECE_BYTES


def test_a_static_file_is_sent_by_a_server_that_waits_too():
    content = Path(finders.find("chat/alerts.js")).read_bytes()
    assert Client().get("/static/chat/alerts.js").getvalue() == content


def test_scripts_of_ours_stay_short():
    """As Python's do, which the linter sees to."""
    for file in (settings.BASE_DIR / "static").rglob("*.js"):
        lines = file.read_text().split("\n")
        assert max(map(len, lines)) <= 120, file
        assert len(lines) <= 420, file
