"""A small synchronous client of the control interface, for tests and benchmarks."""

import json
import time
from typing import Any

import httpx2

Block = dict[str, Any] | str


def text(words: str, *, pieces: list[str] | None = None) -> Block:
    """A text block; `pieces` are its deltas, exactly."""
    return {"type": "text", "text": words, **({"pieces": pieces} if pieces else {})}


def thinking(words: str) -> Block:
    """A thinking block. It is sent only to requests that have thinking on."""
    return {"type": "thinking", "thinking": words}


def redacted_thinking() -> Block:
    return {"type": "redacted_thinking"}


def tool_use(name: str, arguments: dict[str, Any] | None = None, *, call_id: str | None = None) -> Block:
    """A tool call; its id is made up when none is given."""
    return {
        "type": "tool_use",
        "name": name,
        "input": arguments or {},
        **({"id": call_id} if call_id else {}),
    }


def raw_tool_use(name: str, pieces: list[str], *, call_id: str | None = None) -> Block:
    """A tool call whose JSON text is `pieces`, one delta each, well-formed or not."""
    return {"type": "tool_use", "name": name, "partial_json": pieces, **({"id": call_id} if call_id else {})}


class ControlError(Exception):
    """The emulator refused a control request."""


class EmulatorControl:
    """Scripts a running emulator and reads its log.

    `match` everywhere: {"contains", "any_contains", "model", "tool"}, see scripting.Match. `times`: for how
    many requests, -1 for every one from now on.
    """

    def __init__(self, base_url: str) -> None:
        self.base_url = base_url
        self._http = httpx2.Client(base_url=f"{base_url}/_control", timeout=30.0, trust_env=False)

    def close(self) -> None:
        self._http.close()

    def answer(
        self,
        *blocks: Block,
        stop_reason: str | None = None,
        match: dict[str, str] | None = None,
        times: int = 1,
        pace: Any = None,
        hold: str | None = None,
    ) -> None:
        """Queue one answer. `hold`: it waits before its first byte until `release(hold)`."""
        answer = {"blocks": list(blocks), "stop_reason": stop_reason, "pace": pace, "hold": hold}
        self._post("answers", {"answers": [{"answer": answer, "match": match, "times": times}]})

    def fault(self, kind: str, *, times: int = 1, match: dict[str, str] | None = None, **settings: Any) -> None:
        """Queue one fault; `settings` are the fields of faults.Fault, such as status, after_deltas, seconds,
        name.
        """
        self._post("faults", {"fault": {"kind": kind, **settings}, "times": times, "match": match})

    def requests(self, *, since: int = 0, bodies: bool = True, path: str | None = None) -> list[dict[str, Any]]:
        """Log entries with a number above `since`, oldest first; `body` is the raw text."""
        found = self._get("requests", {"since": since, "bodies": int(bodies)})["requests"]
        return [entry for entry in found if path is None or entry["path"] == path]

    def bodies(self, *, since: int = 0) -> list[Any]:
        """The parsed bodies of the calls of /v1/messages, oldest first."""
        return [json.loads(entry["body"]) for entry in self.requests(since=since, path="/v1/messages")]

    def last_request(self) -> dict[str, Any]:
        """The newest log entry. Raises LookupError when there is none."""
        found = self.requests()
        if not found:
            raise LookupError("the emulator has received no request")
        return found[-1]

    def wait_for_requests(self, count: int, *, seconds: float = 10.0) -> list[dict[str, Any]]:
        """Wait until `count` requests are in the log and have ended. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while True:
            found = self.requests()
            if len(found) >= count and all(entry["outcome"] != "open" for entry in found):
                return found
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(found)} requests: {[entry['outcome'] for entry in found]}")
            time.sleep(0.01)

    def wait_for_held(self, count: int = 1, *, seconds: float = 10.0) -> list[str]:
        """Wait until `count` answers are held or stalled. Returns their names. Raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while True:
            held: list[str] = self.state()["held"]
            if len(held) >= count:
                return held
            if time.monotonic() > deadline:
                raise TimeoutError(f"{len(held)} answers are held, not {count}")
            time.sleep(0.01)

    def release(self, name: str | None = None) -> int:
        """Let held or stalled answers go on, all or those under `name`. Returns how many."""
        return int(self._post("release", {"name": name})["released"])

    def set_pace(self, pace: Any) -> None:
        """`instant`, `realistic`, `MS:TOKENS_PER_SECOND` or {"first_token_ms", "tokens_per_second"}."""
        self._post("pace", {"pace": pace})

    def move_clock(self, seconds: float) -> None:
        """Move the emulator's clock, and with it the lifetimes of its cache."""
        self._post("clock", {"seconds": seconds})

    def register_model(self, model_id: str, **settings: Any) -> dict[str, Any]:
        """Add or replace a model; `settings` are the fields of models.EmulatedModel."""
        return self._post("models", {"id": model_id, **settings})

    def settings(self, **settings: Any) -> None:
        """bodies, log_limit, demo_faults, allow_leading_assistant."""
        self._post("settings", settings)

    def state(self) -> dict[str, Any]:
        """answers_waiting, faults_waiting, held, requests, cache_entries, now."""
        return self._get("state", {})

    def reset(self) -> None:
        """Forget answers, faults, log, cache and added models; release whatever is held."""
        self._post("reset", {})

    def _post(self, path: str, said: dict[str, Any]) -> dict[str, Any]:
        return self._read(self._http.post(f"/{path}", json=said))

    def _get(self, path: str, query: dict[str, int]) -> dict[str, Any]:
        return self._read(self._http.get(f"/{path}", params=query))

    def _read(self, response: httpx2.Response) -> dict[str, Any]:
        said: dict[str, Any] = response.json()
        if response.status_code != 200:
            raise ControlError(said.get("error", response.text))
        return said
