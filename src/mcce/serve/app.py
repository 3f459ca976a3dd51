"""The application: an explainer behind routes, with middleware around them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.exceptions import HTTPException

from ..constraints.constraint import Constraint
from ..errors import McceError
from ..explainer import MCCE
from ..report.language import find_language, languages
from ..version import __version__
from . import responses
from .answering import Answerer, describe
from .middleware import Guard, Metrics, Observer
from .refusals import Problem, RefusalError, refusal_of
from .requests import (
    BodyT,
    ExplainBody,
    InstancesBody,
    RangesBody,
    ReceiptBody,
    RelaxBody,
    ScoreBody,
    UploadBody,
    check_fields,
    check_media,
    parse_body,
    parse_json,
)
from .responses import body_of, describe_api, refused_with
from .settings import ServiceSettings
from .task_queue import QueuedTask, TaskQueue, answer_of
from .tasks import TaskMaker, to_json
from .uploads import BEAT, JobState, Uploads

# Seconds that work in progress gets when the service ends; servers wait for requests before.
GRACE = 1.0
PAGE = files(__package__).joinpath("page")
MAX_LISTED_PEOPLE = 200
JSON = "application/json"
TYPES = {"csv": "text/csv", "html": "text/html", "parquet": "application/vnd.apache.parquet"}
MULTIPART = "multipart/form-data"
JobName = Annotated[str, Path(max_length=64)]


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
    answerer = Answerer.make(explainer, settings)
    tasks, metrics = TaskMaker(answerer, settings), Metrics()
    tasks.check_labels()
    routes, uploads = Routes(tasks, metrics), Uploads(answerer, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(_tend(uploads))
        yield
        tending.cancel()
        for queue in (routes.searching, routes.scoring):
            await run_in_threadpool(queue.close, GRACE)
        await run_in_threadpool(uploads.close)

    app = FastAPI(
        title=settings.name,
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # A redirect to the address without a slash at its end would reveal that it exists.
        redirect_slashes=False,
    )
    routes.add_to(app)
    UploadRoutes(uploads, tasks).add_to(app)
    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")
    describe_api(app, tasks.people, settings.token is not None)
    _add_refusals(app)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Observer, metrics=metrics)
    return app


async def _tend(uploads: Uploads) -> None:
    """Tend uploads regularly, even if no new ones arrive."""
    while True:
        await asyncio.sleep(min(BEAT, uploads.limits.kept_seconds))
        await run_in_threadpool(uploads.tend)


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


class Routes:
    """The routes of a service."""

    def __init__(self, tasks: TaskMaker, metrics: Metrics) -> None:
        self.tasks, self.settings, self.metrics = tasks, tasks.settings, metrics
        limits = self.settings.limits
        self.searching = TaskQueue(
            limits.searching, lambda n_tasks, n_people: metrics.batches.observe(n_tasks)
        )
        self.scoring = TaskQueue(limits.scoring)
        self.schemas = {
            code: to_json(describe(tasks.answerer, tasks.people.kinds, self.settings, code))
            for code in languages()
        }

    def add_to(self, app: FastAPI) -> None:
        """Add them to an application."""
        app.get("/", include_in_schema=False)(self.page)
        app.get("/health", response_model=responses.Status)(self.health)
        app.get("/ready", response_model=responses.Status, responses=refused_with(503))(self.ready)
        app.get("/metrics", response_class=Response)(self.numbers)
        known: dict[str, Any] = {"response_class": Response}
        app.get("/schema", responses=_documented(responses.ServiceSchema, 422), **known)(
            self.schema
        )
        app.get("/messages/{language}", responses=_documented(dict[str, str], 404), **known)(
            self.messages
        )
        app.get("/people", responses=_documented(responses.PeopleFound, 422), **known)(
            self.list_people
        )
        app.get("/people/{row}", responses=_documented(responses.PersonFound, 404, 422), **known)(
            self.person
        )
        path = f"/v1/models/{self.settings.name}"
        app.get(path, response_model=responses.ModelStatus)(self.model)
        score, search, tasks = self.scoring, self.searching, self.tasks
        self._post(app, "/score", score, tasks.score, ScoreBody, responses.Scores)
        self._post(app, "/explain", search, tasks.explain, ExplainBody, responses.Explained)
        self._post(app, "/ranges", search, tasks.ranges, RangesBody, responses.RangesFound)
        self._post(app, "/relax", search, tasks.relax, RelaxBody, responses.Lifts)
        self._post(app, "/receipts", search, tasks.receipt, ReceiptBody, responses.ReceiptMade)
        of_instances = (
            ("predict", score, tasks.predict, responses.Predictions),
            ("explain", search, tasks.explain_instances, responses.Explanations),
        )
        for verb, queue, make, found in of_instances:
            self._post(app, f"{path}:{verb}", queue, make, InstancesBody, found)

    def _post(
        self,
        app: FastAPI,
        path: str,
        queue: TaskQueue,
        make: Callable[[BodyT], QueuedTask],
        kind: type[BodyT],
        found: type[Any],
    ) -> None:
        """Add a route whose body makes a task of a queue."""

        async def answer(request: Request) -> Response:
            check_media(request.headers, JSON)
            content = await request.body()
            task = await run_in_threadpool(lambda: make(parse_body(content, kind)))
            request.state.n_people = task.size
            try:
                result = await answer_of(queue, task, request)
            finally:
                self._measure()
            self.metrics.stopped.inc(result.get("stopped", False))
            return await run_in_threadpool(lambda: _json(task.reply(result)))

        app.post(
            path,
            name=make.__name__,
            description=make.__doc__,
            response_class=Response,
            responses=_documented(found, 408, 413, 415, 422, 429, 502, 503, 504),
            openapi_extra=body_of(kind, self.tasks.people),
        )(answer)

    async def page(self) -> FileResponse:
        """The page."""
        return FileResponse(str(PAGE.joinpath("index.html")))

    async def health(self) -> dict[str, str]:
        """Health check."""
        return {"status": "ok"}

    async def ready(self) -> dict[str, str]:
        """Whether requests would be answered."""
        if not (self.searching.is_ready and self.scoring.is_ready):
            raise RefusalError.of(503, "the service is ending, or the predictor hangs", "unready")
        if self.searching.n_stuck or self.scoring.n_stuck:
            raise RefusalError.of(503, "the predictor does not answer some requests", "stuck")
        return {"status": "ok"}

    async def numbers(self) -> Response:
        """Numbers for Prometheus."""
        self._measure()
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4")

    async def schema(self, language: Annotated[str | None, Query()] = None) -> Response:
        """What is explained: features, their words and values, and limits."""
        if language is not None and language not in self.schemas:
            message = f"expected one of {list(self.schemas)}"
            raise RefusalError.of(422, message, "choice", "query", "language")
        return Response(self.schemas[language or self.settings.language], media_type=JSON)

    async def messages(self, language: Annotated[str, Path()]) -> Response:
        """The words of the page in a language."""
        if language not in self.schemas:
            raise RefusalError.of(404, "there is no such language", "absent", "path", "language")
        found = find_language(language).messages.items()
        words = {key.removeprefix("page."): text for key, text in found if key.startswith("page.")}
        return _json(words)

    async def list_people(
        self,
        query: Annotated[str, Query(max_length=200)] = "",
        offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
        limit: Annotated[int, Query(ge=1, le=MAX_LISTED_PEOPLE)] = 50,
    ) -> Response:
        """People to choose from, by a part of their names."""
        people = self.settings.people
        if people is None:
            return _json({"n_people": 0, "n_found": 0, "people": []})
        return _json(await run_in_threadpool(people.find, query, offset, limit))

    async def person(self, row: Annotated[int, Path(ge=0, le=10**9)]) -> Response:
        """A person of the list."""
        people = self.settings.people
        if people is None or row >= len(people):
            raise RefusalError.of(404, "there is no such person", "absent", "path", "row")
        return _json(people.person(row))

    async def model(self) -> dict[str, Any]:
        """Whether the model is ready, in the form of KServe."""
        return {"name": self.settings.name, "ready": self.searching.is_ready}

    def _measure(self) -> None:
        """Note how many wait: gauges of several processes cannot call a function for it."""
        self.metrics.waiting.labels("search").set(self.searching.n_waiting)
        self.metrics.waiting.labels("score").set(self.scoring.n_waiting)
        self.metrics.stuck.set(self.searching.n_stuck + self.scoring.n_stuck)


def _json(content: Any) -> Response:
    return Response(to_json(content), media_type=JSON)


def _documented(response_type: Any, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """The responses of a route, for its description."""
    return {200: {"model": response_type, "content": {JSON: {}}}, **refused_with(*statuses)}


class UploadRoutes:
    """The routes of uploads."""

    def __init__(self, uploads: Uploads, tasks: TaskMaker) -> None:
        self.uploads, self.tasks = uploads, tasks

    def add_to(self, app: FastAPI) -> None:
        """Add them to an application."""
        body = {"content": {MULTIPART: {"schema": UploadBody.described()}}, "required": True}
        app.post(
            "/jobs",
            status_code=202,
            response_model=responses.JobBegun,
            responses=refused_with(408, 413, 415, 422, 429, 502, 503),
            openapi_extra={"requestBody": body},
        )(self.begin)
        app.get("/jobs/{job}", response_model=JobState, responses=refused_with(404, 422))(
            self.state
        )
        app.get(
            "/jobs/{job}/{file}", response_class=FileResponse, responses=refused_with(404, 422)
        )(self.file)
        app.delete(
            "/jobs/{job}",
            status_code=204,
            response_class=Response,
            responses=refused_with(403, 404, 422),
        )(self.remove)

    async def begin(self, request: Request) -> Response:
        """Answer the people of a file: CSV, Parquet, Arrow or JSON lines."""
        check_media(request.headers, MULTIPART)
        form = await self._form(request)
        try:
            upload = form.get("file")
            if not isinstance(upload, UploadFile) or not upload.filename:
                raise RefusalError.of(422, "expected a file with a name", "missing", "body", "file")
            given = {name: value for name, value in form.items() if name != "file"}
            options = await run_in_threadpool(self._options, given)
            name, content = upload.filename[-200:], upload.file
            job = await run_in_threadpool(self.uploads.add, name, content, *options)
        finally:
            await form.close()
        return Response(to_json({"id": job}), 202, media_type="application/json")

    async def state(self, job: JobName) -> Any:
        """How far an upload is."""
        return await run_in_threadpool(self.uploads.state, job)

    async def file(self, job: JobName, file: JobName) -> FileResponse:
        """A file of an upload that is done."""
        path = await run_in_threadpool(self.uploads.file, job, file)
        kind = TYPES[path.suffix[1:]]
        # Fetched and not shown: it is made of what was uploaded.
        return FileResponse(path, media_type=kind, filename=file)

    async def remove(self, job: JobName) -> Response:
        """End and forget an upload."""
        await run_in_threadpool(self.uploads.remove, job)
        return Response(status_code=204)

    async def _form(self, request: Request) -> FormData:
        most = self.tasks.limits.bytes
        try:
            return await request.form(max_files=1, max_fields=20, max_part_size=most)
        except (HTTPException, ValueError):
            # Older parsers of forms raise errors of their own, which are ValueErrors.
            raise RefusalError.of(422, f"expected {MULTIPART}", "form", "body") from None

    def _options(self, given: dict[str, Any]) -> tuple[UploadBody, list[Constraint]]:
        fields = {name: value for name, value in given.items() if value != ""}
        for name in ("rules", "n_counterfactuals"):
            if isinstance(fields.get(name), str):
                fields[name] = parse_json(fields[name].encode(), "body", name)
        body = check_fields(fields, UploadBody)
        return body, self.tasks.read_options(body)
