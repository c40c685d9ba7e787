"""What each frame asks for, one synchronous unit of database work each, for a user whose session was just
checked.

The registry is what a test walks as a stranger: a new type of frame is covered by being in it.
"""

from collections.abc import Callable
from typing import Any

from accounts.models import User
from agent.questions import answer_question
from agent.stopping import stop
from chat import replay
from chat.frames import Frame
from quotes import ingress

Action = Callable[[User, Frame], Any]


def _open(user: User, frame: Frame) -> tuple[int, replay.Next]:
    return replay.open_thread(user, frame["channel"], frame["after"])


def _send(user: User, frame: Frame) -> None:
    ingress.send(
        user,
        frame["channel"],
        frame["text"],
        client_key=frame["key"],
        quote=frame["quote"],
        confirmed=frame["confirmed"],
        confirm_text=frame["confirm_text"],
    )


def _stop(user: User, frame: Frame) -> None:
    stop(user, frame["channel"], frame["frame"])


def _answer(user: User, frame: Frame) -> None:
    answer_question(user, frame["channel"], frame["call"], frame["text"])


def _earlier(user: User, frame: Frame) -> dict[str, Any]:
    return replay.earlier_messages(user, frame["channel"], frame["before"])


def _later(user: User, frame: Frame) -> dict[str, Any]:
    return replay.later_messages(user, frame["channel"], frame["since"])


# "close" and "ping" touch nothing of anybody's and have no action.
ACTIONS: dict[str, Action] = {
    "open": _open,
    "send": _send,
    "stop": _stop,
    "answer": _answer,
    "earlier": _earlier,
    "later": _later,
}
