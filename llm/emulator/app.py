"""The emulator's routes."""

import json

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from llm.emulator.answers import new_id
from llm.emulator.connection import with_transport
from llm.emulator.control import control_routes
from llm.emulator.errors import ApiError, error_bytes
from llm.emulator.exchange import Exchange
from llm.emulator.request_shape import check_headers
from llm.emulator.state import EmulatorState


def create_app(state: EmulatorState, *, control: bool = True) -> ASGIApp:
    """The ASGI application over `state`. Without `control` nobody scripts it or reads what it was asked."""

    async def list_models(request: Request) -> Response:
        check_headers(request.headers)
        data = [model.describe() for model in state.models.values()]
        ends = {"first_id": data[0]["id"], "last_id": data[-1]["id"]} if data else {}
        return JSONResponse({"data": data, "has_more": False, **ends}, headers={"request-id": new_id("req")})

    async def get_model(request: Request) -> Response:
        check_headers(request.headers)
        model_id = request.path_params["model_id"]
        if model_id not in state.models:
            raise ApiError(f"model: {model_id}", 404)
        return JSONResponse(state.models[model_id].describe(), headers={"request-id": new_id("req")})

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        request_id = new_id("req")
        return Response(
            error_bytes(error, request_id),
            error.status,
            {"request-id": request_id, **error.headers},
            "application/json",
        )

    async def not_found(request: Request, error: Exception) -> Response:
        body = {"type": "error", "error": {"type": "not_found_error", "message": "Not found"}}
        return Response(json.dumps(body), 404, {"request-id": new_id("req")}, "application/json")

    routes: list[BaseRoute] = [
        Route("/v1/messages", Exchange(state), methods=["POST"]),
        Route("/v1/messages/count_tokens", Exchange(state, counting=True), methods=["POST"]),
        Route("/v1/models", list_models),
        Route("/v1/models/{model_id}", get_model),
    ]
    if control:
        routes.append(Mount("/_control", routes=control_routes(state)))
    app = Starlette(routes=routes, exception_handlers={ApiError: refuse, 404: not_found})
    return with_transport(app)
