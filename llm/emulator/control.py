"""The control interface under `/_control/`: scripting, faults, log, pace and clock. Loopback only."""

import ipaddress
import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from llm.emulator.faults import Fault
from llm.emulator.models import EmulatedModel
from llm.emulator.scripting import Match
from llm.emulator.state import EmulatorState, Pace, ScriptedAnswer
from maxclaw import clock

Handler = Callable[[dict[str, Any]], Any]
LOOPBACK_NAMES = ("localhost", "testserver")


def control_routes(state: EmulatorState) -> list[Route]:
    """The routes, without their common prefix. Every POST takes one JSON object and answers with one."""

    def queue_answers(said: dict[str, Any]) -> dict[str, Any]:
        wanted = [
            (ScriptedAnswer.from_dict(one["answer"]), Match.from_dict(one.get("match")), one.get("times", 1))
            for one in said["answers"]
        ]
        for answer, match, times in wanted:
            state.answers.add(answer, match, times)
        return {"waiting": len(state.answers)}

    def queue_fault(said: dict[str, Any]) -> dict[str, Any]:
        match = Match.from_dict(said.get("match"))
        state.faults.add(Fault.from_dict(said["fault"]), match, said.get("times", 1))
        return {"waiting": len(state.faults)}

    def set_pace(said: dict[str, Any]) -> dict[str, Any]:
        state.pace = Pace.parse(said["pace"])
        return {}

    def release(said: dict[str, Any]) -> dict[str, Any]:
        return {"released": state.holds.release(said.get("name"))}

    def move_clock(said: dict[str, Any]) -> dict[str, Any]:
        clock.move(float(said["seconds"]))
        return {"now": clock.now().isoformat()}

    def register_model(said: dict[str, Any]) -> dict[str, Any]:
        model = EmulatedModel.from_dict(said)
        state.models[model.id] = model
        return model.as_dict()

    def change_settings(said: dict[str, Any]) -> dict[str, Any]:
        state.log.keeps_bodies = said.get("bodies", state.log.keeps_bodies)
        state.log.limit = said.get("log_limit", state.log.limit)
        state.demo_faults = said.get("demo_faults", state.demo_faults)
        state.allow_leading_assistant = said.get("allow_leading_assistant", state.allow_leading_assistant)
        return {}

    def reset(said: dict[str, Any]) -> dict[str, Any]:
        state.reset()
        return {}

    async def show_requests(request: Request) -> Response:
        guard = refuse_strangers(request)
        if guard:
            return guard
        bodies = request.query_params.get("bodies", "1") == "1"
        since = int(request.query_params.get("since", "0"))
        entries = state.log.entries(since)
        return JSONResponse({"requests": [entry.as_dict(bodies=bodies) for entry in entries]})

    async def show_state(request: Request) -> Response:
        guard = refuse_strangers(request)
        if guard:
            return guard
        return JSONResponse(
            {
                "answers_waiting": len(state.answers),
                "faults_waiting": len(state.faults),
                "held": state.holds.names(),
                "requests": state.log.count,
                "cache_entries": len(state.cache),
                "now": clock.now().isoformat(),
            }
        )

    posts: dict[str, Handler] = {
        "/answers": queue_answers,
        "/faults": queue_fault,
        "/pace": set_pace,
        "/release": release,
        "/clock": move_clock,
        "/models": register_model,
        "/settings": change_settings,
        "/reset": reset,
    }
    routes = [Route(path, _posted(handler), methods=["POST"]) for path, handler in posts.items()]
    return [*routes, Route("/requests", show_requests), Route("/state", show_state)]


def _posted(handler: Handler) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        guard = refuse_strangers(request)
        if guard:
            return guard
        try:
            said = json.loads(await request.body() or b"{}")
            return JSONResponse(handler(said))
        except KeyError as error:
            return JSONResponse({"error": f"missing: {error.args[0]}"}, 400)
        except (TypeError, ValueError, AttributeError) as error:
            return JSONResponse({"error": str(error)}, 400)

    return endpoint


def refuse_strangers(request: Request) -> Response | None:
    """An answer of 403 for whoever is not on this machine or is a web page, else None."""
    client = request.client.host if request.client else ""
    host = request.url.hostname or ""
    if _is_loopback(client) and _is_loopback(host) and "origin" not in request.headers:
        return None
    return JSONResponse({"error": "the control interface answers programs on this machine alone"}, 403)


def _is_loopback(name: str) -> bool:
    if name in LOOPBACK_NAMES:
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
