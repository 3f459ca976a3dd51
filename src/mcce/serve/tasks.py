"""Requests as tasks of a queue: read strictly, then computed together with others like them.

Always true: everything is checked before a task waits; requests in one batch have the same options,
so each gets what it would get alone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from typing import Any

import pandas as pd

from ..constraints.constraint import Constraint
from ..constraints.files import write_entry
from ..counterfactuals.parts import as_records
from ..errors import shorten
from ..explainer import requirements_of
from ..kernels import check_cancellation
from ..protocols import Callback
from ..report.language import languages
from ..report.receipts import Origin, make_receipt
from ..runtime.progress import Progress
from ..version import __version__
from .answering import Answerer
from .refusals import RefusalError
from .requests import (
    MAX_RULES,
    ExplainBody,
    InstancesBody,
    JsonPeople,
    RangesBody,
    ReceiptBody,
    RelaxBody,
    ScoreBody,
    SearchBody,
    read_request_rules,
)
from .settings import ServiceSettings
from .task_queue import QueuedTask


class TaskMaker:
    """Makes tasks of requests."""

    def __init__(self, answerer: Answerer, settings: ServiceSettings) -> None:
        self.answerer, self.settings, self.limits = answerer, settings, settings.limits
        self.people = JsonPeople.plan(answerer.explainer.fitted_)

    def check_labels(self) -> None:
        """Raise if the words do not fit the features."""
        explainer = self.answerer.explainer
        frozen = requirements_of(explainer).constraints.frozen_for_everybody
        for labels in self.settings.labels.values():
            labels.check(explainer.schema_, frozen)

    def score(self, body: ScoreBody) -> QueuedTask:
        """Scores of people, and whether each decision is the desired one."""
        frame = self._read(body.people, "people")
        if body.person is not None:
            return self._score_variants(self._read([body.person], "person"), frame)

        def work(frames: Sequence[pd.DataFrame]) -> list[Any]:
            scores, desired = self.answerer.score(_joined(frames))
            return [{"scores": scores[part], "desired": desired[part]} for part in _parts(frames)]

        return QueuedTask(work, frame, len(frame), key="score")

    def _score_variants(self, person: pd.DataFrame, rows: pd.DataFrame) -> QueuedTask:
        """Score rows of a person with what follows from their changes."""

        def work() -> dict[str, Any]:
            completed = self.answerer.complete(person, rows)
            scores, desired = self.answerer.score(completed)
            return {"scores": scores, "desired": desired, "people": as_records(completed)}

        return _alone(work, len(rows))

    def explain(self, body: ExplainBody) -> QueuedTask:
        """What would have given people the desired decision."""
        frame = self._read(body.people, "people")
        constraints = self.read_options(body)
        seconds = min(body.seconds or self.limits.seconds, self.limits.seconds)
        labels = self.settings.words(body.language) if body.details else None

        def work(frames: Sequence[pd.DataFrame]) -> list[Any]:
            result = self.answerer.explain(
                _joined(frames),
                constraints,
                search=body.search,
                n_counterfactuals=body.n_counterfactuals,
                callback=_stop_after(seconds),
            )
            if labels is None:
                records = result.to_dict()
            else:
                records = self.answerer.details(result, constraints, labels)
            whole = {"stopped": result.stopped, **self.origin}
            return [{"people": _numbered(records[part]), **whole} for part in _parts(frames)]

        # A budget ends a search for all who share it, so requests with a budget search alone.
        key = None if body.seconds is not None else _key(body)
        return QueuedTask(work, frame, len(frame), key, seconds)

    def ranges(self, body: RangesBody) -> QueuedTask:
        """Whether rows would be accepted, and which other values would do as well."""
        person = self._read([body.person], "person")
        answers = self._read(body.answers, "answers", self.limits.answers)
        constraints = [constraint for _, constraint in self.read_rules(body.rules)]
        return _alone(
            lambda: {"answers": self.answerer.ranges(person, answers, constraints)}, len(answers)
        )

    def relax(self, body: RelaxBody) -> QueuedTask:
        """What could be lifted for a person without an answer, the best first."""
        person = self._read([body.person], "person")
        rules = self.read_rules(body.rules)
        return _alone(lambda: {"lifts": self.answerer.relax(person, rules)}, 1)

    def receipt(self, body: ReceiptBody) -> QueuedTask:
        """A receipt of an answer that holds, which ``mcce verify`` checks."""
        person = self._read([body.person], "person")
        answer = self._read([body.answer], "answer")
        self.read_rules(body.rules)
        origin = self.settings.origin or Origin(self.answerer.fingerprint, "")

        def work() -> dict[str, Any]:
            return make_receipt(
                self.answerer.explainer,
                person,
                answer,
                rules=body.rules,
                added=[write_entry(rule) for rule in self.settings.rules],
                origin=origin,
                made=datetime.now(UTC),
                key=self.settings.key,
            )

        return _alone(work, 1)

    def predict(self, body: InstancesBody) -> QueuedTask:
        """Scores, in the form of KServe."""
        task = self.score(ScoreBody(people=self.people.objects(body.instances)))
        return replace(task, reply=lambda found: {"predictions": found["scores"]})

    def explain_instances(self, body: InstancesBody) -> QueuedTask:
        """What would have given the desired decision, in the form of KServe."""

        def reply(found: dict[str, Any]) -> dict[str, Any]:
            scores = [person["score"] for person in found["people"]]
            return {"predictions": scores, "explanations": found["people"]}

        task = self.explain(ExplainBody(people=self.people.objects(body.instances)))
        return replace(task, reply=reply)

    @property
    def origin(self) -> dict[str, Any]:
        """What answers come from."""
        return {
            "seed": self.answerer.explainer.seed_,
            "fingerprint": self.answerer.fingerprint,
            "version": __version__,
        }

    def _read(
        self, people: Sequence[dict[str, Any]], field: str, most: int | None = None
    ) -> pd.DataFrame:
        most = self.limits.people if most is None else most
        if len(people) > most:
            message = f"expected at most {most}, got {len(people)}"
            raise RefusalError.of(422, message, "too_many", "body", field)
        return self.people.read(people, "body", field)

    def read_rules(self, entries: Sequence[Any]) -> list[tuple[int, Constraint]]:
        """The constraints of a request, each with the position of its rule."""
        if len(entries) > MAX_RULES:
            message = f"expected at most {MAX_RULES}, got {len(entries)}"
            raise RefusalError.of(422, message, "too_many", "body", "rules")
        explainer = self.answerer.explainer
        return read_request_rules(entries, explainer.constraints, explainer.schema_)

    def read_options(self, body: SearchBody) -> list[Constraint]:
        """The constraints of a request; raises for another option that there is not."""
        constraints = [constraint for _, constraint in self.read_rules(body.rules)]
        for field, choices in (("search", self.answerer.searches), ("language", languages())):
            value = getattr(body, field)
            if value is not None and value not in choices:
                message = f"expected one of {list(choices)}, got {shorten(value)}"
                raise RefusalError.of(422, message, "choice", "body", field)
        most, given = self.limits.answers, body.n_counterfactuals
        if given is not None and given > most:
            message = f"expected at most {most}, got {shorten(given)}"
            raise RefusalError.of(422, message, "too_many", "body", "n_counterfactuals")
        return constraints


def to_json(content: Any) -> bytes:
    """Content as JSON; lone surrogates, which UTF-8 lacks, are escaped as everything is."""
    return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


def _stop_after(seconds: float) -> Callback:
    """A callback that ends a search some seconds from now."""
    ends = time.monotonic() + seconds

    def stop(progress: Progress) -> bool:
        check_cancellation()
        return time.monotonic() >= ends

    return stop


def _alone(work: Callable[[], Any], size: int) -> QueuedTask:
    """A task that shares its work with nobody."""
    return QueuedTask(lambda given: [work()], None, size)


def _key(body: ExplainBody) -> tuple[Any, ...]:
    """A key that is equal for requests that can share a search; words matter only in details."""
    language = body.language if body.details else None
    options = body.search, body.n_counterfactuals, body.details, language
    return ("explain", *options, json.dumps(body.rules, sort_keys=True))


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The people of all requests, numbered from 0; their dtypes are the same."""
    return frames[0] if len(frames) == 1 else pd.concat(frames, ignore_index=True)


def _parts(frames: Sequence[pd.DataFrame]) -> list[slice]:
    """The rows of each request among all."""
    ends = accumulate(map(len, frames), initial=0)
    return [slice(first, last) for first, last in pairwise(ends)]


def _numbered(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records of people by their position in the request."""
    return [record | {"factual": place} for place, record in enumerate(records)]
