"""One line of a JSON-lines import: what it must hold, and a sentence about each line that does not.

| key | meaning |
|---|---|
| `conversation` | which conversation the line belongs to: any stable id (text or a whole number, 1 to 200 characters) |
| `role` | `user`, `assistant` or `tool` (the output of a tool, without the call that asked for it) |
| `text` | what was said |
| `created` | when: ISO 8601, of the years 2 to 9998; a time without an offset is UTC |
| `id` | optional: a stable id of the message, unique in its conversation |
| `name` | optional: who said it, for a conversation of several people |
| `title` | optional: the conversation's title; the first one counts |

Other keys are left alone.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from accounts.days import moment_of
from agent.import_keys import digest_of
from agent.import_rows import orphan_output_wire
from llm.wire import canonical
from maxclaw.sentences import Told
from maxclaw.sentences import sentence as _
from maxclaw.text import head, is_blank, visible
from threads.models import Message
from threads.transcript import text_block

ID_MAX_CHARS = 200
NAME_MAX_CHARS = 100
SHOWN_MAX_CHARS = 40  # of a wrong value, in the sentence about it

ROLES = {"user": Message.Role.USER, "assistant": Message.Role.ASSISTANT, "tool": Message.Role.TOOL}


class BrokenLine(Told, ValueError):
    """A line that cannot be imported. The text says why, as the rest of a sentence that begins with its number."""


@dataclass(frozen=True)
class ImportLine:
    """A message as its line gives it. `text` is what the record holds: its words, after the speaker's name where one
    is given, so that a person and a model can tell who speaks."""

    conversation: str
    role: Message.Role
    text: str
    created: datetime
    id: str = ""
    name: str = ""
    title: str = ""

    @property
    def words(self) -> str:
        """What was said, without the speaker's name."""
        return self.text.removeprefix(f"{self.name}: ") if self.name else self.text

    @property
    def wire(self) -> str:
        """The content blocks that a model reads."""
        if self.role == Message.Role.TOOL:
            return orphan_output_wire(self.text)
        return canonical([text_block(self.text)])

    @property
    def digest(self) -> bytes:
        """What makes the message the same one in every later import: its own id, else all that it says."""
        if self.id:
            said = ["id", self.conversation, self.id]
        else:
            said = ["line", self.conversation, self.role.value, self.created.isoformat(), self.text]
        return digest_of(said)


def parse_line(raw: bytes) -> ImportLine:
    """The message in one line. Raises BrokenLine."""
    record = _record_in(raw)
    conversation = _identifier(record, "conversation")
    if not conversation:
        raise BrokenLine(_("“%(key)s” is missing.") % {"key": "conversation"})
    role = ROLES.get(_words(record, "role"))
    if role is None:
        raise BrokenLine(
            _("The role %(role)s is unknown; known are %(known)s.")
            % {"role": _shown(record.get("role")), "known": ", ".join(ROLES)}
        )
    text = _words(record, "text")
    if is_blank(text):
        raise BrokenLine(_("The text is empty."))
    name = head(" ".join(_words(record, "name").split()), NAME_MAX_CHARS)
    return ImportLine(
        conversation=conversation,
        role=role,
        text=f"{name}: {text}" if name else text,
        created=_moment(record),
        id=_identifier(record, "id"),
        name=name,
        title=_words(record, "title"),
    )


def _record_in(raw: bytes) -> Mapping[str, Any]:
    try:
        record = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise BrokenLine(_("It is not UTF-8 text.")) from None
    except json.JSONDecodeError as error:
        raise BrokenLine(
            _("It is not JSON: %(why)s at character %(place)s.") % {"why": error.msg, "place": error.colno}
        ) from None
    except (RecursionError, ValueError):
        # Nested too deeply, or a number with thousands of digits.
        raise BrokenLine(_("It is JSON that nobody can read.")) from None
    if not isinstance(record, dict):
        raise BrokenLine(_("It is not a JSON object."))
    return record


def _words(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise BrokenLine(_("“%(key)s” must be text, not %(value)s.") % {"key": key, "value": _shown(value)})
    return visible(value)


def _identifier(record: Mapping[str, Any], key: str) -> str:
    value = record.get(key)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    identifier = _words({key: value}, key)
    if len(identifier) > ID_MAX_CHARS:
        raise BrokenLine(
            _("“%(key)s” has %(count)s characters; at most %(limit)s are taken.")
            % {"key": key, "count": f"{len(identifier):,}", "limit": ID_MAX_CHARS}
        )
    return identifier


def _moment(record: Mapping[str, Any]) -> datetime:
    raw = record.get("created")
    if not raw:
        raise BrokenLine(_("“%(key)s” is missing.") % {"key": "created"})
    try:
        return moment_of(_words(record, "created"))
    except ValueError:
        raise BrokenLine(
            _("“created” must be a time such as 2024-05-31T09:30:00Z, not %(value)s.") % {"value": _shown(raw)}
        ) from None


def _shown(value: Any) -> str:
    text = visible(json.dumps(value, ensure_ascii=False))
    return text if len(text) <= SHOWN_MAX_CHARS else f"{head(text, SHOWN_MAX_CHARS)}…"
