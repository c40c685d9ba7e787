"""What makes an imported message the same one in every later import."""

import base64
from hashlib import blake2b
from typing import Any

from llm.wire import canonical
from maxclaw.text import visible_json

DIGEST_BYTES = 16


def digest_of(said: list[Any]) -> bytes:
    """A digest of what identifies a message: the kind of its identity first, then its parts."""
    return blake2b(canonical(visible_json(said)).encode(), digest_size=DIGEST_BYTES).digest()


def key_of(digest: bytes) -> str:
    """The digest as it stands in `Message.meta["import"]["key"]`: letters, digits, `-` and `_`."""
    return base64.urlsafe_b64encode(digest).decode().rstrip("=")
