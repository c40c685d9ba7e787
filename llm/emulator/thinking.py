"""Thinking blocks: signed when made, checked when they come back.

A signature binds its block to the model, to every byte before it (thinking and cache markers apart) and to
the thinking block before it. A leading run of thinking may be left out later, one in the middle may not.
"""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from llm.emulator.errors import ApiError
from llm.emulator.models import EmulatedModel

# Fixed, so that signatures outlive a restart of the emulator, as those of the real API outlive one of its
# servers.
_SIGNING_KEY = hashlib.sha256(b"emulated thinking signatures").digest()
_MAC_BYTES = 16

BOUND_ELSEWHERE = (
    "Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the "
    "block, or "
    'set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".'
)
NOT_MODIFIABLE = (
    "`thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These "
    "blocks must "
    "remain as they were in the original response."
)


class Binding:
    """The running digest of everything a thinking block is bound to; pieces are hashed only when one is asked
    for.
    """

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=16)
        self._waiting: list[bytes] = []

    def add(self, piece: bytes) -> None:
        self._waiting.append(piece)

    def digest(self) -> str:
        """The digest of all pieces so far, in hex."""
        update = self._hash.update
        for piece in self._waiting:
            update(b"%d:" % len(piece))
            update(piece)
        self._waiting.clear()
        return self._hash.hexdigest()


@dataclass(frozen=True)
class Seal:
    """What a signature says: identity, model, response, place among that response's thinking, predecessor,
    binding.
    """

    identity: str
    model: str
    response: str
    ordinal: int
    predecessor: str | None
    binding: str
    text_digest: str | None


@dataclass
class ThinkingChain:
    """The thinking kept so far, in one request and on into its answer."""

    last: Seal | None = None

    def sign(self, text: str, *, model: str, response: str, ordinal: int, binding: str, omitted: bool) -> str:
        """The signature of a new block, which becomes the last of the chain."""
        payload = json.dumps(
            {
                "m": model,
                "r": response,
                "o": ordinal,
                "p": self.last.identity if self.last else None,
                "b": binding,
                "t": None if omitted else _digest(text),
            },
            separators=(",", ":"),
        ).encode()
        signature = base64.b64encode(_mac(payload) + payload).decode()
        self.last = read_seal(signature)
        return signature

    def keep(
        self,
        block: Mapping[str, Any],
        path: str,
        model: EmulatedModel,
        binding: Binding,
        *,
        latest: bool,
        drop_mismatched: bool,
    ) -> str | None:
        """Why a block that came back leaves the prompt: model_ or prefix_binding_mismatch; None when it
        stays.

        One that another model made leaves silently. Raises ApiError for one that was edited, forged or moved.
        `latest`: the block is in the latest assistant turn.
        """
        kind = block["type"]
        field = "signature" if kind == "thinking" else "data"
        seal = read_seal(block[field])
        if seal is None:
            raise ApiError(f"{path}: Invalid `{field}` in `{kind}` block")
        if seal.model != model.id:
            return "model_binding_mismatch"
        if kind == "thinking" and seal.text_digest not in (None, _digest(block["thinking"])):
            raise ApiError(
                f"{path}: {NOT_MODIFIABLE}" if latest else f"{path}: Invalid `signature` in `thinking` block"
            )
        follows = self.last.identity if self.last else None
        siblings = self.last is not None and self.last.response == seal.response
        if latest and seal.ordinal > 0 and not siblings:
            raise ApiError(f"{path}: {NOT_MODIFIABLE}")
        if model.thinking_bound:
            broken = follows is not None and seal.predecessor != follows
            if broken or seal.binding != binding.digest():
                if drop_mismatched:
                    return "prefix_binding_mismatch"
                raise ApiError(f"{path}: {BOUND_ELSEWHERE}")
        self.last = seal
        return None


def read_seal(signature: str) -> Seal | None:
    """What `signature` says, or None when it was not made here."""
    try:
        raw = base64.b64decode(signature, validate=True)
    except (binascii.Error, ValueError):
        return None
    mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
    if not payload or not hmac.compare_digest(mac, _mac(payload)):
        return None
    said = json.loads(payload)
    return Seal(mac.hex(), said["m"], said["r"], said["o"], said["p"], said["b"], said["t"])


def _mac(payload: bytes) -> bytes:
    return hmac.digest(_SIGNING_KEY, payload, "sha256")[:_MAC_BYTES]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
