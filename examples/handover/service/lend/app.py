"""The HTTP interface."""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lend.models import NewLoan, Return
from lend.store import Conflict, NotFound, Store


def create_app(path: Path) -> Starlette:
    """Return the service for the loans in `path`."""
    store = Store(path)

    async def list_loans(request: Request) -> Response:
        only_open = request.query_params.get("open") == "1"
        return answer(
            [loan.model_dump(mode="json", by_alias=True) for loan in store.loans(only_open=only_open)]
        )

    async def lend(request: Request) -> Response:
        wanted = NewLoan.model_validate_json(await request.body())
        return answer(as_json(store.lend(wanted)), 201)

    async def take_back(request: Request) -> Response:
        returned = Return.model_validate_json(await request.body())
        return answer(as_json(store.take_back(request.path_params["loan_id"], returned)))

    return Starlette(
        routes=[
            Route("/loans", list_loans, methods=["GET"]),
            Route("/loans", lend, methods=["POST"]),
            Route("/loans/{loan_id:int}/return", take_back, methods=["POST"]),
        ],
        exception_handlers={
            ValidationError: invalid,
            NotFound: lambda _, error: problem(404, str(error)),
            Conflict: lambda _, error: problem(409, str(error)),
        },
    )


def as_json(value: BaseModel) -> object:
    return value.model_dump(mode="json", by_alias=True)


def answer(value: object, status: int = 200) -> Response:
    return JSONResponse(value, status)


def problem(status: int, message: str) -> Response:
    return JSONResponse({"error": message}, status)


async def invalid(_: Request, error: Exception) -> Response:
    """Answer 422 with each wrong field."""
    assert isinstance(error, ValidationError)
    wrong = [
        {"field": ".".join(map(str, one["loc"])), "message": one["msg"].removeprefix("Value error, ")}
        for one in error.errors()
    ]
    return JSONResponse({"errors": wrong}, 422)
