"""The application: an explainer behind routes, a guard and an observer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.responses import Response

from ..errors import McceError
from ..explainer import MCCE
from ..version import __version__
from .answering import Answerer
from .guarding import Guard
from .job_routes import JobRoutes
from .jobs import BEAT, Jobs
from .observing import Metrics, Observer
from .openapi import describe_api
from .refusals import Problem, RefusalError, refusal_of
from .routes import PAGE, Routes
from .settings import ServiceSettings
from .tasks import TaskMaker

# Seconds that work in progress gets when the service ends; servers wait for requests before.
GRACE = 1.0


def create_app(explainer: MCCE, settings: ServiceSettings | None = None) -> FastAPI:
    """The service of an explainer, as an application of ASGI.

    Parameters
    ----------
    explainer
        A fitted explainer. The service keeps a copy.
    settings
        Names, words, limits, people and the token; None is all of the defaults.

    Returns
    -------
    FastAPI
        The application, for uvicorn and any other server.

    Raises
    ------
    McceError
        If the explainer is not fitted, or the labels or the rules do not fit it.

    Examples
    --------
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), random_state=0).fit(bank)
    >>> create_app(explainer).title
    'mcce'
    """
    settings = settings or ServiceSettings()
    fingerprint = None if settings.origin is None else settings.origin.explainer
    answerer = Answerer.make(explainer, fingerprint, settings.rules)
    tasks, metrics = TaskMaker(answerer, settings), Metrics()
    tasks.check_labels()
    routes, jobs = Routes(tasks, metrics), Jobs(answerer, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(_tend(jobs))
        yield
        tending.cancel()
        for engine in (routes.searching, routes.scoring):
            await run_in_threadpool(engine.close, GRACE)
        await run_in_threadpool(jobs.close)

    app = FastAPI(
        title=settings.name,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # An address with a slash at its end is another one: a redirect would reveal it.
        redirect_slashes=False,
    )
    routes.add_to(app)
    JobRoutes(jobs, tasks).add_to(app)
    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")
    describe_api(app, tasks.people, settings.token is not None)
    _add_refusals(app)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Observer, metrics=metrics)
    return app


async def _tend(jobs: Jobs) -> None:
    """Look after uploads now and then, also if nobody sends new ones."""
    while True:
        await asyncio.sleep(min(BEAT, jobs.limits.kept_seconds))
        await run_in_threadpool(jobs.tend)


def _add_refusals(app: FastAPI) -> None:
    """Let all errors be answered in one form."""

    @app.exception_handler(RefusalError)
    async def refuse(request: Request, refusal: RefusalError) -> Response:
        return refusal.response()

    @app.exception_handler(McceError)
    async def fail(request: Request, error: McceError) -> Response:
        return refusal_of(error).response()

    @app.exception_handler(RequestValidationError)
    async def reject(request: Request, error: RequestValidationError) -> Response:
        problems = [Problem(tuple(one["loc"]), one["msg"], one["type"]) for one in error.errors()]
        return RefusalError(422, problems).response()

    @app.exception_handler(HTTPException)
    async def answer(request: Request, error: HTTPException) -> Response:
        headers: Any = error.headers
        problems = [Problem((), str(error.detail), "http")]
        return RefusalError(error.status_code, problems, headers).response()
