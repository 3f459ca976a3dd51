"""Requests as calls of a pool: read strictly, then computed together with others like them.

Always true: everything is checked before a call waits; calls in one batch have the same options, so
each gets what it would get alone.
"""

from __future__ import annotations

import copy
import json
import tempfile
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pandas as pd

from ..analysis.answers import AnswerVariants, EncodedAnswers
from ..caching import cached_property
from ..constraints.collection import Constraints, read_given
from ..constraints.constraint import Constraint
from ..constraints.files import make_constraints, write_entry
from ..counterfactuals.records import Record, as_records, plain_value
from ..counterfactuals.result import Counterfactuals
from ..errors import ConstraintError, McceError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import check_cancellation
from ..protocols import Callback
from ..report.labels import Labels
from ..report.language import languages
from ..report.letters import write_letters
from ..report.people import how_usual
from ..report.receipts import Origin, make_receipt
from ..runtime.files import checksum
from ..search.config import SearchName
from ..tables.columns import is_missing
from ..version import __version__
from .bodies import ExplainBody, RangesBody, ReceiptBody, RelaxBody, ScoreBody, SearchBody
from .people import JsonPeople
from .pool import Call
from .refusals import Problem, RefusalError
from .settings import ServiceSettings

# A list of features in a rule makes a constraint for each.
MAX_CONSTRAINTS = 1_000


@dataclass(frozen=True, eq=False)
class Answerer:
    """An explainer, as requests use it."""

    explainer: MCCE
    settings: ServiceSettings
    people: JsonPeople
    fingerprint: str
    # Whatever the language, answers are the same.
    rounding: Mapping[Hashable, float]

    @classmethod
    def make(cls, explainer: MCCE, settings: ServiceSettings) -> Answerer:
        """An answerer with a copy of an explainer, if settings and labels fit it."""
        own = copy.copy(explainer).set_params(max_seconds=None, verbose=False)
        origin = settings.origin
        fingerprint = _explainer_checksum(own) if origin is None else origin.explainer
        own.set_params(constraints=[*read_given(own.constraints), *settings.rules])
        frozen = requirements_of(own).constraints.frozen_for_everybody
        for labels in settings.labels.values():
            labels.check(own.schema_, frozen)
        rounding = settings.words(None).rounding(own.schema_)
        return cls(own, settings, JsonPeople.plan(own.fitted_), fingerprint, rounding)

    @cached_property
    def searches(self) -> list[str]:
        """The searches that the explainer can be asked for."""
        return [name for name in get_args(SearchName) if self._can_search(name)]

    def _can_search(self, name: str) -> bool:
        try:
            self._variant(SearchBody(search=name), None).explain(self.people.reader.empty())
        except McceError:
            return False
        return True

    def score(self, body: ScoreBody) -> Call:
        """Scores of people, and whether each decision is the desired one."""
        rows = self._read(body.people, "people")
        if body.person is not None:
            person = self._read([body.person], "person")
            return Call(lambda given: [self._score_variants(person, rows)], size=len(rows))

        def work(frames: Sequence[pd.DataFrame]) -> list[Any]:
            scores, desired = self._score(_joined(frames))
            return [{"scores": scores[part], "desired": desired[part]} for part in _parts(frames)]

        return Call(work, rows, len(rows), key="score")

    def _score(self, rows: pd.DataFrame) -> tuple[list[float | None], list[bool]]:
        scored = self.explainer.decision_.score(self.explainer.schema_.encode(rows).frame)
        return [plain_value(score) for score in scored.score.tolist()], scored.valid.tolist()

    def _score_variants(self, person: pd.DataFrame, rows: pd.DataFrame) -> dict[str, Any]:
        """Scores of rows of a person, with what follows from their changes, such as totals."""
        requirements, schema = requirements_of(self.explainer), self.explainer.schema_
        computed, owner = requirements.computed, np.zeros(len(rows), dtype=np.int64)
        answers = EncodedAnswers.make(schema.encode(person), owner, schema.encode(rows), computed)
        if computed:
            variants = AnswerVariants(answers, computed, requirements.constraints)
            rows = variants.make(np.arange(len(rows)), answers.codes).frame
        scores, desired = self._score(rows)
        return {"scores": scores, "desired": desired, "people": as_records(rows)}

    def explain(self, body: ExplainBody) -> Call:
        """What would have given people the desired decision."""
        rows, constraints = self._read(body.people, "people"), self.read_options(body)
        longest = self.settings.limits.seconds
        seconds = min(body.seconds or longest, longest)
        words = self.settings.words(body.language) if body.details else None

        def work(frames: Sequence[pd.DataFrame]) -> list[Any]:
            result = self.find_answers(_joined(frames), constraints, body, seconds)
            records = result.to_dict()
            if words is not None:
                self._add_details(records, result, constraints, words)
            about = {
                "stopped": result.stopped,
                "seed": self.explainer.seed_,
                "fingerprint": self.fingerprint,
                "version": __version__,
            }
            return [{"people": _numbered(records[part])} | about for part in _parts(frames)]

        # A budget ends a search for all who share it, so requests with a budget search alone.
        key = None if body.seconds is not None else _key(body)
        return Call(work, rows, len(rows), key, seconds)

    def find_answers(
        self,
        people: pd.DataFrame,
        constraints: Sequence[Constraint],
        options: SearchBody,
        seconds: float | None = None,
        show: Callback = lambda progress: None,
    ) -> Counterfactuals[pd.DataFrame]:
        """The final answers to people; the search ends after some seconds with what it found."""

        def callback(progress: Any) -> None:
            check_cancellation()
            show(progress)

        explainer, rules = self._variant(options, seconds), list(constraints)
        result = explainer.explain(people, constraints=rules, callback=callback)
        return explainer.finalize(result, rounding=self.rounding, constraints=rules)

    def _variant(self, options: SearchBody, seconds: float | None) -> MCCE:
        """The explainer with other parameters; what it learned is shared."""
        given = {"search": options.search, "n_counterfactuals": options.n_counterfactuals}
        changed = {name: value for name, value in given.items() if value is not None}
        return copy.copy(self.explainer).set_params(max_seconds=seconds, **changed)

    def _add_details(
        self,
        records: list[Record],
        result: Counterfactuals[pd.DataFrame],
        constraints: Sequence[Constraint],
        words: Labels,
    ) -> None:
        """Add letters, ranges and robustness to the records of a final result."""
        rules = list(constraints)
        letters = write_letters(self.explainer, result, words, ranges=True, constraints=rules)
        robustness = self.explainer.robustness(result, constraints=rules)
        by_answer = dict(zip(robustness.index, as_records(robustness), strict=True))
        texts: Mapping[Hashable, str] = letters.answers["text"].to_dict()
        ranges = _ranges_by_answer(result.ranges)
        for person, record in enumerate(records):
            record["letter"] = letters.people["text"].iloc[person]
            for answer in record["counterfactuals"]:
                key = person, answer["rank"]
                answer["text"], answer["robustness"] = texts[key], by_answer[key]
                answer["usual"] = how_usual(answer["measures"].get("plausibility"))
                answer["ranges"] = ranges.get(key, [])

    def ranges(self, body: RangesBody) -> Call:
        """Whether rows would be accepted, and which other values would do as well."""
        person = self._read([body.person], "person")
        rows = self._read(body.answers, "answers", self.settings.limits.answers)
        rules = [constraint for _, constraint in self._read_rules(body.rules)]

        def work(given: Sequence[Any]) -> list[Any]:
            scores, valid = self._score(rows)
            result = Counterfactuals.from_frame(
                person,
                rows,
                schema=self.explainer.schema_,
                decision=self.explainer.decision_,
                owner=np.zeros(len(rows), dtype=np.int64),
            )
            # Rows without any cell are no answers.
            ranks = np.cumsum(~np.all([is_missing(cells) for _, cells in rows.items()], axis=0))
            table = self.explainer.ranges(result, constraints=rules) if len(result.frame) else None
            ranges = {} if table is None else _ranges_by_answer(table)
            found = zip(valid, scores, ranks.tolist(), strict=True)
            answers = [
                {"valid": accepted, "score": score, "ranges": ranges.get((0, rank), [])}
                for accepted, score, rank in found
            ]
            return [{"answers": answers}]

        return Call(work, size=len(rows))

    def relax(self, body: RelaxBody) -> Call:
        """What could be lifted for a person without an answer, the best first."""
        person, rules = self._read([body.person], "person"), self._read_rules(body.rules)

        def work(given: Sequence[Any]) -> list[Any]:
            constraints = [constraint for _, constraint in rules]
            places = {constraint.name: place for place, constraint in reversed(rules)}
            # Who asks can drop their own rules alone, and waits for them. A limit is more often in
            # the way than one of many features that are to stay.
            own = sorted(places, key=lambda name: "frozen" in body.rules[places[name]])
            table = self.explainer.relax(person, constraints=constraints, only=own)
            if not table["answered"].any():
                table = self.explainer.relax(person, constraints=constraints)
            order = ["answered", "sparsity", "gower"]
            table = table.sort_values(order, ascending=[False, True, True], kind="stable")
            lifts = as_records(table.drop(columns="factual"))
            for lift in lifts:
                is_rule = lift["kind"] == "constraint"
                lift["rule"] = places.get(lift["lifted"]) if is_rule else None
            return [{"lifts": lifts}]

        return Call(work)

    def receipt(self, body: ReceiptBody) -> Call:
        """A receipt of an answer that holds, which ``mcce verify`` checks."""
        person, answer = self._read([body.person], "person"), self._read([body.answer], "answer")
        self._read_rules(body.rules)

        def work(given: Sequence[Any]) -> list[Any]:
            receipt = make_receipt(
                self.explainer,
                person,
                answer,
                rules=body.rules,
                added=[write_entry(rule) for rule in self.settings.rules],
                origin=self.settings.origin or Origin(self.fingerprint, ""),
                made=datetime.now(UTC),
                key=self.settings.key,
            )
            return [receipt]

        return Call(work)

    def _read(
        self, people: Sequence[dict[str, Any]], field: str, most: int | None = None
    ) -> pd.DataFrame:
        _check_number(len(people), most or self.settings.limits.people, field)
        return self.people.read(people, "body", field)

    def read_options(self, body: SearchBody) -> list[Constraint]:
        """The constraints of a request; raises for another option that there is not."""
        for field, choices in (("search", self.searches), ("language", languages())):
            value = getattr(body, field)
            if value is not None and value not in choices:
                message = f"expected one of {list(choices)}, got {shorten(value)}"
                raise RefusalError.of(422, message, "choice", "body", field)
        most = self.settings.limits.answers
        _check_number(body.n_counterfactuals or 1, most, "n_counterfactuals")
        return [constraint for _, constraint in self._read_rules(body.rules)]

    def _read_rules(self, entries: Sequence[Any]) -> list[tuple[int, Constraint]]:
        """The constraints of a request, each with the position of its entry."""
        schema, made = self.explainer.schema_, list[tuple[int, Constraint]]()
        problems = []
        for place, entry in enumerate(entries):
            try:
                constraints = make_constraints(entry)
                _check_number(len(constraints), MAX_CONSTRAINTS, "rules")
                Constraints.bind(constraints, schema)
                _check_where(constraints)
                made += [(place, constraint) for constraint in constraints]
                _check_number(len(made), MAX_CONSTRAINTS, "rules")
            except ConstraintError as error:
                problems.append(Problem(("body", "rules", place), str(error), "rule"))
        try:
            given = Constraints.bind([constraint for _, constraint in made], schema)
            Constraints.bind(self.explainer.constraints, schema).joined(given)
        except ConstraintError as error:
            problems = problems or [Problem(("body", "rules"), str(error), "rule")]
        if problems:
            raise RefusalError(422, problems)
        return made


def _explainer_checksum(explainer: MCCE) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "explainer.mcce")
        explainer.save(path)
        return checksum(path)


def _check_where(constraints: Sequence[Constraint]) -> None:
    """Raise for whom a constraint names by a list, who would be others in a batch."""
    for constraint in constraints:
        where = getattr(constraint, "where", None)
        if where is not None and not isinstance(where, str):
            raise ConstraintError(f"where must be a condition as text, got {shorten(where)}.")


def _check_number(given: int, most: int, field: str) -> None:
    if given > most:
        message = f"expected at most {most}, got {given}"
        raise RefusalError.of(422, message, "too_many", "body", field)


def _ranges_by_answer(table: Any) -> dict[tuple[int, int], list[Record]]:
    """The rows of a table of ranges, by person and rank."""
    by_answer: dict[tuple[int, int], list[Record]] = {}
    for row in as_records(table):
        by_answer.setdefault((row.pop("factual"), row.pop("rank")), []).append(row)
    return by_answer


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


def _numbered(records: list[Record]) -> list[Record]:
    """Records of people by their position in the request."""
    return [record | {"factual": place} for place, record in enumerate(records)]
