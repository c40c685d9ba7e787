"""Everything a running emulator holds: models, cache, queues, log and settings."""

from dataclasses import dataclass, field
from typing import Any

from llm.emulator.answers import Answer, block_from
from llm.emulator.caching import PromptCache
from llm.emulator.faults import Fault
from llm.emulator.models import EmulatedModel, built_in_models
from llm.emulator.request_log import Holds, RequestLog
from llm.emulator.scripting import Queue

ANSWER_KEYS = frozenset({"blocks", "stop_reason", "stop_sequence", "pace", "hold"})


@dataclass(frozen=True)
class Pace:
    """How fast answers come: milliseconds to the first token, then tokens a second (None: all at once)."""

    first_token_ms: float = 0.0
    tokens_per_second: float | None = None

    @classmethod
    def parse(cls, said: Any) -> "Pace":
        """From `instant`, `realistic`, `MS:TOKENS_PER_SECOND` or an object with this class's fields.

        Raises ValueError for anything else.
        """
        if isinstance(said, str) and said in PACES:
            return PACES[said]
        if isinstance(said, dict) and said.keys() <= {"first_token_ms", "tokens_per_second"}:
            return cls(**said)
        if isinstance(said, str) and said.count(":") == 1:
            first, _, rate = said.partition(":")
            return cls(float(first), float(rate) if rate else None)
        raise ValueError("a pace is instant, realistic or MS:TOKENS_PER_SECOND")


PACES: dict[str, Pace] = {"instant": Pace(), "realistic": Pace(400.0, 80.0)}


@dataclass(frozen=True)
class ScriptedAnswer:
    """An answer in the form that scripts use (see `answers.block_from`), built anew for each request that
    takes it.
    """

    blocks: tuple[Any, ...]
    stop_reason: str | None = None
    stop_sequence: str | None = None
    pace: Pace | None = None
    hold: str | None = None

    @classmethod
    def from_dict(cls, said: dict[str, Any]) -> "ScriptedAnswer":
        """Raises ValueError that says what is wrong."""
        unknown = set(said) - ANSWER_KEYS
        if unknown:
            raise ValueError(f"unknown answer settings: {', '.join(sorted(unknown))}")
        pace = Pace.parse(said["pace"]) if said.get("pace") is not None else None
        blocks = tuple(said.get("blocks") or ())
        answer = cls(blocks, said.get("stop_reason"), said.get("stop_sequence"), pace, said.get("hold"))
        answer.build()
        return answer

    def build(self) -> Answer:
        return Answer(
            [block_from(block) for block in self.blocks],
            stop_reason=self.stop_reason,
            stop_sequence=self.stop_sequence,
            pace=self.pace,
            hold=self.hold,
        )


@dataclass
class EmulatorState:
    """One emulator. `demo_faults`: whether `fault:...` in a user's text switches a fault on."""

    pace: Pace = field(default_factory=Pace)
    demo_faults: bool = False
    allow_leading_assistant: bool = False
    models: dict[str, EmulatedModel] = field(default_factory=built_in_models)
    cache: PromptCache = field(default_factory=PromptCache)
    answers: Queue[ScriptedAnswer] = field(default_factory=Queue)
    faults: Queue[Fault] = field(default_factory=Queue)
    log: RequestLog = field(default_factory=RequestLog)
    holds: Holds = field(default_factory=Holds)

    def reset(self) -> None:
        """Back to a fresh emulator, but for pace, clock and settings. Whatever was held goes on."""
        self.holds.release()
        self.answers.clear()
        self.faults.clear()
        self.log.clear()
        self.cache.clear()
        self.models = built_in_models()
