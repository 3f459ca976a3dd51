"""The application: an explainer behind routes, with middleware around them."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import APIRouter, Depends, FastAPI, File, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from fastapi.routing import APIRoute
from fastapi.staticfiles import StaticFiles
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware.gzip import GZipMiddleware

from ..errors import McceError
from ..explainer import MCCE
from ..report.language import find_language, languages
from ..runtime.json_text import read_json
from ..version import __version__
from . import bodies
from .answering import Answerer
from .bodies import ExplainBody, RangesBody, ReceiptBody, RelaxBody, ScoreBody, UploadForm
from .describing import describe
from .middleware import JSON, Guard, Metrics, Observer
from .pool import Call, Pool
from .refusals import RefusalError, Refused, refusal_of
from .settings import Directory, ServiceSettings
from .uploads import Uploads

PAGE = files(__package__).joinpath("page")
MAX_LISTED_PEOPLE = 200
# The messages of the page, and those of reports that it shows too: why_proven, sure_wide.
SHARED = re.compile(r"page\.|report\.(?=sure_|usual_)|(?=why\.)")
TYPES = {"csv": "text/csv", "html": "text/html", "parquet": "application/vnd.apache.parquet"}
# How routes may refuse, for the description.
REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Refused} for status in (401, 403, 404, 408, 413, 415, 422, 429, 502, 503, 504)
}
JobName = Annotated[str, Path(max_length=64)]
BodyT = TypeVar("BodyT")


class Service:
    """What routes need."""

    def __init__(self, explainer: MCCE, settings: ServiceSettings) -> None:
        limits, self.settings, self.metrics = settings.limits, settings, Metrics()
        self.answerer = Answerer.make(explainer, settings)
        self.people = settings.people or Directory(explainer)
        observe = self.metrics.batches.observe
        self.searching = Pool(limits.threads, limits.queue, limits.batch, limits.patience, observe)
        # Scores need not wait for searches.
        self.scoring = Pool(1, 4 * limits.queue, 4 * limits.batch, limits.patience)
        self.uploads = Uploads(self.answerer, settings)
        # What is explained, by language.
        self.schemas = {code: to_json(describe(self.answerer, code)) for code in languages()}

    async def answer(
        self, request: Request, pool: Pool, make: Callable[[BodyT], Call], body: BodyT
    ) -> Response:
        """The response to a request whose body makes a call of a pool."""
        call = await run_in_threadpool(make, body)
        request.state.n_people = call.size
        try:
            result = await pool.answer(call, request)
        finally:
            self.measure()
        self.metrics.stopped.inc(result.get("stopped", False))
        return Response(await run_in_threadpool(to_json, result), media_type=JSON)

    def measure(self) -> None:
        """Note how many wait: gauges of several processes cannot call a function for it."""
        self.metrics.waiting.labels("search").set(self.searching.n_waiting)
        self.metrics.waiting.labels("score").set(self.scoring.n_waiting)
        self.metrics.stuck.set(self.searching.n_stuck + self.scoring.n_stuck)


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
    service = Service(explainer, settings)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tending = asyncio.create_task(service.uploads.tend())
        yield
        tending.cancel()
        for pool in (service.searching, service.scoring):
            pool.close()
        service.uploads.close()

    app = Application(
        title=settings.title or "mcce",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        # A redirect to the address without a slash at its end would reveal that it exists.
        redirect_slashes=False,
        exception_handlers=dict.fromkeys(
            (McceError, RequestValidationError, HTTPException), _refuse
        ),
    )
    app.state.service = service
    app.include_router(router)
    app.mount("/static", StaticFiles(directory=str(PAGE)), name="static")
    app.add_middleware(GZipMiddleware, minimum_size=1_000)
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Observer, metrics=service.metrics)
    return app


class Application(FastAPI):
    """Describes itself with the columns of its explainer."""

    def openapi(self) -> dict[str, Any]:
        """The description in OpenAPI."""
        if self.openapi_schema is None:
            service, made = self.state.service, super().openapi()
            parts = made["components"]
            parts["schemas"]["Person"] = service.answerer.people.schema
            if service.settings.token is not None:
                parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
                made["security"] = [{"token": []}]
        return self.openapi_schema or {}


async def _refuse(request: Request, error: Exception) -> Response:
    return refusal_of(error).response()


class StrictRoute(APIRoute):
    """A route that reads JSON strictly."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """What answers a request."""
        handle = super().get_route_handler()

        async def handle_strictly(request: Request) -> Response:
            return await handle(StrictRequest(request.scope, request.receive))

        return handle_strictly


class StrictRequest(Request):
    """A request whose body is read strictly."""

    async def json(self) -> Any:
        """The body as JSON."""
        try:
            return read_json(await self.body())
        except ValueError as error:
            message = f"expected JSON, got {error}"
            raise RefusalError.of(422, message, "json", "body") from None


def to_json(content: Any) -> bytes:
    """Content as JSON; lone surrogates, which UTF-8 lacks, are escaped as everything is."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _service(request: Request) -> Service:
    service: Service = request.app.state.service
    return service


Served = Annotated[Service, Depends(_service)]
router = APIRouter(route_class=StrictRoute, responses=REFUSALS)


@router.get("/", include_in_schema=False)
async def page() -> FileResponse:
    """The page."""
    return FileResponse(str(PAGE.joinpath("index.html")))


@router.get("/health")
async def health() -> dict[str, Any]:
    """Health check."""
    return {"status": "ok"}


@router.get("/ready")
async def ready(service: Served) -> dict[str, Any]:
    """Whether requests would be answered."""
    for pool in (service.searching, service.scoring):
        if not pool.is_ready or pool.n_stuck:
            message = "the service is ending, or the predictor does not answer some requests"
            raise RefusalError.of(503, message, "unready")
    return {"status": "ok"}


@router.get("/metrics", response_class=Response)
async def metrics(service: Served) -> Response:
    """Numbers for Prometheus."""
    service.measure()
    return Response(service.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/schema", response_model=dict[str, Any])
async def schema(service: Served, language: str | None = None) -> Response:
    """What is explained: features, their words and values, and limits."""
    language = language or service.settings.language
    if language not in service.schemas:
        message = f"expected one of {list(service.schemas)}"
        raise RefusalError.of(422, message, "choice", "query", "language")
    return Response(service.schemas[language], media_type=JSON)


@router.get("/messages/{language}")
async def messages(language: str) -> dict[str, str]:
    """The words of the page in a language."""
    if language not in languages():
        raise RefusalError.of(404, "there is no such language", "absent", "path", "language")
    found = find_language(language).messages.items()
    return {SHARED.sub("", key).replace(".", "_"): text for key, text in found if SHARED.match(key)}


@router.get("/people")
def list_people(
    service: Served,
    query: Annotated[str, Query(max_length=200)] = "",
    offset: Annotated[int, Query(ge=0, le=10**9)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED_PEOPLE)] = 50,
) -> dict[str, Any]:
    """People to choose from, by a part of their names."""
    return service.people.find(query, offset, limit)


@router.get("/people/{row}")
async def find_person(service: Served, row: Annotated[int, Path(ge=0, le=10**9)]) -> dict[str, Any]:
    """A person of the list."""
    if row >= len(service.people):
        raise RefusalError.of(404, "there is no such person", "absent", "path", "row")
    return service.people.person(row)


@router.post("/score", response_model=bodies.Scores)
async def score(request: Request, service: Served, body: ScoreBody) -> Response:
    """Scores of people, and whether each decision is the desired one."""
    return await service.answer(request, service.scoring, service.answerer.score, body)


@router.post("/explain", response_model=bodies.Explained)
async def explain(request: Request, service: Served, body: ExplainBody) -> Response:
    """What would have given people the desired decision."""
    return await service.answer(request, service.searching, service.answerer.explain, body)


@router.post("/ranges", response_model=bodies.RangesFound)
async def ranges(request: Request, service: Served, body: RangesBody) -> Response:
    """Whether rows would be accepted, and which other values would do as well."""
    return await service.answer(request, service.searching, service.answerer.ranges, body)


@router.post("/relax", response_model=bodies.Lifts)
async def relax(request: Request, service: Served, body: RelaxBody) -> Response:
    """What could be lifted for a person without an answer, the best first."""
    return await service.answer(request, service.searching, service.answerer.relax, body)


@router.post("/receipts", response_model=bodies.ReceiptMade)
async def receipts(request: Request, service: Served, body: ReceiptBody) -> Response:
    """A receipt of an answer that holds, which ``mcce verify`` checks."""
    return await service.answer(request, service.searching, service.answerer.receipt, body)


@router.post("/jobs", status_code=202)
async def begin(service: Served, form: Annotated[UploadForm, File()]) -> dict[str, Any]:
    """Answer the people of a file: CSV, Parquet, Arrow or JSON lines."""
    return {"id": await service.uploads.add(form)}


@router.get("/jobs/{job}", response_model=bodies.JobState)
def state(service: Served, job: JobName) -> Any:
    """How far an upload is."""
    return service.uploads.state(job)


@router.get("/jobs/{job}/{file}", response_class=FileResponse)
def fetch(service: Served, job: JobName, file: JobName) -> FileResponse:
    """A file of an upload that is done."""
    path = service.uploads.file(job, file)
    # Fetched and not shown: it is made of what was uploaded.
    return FileResponse(path, media_type=TYPES[path.suffix[1:]], filename=file)


@router.delete("/jobs/{job}", status_code=204)
async def remove(service: Served, job: JobName) -> None:
    """End and forget an upload."""
    await service.uploads.remove(job)
