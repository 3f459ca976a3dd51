"""Requests that wait for the engine: until the answer, the limit, or the client's leaving."""

from __future__ import annotations

import asyncio
from typing import Any

from starlette.requests import Request

from .engine import Engine, Task
from .refusals import RefusalError


class ClientGoneError(Exception):
    """The client has gone; nobody reads an answer."""


async def answer_of(engine: Engine, task: Task, request: Request) -> Any:
    """The result of a task."""
    engine.submit(task)
    answer = asyncio.wrap_future(task.future)
    gone = asyncio.ensure_future(_gone(request))
    try:
        done, _ = await asyncio.wait(
            {answer, gone}, timeout=engine.limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
        if answer in done:
            return answer.result()
    except asyncio.CancelledError:
        # The server ends, and has waited for as long as it may.
        raise RefusalError.of(503, "the service is shutting down", "closing") from None
    finally:
        gone.cancel()
        if not answer.done():
            engine.leave(task)
            answer.cancel()
    if gone in done:
        raise ClientGoneError
    message = f"no answer within {engine.limits.seconds:g} s: the predictor hangs or is too slow"
    raise RefusalError.of(504, message, "timeout")


async def _gone(request: Request) -> None:
    """Return when the client has gone."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
