"""The routes of the service, and what each of them reads and answers."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Annotated, Any, TypeVar

from fastapi import FastAPI, Path, Query, Request, Response
from fastapi.responses import FileResponse
from starlette.concurrency import run_in_threadpool

from ..report.language import find_language
from . import responses
from .bodies import (
    Body,
    ExplainBody,
    InstancesBody,
    RangesBody,
    ReceiptBody,
    RelaxBody,
    ScoreBody,
    check_media,
    parse,
)
from .describing import describe
from .engine import Engine, Task
from .observing import Metrics
from .openapi import body_of, refused_with
from .refusals import RefusalError
from .tasks import TaskMaker, to_json
from .waiting import answer_of

PAGE = files(__package__).joinpath("page")
MOST_LISTED = 200
JSON = "application/json"

BodyT = TypeVar("BodyT", bound=Body)


class Routes:
    """The routes of a service."""

    def __init__(self, tasks: TaskMaker, metrics: Metrics) -> None:
        self.tasks, self.settings, self.metrics = tasks, tasks.settings, metrics
        limits = self.settings.limits
        self.searching = Engine(
            limits.searching, lambda n_tasks, n_people: metrics.batches.observe(n_tasks)
        )
        self.scoring = Engine(limits.scoring)
        self.schemas = {
            code: to_json(describe(tasks.answerer, tasks.people.kinds, self.settings, code))
            for code in self.settings.languages
        }

    def add_to(self, app: FastAPI) -> None:
        """Add them to an application."""
        app.get("/", include_in_schema=False)(self.page)
        app.get("/health", response_model=responses.Status)(self.health)
        app.get("/ready", response_model=responses.Status, responses=refused_with(503))(self.ready)
        app.get("/metrics", response_class=Response)(self.numbers)
        known: dict[str, Any] = {"response_class": Response}
        app.get("/schema", responses=_of(responses.ServiceSchema, 422), **known)(self.schema)
        app.get("/messages/{language}", responses=_of(responses.Messages, 404), **known)(
            self.messages
        )
        app.get("/people", responses=_of(responses.PeopleFound, 422), **known)(self.list_people)
        app.get("/people/{row}", responses=_of(responses.PersonFound, 404, 422), **known)(
            self.person
        )
        self._post(app, "/score", self.score, ScoreBody, responses.Scores)
        self._post(app, "/explain", self.explain, ExplainBody, responses.Explained)
        self._post(app, "/ranges", self.ranges, RangesBody, responses.RangesFound)
        self._post(app, "/relax", self.relax, RelaxBody, responses.Lifts)
        self._post(app, "/receipts", self.receipt, ReceiptBody, responses.ReceiptMade)
        model = f"/v1/models/{self.settings.name}"
        app.get(model, response_model=responses.ModelStatus)(self.model)
        self._post(app, f"{model}:predict", self.predict, InstancesBody, responses.Predictions)
        self._post(
            app, f"{model}:explain", self.explain_instances, InstancesBody, responses.Explanations
        )

    def _post(
        self, app: FastAPI, path: str, answer: Callable[..., Any], body: Any, found: Any
    ) -> None:
        """A route that reads a body and needs the engine."""
        statuses = 408, 413, 415, 422, 429, 502, 503, 504
        app.post(
            path,
            response_class=Response,
            responses=_of(found, *statuses),
            openapi_extra=body_of(body, self.tasks.people),
        )(answer)

    async def page(self) -> FileResponse:
        """The page."""
        return FileResponse(str(PAGE.joinpath("index.html")))

    async def health(self) -> dict[str, str]:
        """Whether the process lives."""
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
        limit: Annotated[int, Query(ge=1, le=MOST_LISTED)] = 50,
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

    async def score(self, request: Request) -> Response:
        """Scores of people, and whether each decision is the desired one."""
        task = await self._task(request, ScoreBody, self.tasks.score)
        return _json(await self._answer(self.scoring, task, request))

    async def explain(self, request: Request) -> Response:
        """What would have given people the desired decision."""
        task = await self._task(request, ExplainBody, self.tasks.explain)
        found = await self._answer(self.searching, task, request)
        self.metrics.stopped.inc(found["stopped"])
        return await run_in_threadpool(_json, found)

    async def ranges(self, request: Request) -> Response:
        """Whether rows would be accepted, and which other values would do as well."""
        task = await self._task(request, RangesBody, self.tasks.ranges)
        return _json(await self._answer(self.searching, task, request))

    async def relax(self, request: Request) -> Response:
        """What could be lifted for a person without an answer, the best first."""
        task = await self._task(request, RelaxBody, self.tasks.relax)
        return _json(await self._answer(self.searching, task, request))

    async def receipt(self, request: Request) -> Response:
        """A receipt of an answer that holds, which ``mcce verify`` checks."""
        task = await self._task(request, ReceiptBody, self.tasks.receipt)
        return _json(await self._answer(self.searching, task, request))

    async def model(self) -> dict[str, Any]:
        """Whether the model is ready, in the form of KServe."""
        return {"name": self.settings.name, "ready": self.searching.is_ready}

    async def predict(self, request: Request) -> Response:
        """Scores, in the form of KServe."""

        def make(body: InstancesBody) -> Task:
            return self.tasks.score(ScoreBody(people=self.tasks.people.objects(body.instances)))

        task = await self._task(request, InstancesBody, make)
        found = await self._answer(self.scoring, task, request)
        return _json({"predictions": found["scores"]})

    async def explain_instances(self, request: Request) -> Response:
        """What would have given the desired decision, in the form of KServe."""

        def make(body: InstancesBody) -> Task:
            people = self.tasks.people.objects(body.instances)
            return self.tasks.explain(ExplainBody(people=people))

        task = await self._task(request, InstancesBody, make)
        found = await self._answer(self.searching, task, request)
        scores = [person["score"] for person in found["people"]]
        return _json({"predictions": scores, "explanations": found["people"]})

    async def _answer(self, engine: Engine, task: Task, request: Request) -> Any:
        """The result of a task."""
        try:
            return await answer_of(engine, task, request)
        finally:
            self._measure()

    def _measure(self) -> None:
        """Note how many wait: gauges of several processes cannot ask for it."""
        self.metrics.waiting.labels("search").set(self.searching.n_waiting)
        self.metrics.waiting.labels("score").set(self.scoring.n_waiting)
        self.metrics.stuck.set(self.searching.n_stuck + self.scoring.n_stuck)

    async def _task(
        self, request: Request, kind: type[BodyT], make: Callable[[BodyT], Task]
    ) -> Task:
        """The task of a request, checked."""
        check_media(request.headers, JSON)
        content = await request.body()
        task = await run_in_threadpool(lambda: make(parse(content, kind)))
        request.state.n_people = task.size
        return task


def _json(content: Any) -> Response:
    return Response(to_json(content), media_type=JSON)


def _of(model: Any, *statuses: int) -> dict[int | str, dict[str, Any]]:
    """What a route answers, for its description."""
    return {200: {"model": model, "content": {JSON: {}}}, **refused_with(*statuses)}
