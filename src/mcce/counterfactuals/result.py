"""The result: counterfactuals, what they cost, and what became of everybody.

Paper: the sets E_h and the columns of its tables. ``make_counterfactuals`` builds a result of what
a search has computed, :meth:`Counterfactuals.from_frame` of the answers of any other method.

Always true: one row of ``people`` per factual, in the order they came; rows of ``frame`` and
``measures`` stand in that order too, the best of each person first. Labels may repeat: ``owner``
says by position whose row is whose. Results are computed in pandas and converted at the end.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, cast

import numpy as np
import pandas as pd

from ..kernels import IntArray
from ..predictors.decision import Decision, ScoredRows
from ..tables.frames import PANDAS_ADAPTER, FrameAdapter, FrameT
from ..tables.roles import Role, actors, check_roles
from ..tables.schema import EncodedRows, Schema
from .anonymous import AnonymousAnswers, take_answers
from .parts import (
    ALREADY,
    ANSWERED,
    UNANSWERED,
    Reason,
    ResultRows,
    list_changes,
    make_people,
    read_answers,
    summarize,
)
from .records import make_records
from .rendering import style_pandas, style_polars, write_table

# Fields with rows of data, and with tables about them.
_ROWS, _TABLES = ("factuals", "frame", "nearest_misses"), ("measures", "people")
NO_REASON = "the method returned no answer"
WITHDRAWN = "every answer was refused when it was checked again"


@dataclass(frozen=True, eq=False)
class Counterfactuals(Generic[FrameT]):
    """Counterfactual explanations of a frame of people, in the kind of frame that they came in.

    ``MCCE.explain`` returns one; :meth:`from_frame` makes one of the answers of another method. In
    a kind of frame without an index the rows of ``frame``, ``factuals`` and ``nearest_misses``
    carry no labels, and ``measures``, ``people`` and ``changes()`` have them as columns:
    ``factual`` (the position) and ``rank``. Rows of ``measures`` go with those of ``frame``; rows
    of ``nearest_misses`` with those of ``people`` that have a ``nearest_score``.

    Parameters
    ----------
    factuals
        The people, as they came.
    frame
        Counterfactuals, with the columns and dtypes of the people; index (factual, rank). A dtype
        that cannot hold a value from training is widened.
    measures
        For each of them: score, sparsity, gower, l1 (the sum over features: n_features * gower),
        and the distance under its own name if it is not Gower's. How sure they are: ``margin``
        (how far the score is inside the desired set; NaN for labels that do not follow from
        probabilities), ``margin_steps`` (the same in typical score differences of one small step
        of all numbers, for probabilities on the scale of their logit), ``robust`` (share of such
        steps after which the decision stays) and ``margin_word``: "narrow", "fair", "wide" or "".
        Steps are predicted by the surrogate, without predictor calls; undefined values are NaN, as
        after the paper's search, whose fit learns no surrogate. If fit learned what accepted rows
        look like, also ``plausibility`` (share of real accepted rows, held out, that look at least
        as unusual), ``knn_distance_quantile`` (share with a smaller kNN distance) and
        ``no_reference_group`` (no accepted training row has the person's immutable values). After
        all searches but the paper's also ``n_actions``: changes that are no consequences of others.
        After an exact search also ``proven``: nothing that the model could draw is better. After
        :meth:`from_frame` also ``valid``.
    owner : (n_counterfactuals,)
        Position in ``factuals`` of the person each row belongs to.
    people
        One row per person: ``status`` ("answered", "already desired" or "no answer"), ``reason``
        and ``reason_kind`` if there is none, own ``score``, ``n_counterfactuals``,
        ``unseen_immutable`` (immutable features with a value that training never held), and score,
        sparsity and gower of the nearest miss. A ``reason_kind`` is "stopped", "no_desired",
        "proven", "refused", "implausible", "too_many_changes", "too_far", "ruled_out", "withdrawn"
        or "unknown".
    nearest_misses
        For each person without an answer, the candidate that came nearest; index factual. Nobody
        has one if no training row has the desired decision or the search was stopped: then no
        candidates were compared.
    n_evaluated
        Rows scored by the predictor during the search. The factuals and the last call on ``frame``
        are not counted.
    n_unstable
        Counterfactuals withdrawn because the predictor decided differently when called again. 0
        for a deterministic predictor.
    stopped
        Whether the search ended before everybody was settled: time was up, or it was stopped.
    timings
        Seconds by step, added up over threads, and ``total`` by the wall clock. ``validity`` is
        where candidates are scored by the predictor.
    min_margin
        The margin that the search asked for, by default or by yours. By default, people without
        such an answer have one with a smaller margin.
    roles
        Who can act on a column, by its name; see :meth:`with_roles`.
    anonymous
        The answers with ranges and sets of values, of :func:`mcce.privacy.anonymize`; see
        :class:`AnonymousAnswers`.
    consequences
        Columns that were recomputed because others changed.
    adapter
        Converts pandas frames to the kind of this result: ``adapter.table_to_native(frame)``.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), immutable=["age"])
    >>> result = explainer.set_params(search="near").fit(bank).explain(bank.iloc[[3]])
    >>> result
    Counterfactuals(1 people: 1 answered, 0 already desired, 0 no answer; 1 rows)
    >>> result.measures[["score", "sparsity", "gower", "l1"]]
                  score  sparsity     gower        l1
    factual rank
    3       1      70.0         1  0.184211  0.368421
    """

    factuals: FrameT
    frame: FrameT
    measures: FrameT
    owner: IntArray
    people: FrameT
    nearest_misses: FrameT
    n_evaluated: int
    n_unstable: int
    stopped: bool
    timings: Mapping[str, float]
    min_margin: float = 0.0
    roles: Mapping[Hashable, Role] = field(default_factory=dict)
    anonymous: AnonymousAnswers[FrameT] | None = None
    consequences: tuple[Hashable, ...] = field(default=(), repr=False)
    losses: tuple[Hashable, ...] = field(default=(), repr=False)
    adapter: FrameAdapter = field(default=PANDAS_ADAPTER, repr=False)
    _in_pandas: Counterfactuals[pd.DataFrame] | None = field(default=None, repr=False)
    # Of final answers, numbered in the column "answer".
    _ranges: pd.DataFrame | None = field(default=None, repr=False)

    @classmethod
    def from_frame(
        cls,
        factuals: FrameT,
        frame: Any,
        *,
        schema: Schema,
        decision: Decision,
        owner: Any = None,
        reasons: Mapping[int, str] | None = None,
        n_evaluated: int = 0,
        timings: Mapping[str, float] | None = None,
    ) -> Counterfactuals[FrameT]:
        """The answers of any method as a result.

        Answers are scored by a fresh call of the predictor. Those that it does not decide as
        desired are kept, with False in the column ``valid`` of ``measures``: whether a method
        succeeds is for the reader to see. Answers for people who are already decided as desired
        are left out, as in a result of ``MCCE``.

        Parameters
        ----------
        factuals
            The people: a pandas or polars frame, a pyarrow table or a 2-D array.
        frame
            The answers, in any kind of frame, with the columns of the people in any order. A row
            whose cells are all missing is no answer.
        schema
            The columns of the training data: ``Schema.learn(training, immutable=[...])``.
        decision
            The predictor and what is desired:
            ``mcce.predictors.make_decision(predictor, desired)``.
        owner : (n_rows,), optional
            Position in ``factuals`` of the person each row of ``frame`` belongs to; the rows of a
            person stand best first. None: one row per person, in the same order.
        reasons
            Why people have no answer, by position in ``factuals``. Their kind is "unknown".
        n_evaluated
            Rows that the method had scored by the predictor.
        timings
            Seconds by step, and ``total``.

        Returns
        -------
        Counterfactuals
            In the kind of frame of ``factuals``. A column of ``frame`` has the dtype of the people
            where that holds every answer, and otherwise its own.

        Raises
        ------
        SchemaError
            If the columns are not those of training, or rows and people do not match.

        Examples
        --------
        >>> from mcce.predictors import make_decision
        >>> training = pd.DataFrame({"age": [20, 40, 60], "salary": [30, 50, 70]})
        >>> people = pd.DataFrame({"age": [25, 35], "salary": [40, 45]})
        >>> answers = pd.DataFrame({"age": [25, None], "salary": [60, None]})
        >>> result = Counterfactuals.from_frame(
        ...     people,
        ...     answers,
        ...     schema=Schema.learn(training, immutable=["age"]),
        ...     decision=make_decision(lambda frame: frame["salary"], (55, 100)),
        ... )
        >>> result.people[["status", "reason"]]
                    status                         reason
        factual
        0         answered
        1        no answer  the method returned no answer
        >>> result.measures[["sparsity", "l1", "valid"]]
                      sparsity   l1  valid
        factual rank
        0       1            1  0.5   True
        """
        rows = schema.encode(factuals)
        scored = decision.score(rows.frame)
        answers = read_answers(frame, rows, decision, owner)
        answers = answers.take(~scored.valid[answers.owner])
        without = np.setdiff1d(np.flatnonzero(~scored.valid), answers.owner).tolist()
        given = reasons or {}
        return make_counterfactuals(
            rows,
            scored,
            answers,
            answers.take(np.empty(0, dtype=np.int64)),
            {person: Reason("unknown", given.get(person, NO_REASON)) for person in without},
            n_evaluated=n_evaluated,
            timings=timings or {},
        )

    def to_pandas(self) -> Counterfactuals[pd.DataFrame]:
        """The same result in pandas, with the labels as indexes.

        Returns
        -------
        Counterfactuals
            The result; this one if it is in pandas already.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> explainer.explain(bank.iloc[[3]]).to_pandas().frame
                      age  salary
        factual rank
        3       1      52      70
        """
        return self._in_pandas or cast("Counterfactuals[pd.DataFrame]", self)

    def with_roles(self, roles: Mapping[Hashable, Role]) -> Counterfactuals[FrameT]:
        """The same result, with who can act on which column.

        Parameters
        ----------
        roles
            "action" (the person), "ours" (whoever decides) or "past" (nobody), by column name.

        Returns
        -------
        Counterfactuals
            The result; its :meth:`changes` have a column ``actor``.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> explainer.explain(bank.iloc[[3]]).with_roles({"salary": "action"}).changes()
           factual  rank feature before after    kind   actor
        0        3     1  salary     56    70  action  person
        """
        names = list(self.to_pandas().frame.columns)
        inner = None if self._in_pandas is None else self._in_pandas.with_roles(roles)
        return replace(self, roles=check_roles(roles, names), _in_pandas=inner)

    @property
    def missing(self) -> FrameT:
        """The rows of ``people`` without an answer, with the reasons."""
        people = self.to_pandas().people
        return self._native(people[people["status"] == UNANSWERED])

    @property
    def final(self) -> bool:
        """Whether the answers are final: rounded, checked and measured by ``MCCE.finalize``."""
        return self.to_pandas()._ranges is not None

    @property
    def ranges(self) -> FrameT | None:
        """Which other values would do as well as those of final answers, as ``MCCE.ranges`` says.

        None if the answers are not final.
        """
        table = self.to_pandas()._ranges
        return None if table is None else label_answers(self, table)

    def changes(self) -> FrameT:
        """One row per changed cell: factual, rank, feature, before, after, kind.

        ``kind`` is what the change is: ``"consequence"`` if the column was recomputed because
        another one changed (see ``consequences`` of :class:`mcce.Search`), otherwise ``"action"``.
        With ``roles`` of columns also ``actor``, who would have to act: "person", "us", "nobody",
        or "" if the column has none.

        Cells keep their values where a column may hold several types; otherwise they are strings.

        Returns
        -------
        frame
            The changed cells, by person and rank.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> explainer.explain(bank.iloc[[3]]).changes()
           factual  rank feature before after    kind
        0        3     1  salary     56    70  action
        """
        return self._native(self.to_pandas()._changes())

    def summary(self) -> FrameT:
        """One row of totals and means, like a row of the paper's tables.

        Returns
        -------
        frame
            How many people have which status, the means of the measures over people, the rows
            scored per person and the seconds.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> summary = explainer.explain(bank).summary()
        >>> summary[["n_factuals", "n_answered", "n_already_desired", "n_no_answer", "sparsity"]]
           n_factuals  n_answered  n_already_desired  n_no_answer  sparsity
        0          20          10                 10            0       1.0
        """
        inside = self.to_pandas()
        totals = summarize(inside.people, inside.measures, self.n_evaluated, self.timings)
        return self._native(totals)

    def to_dict(self) -> list[dict[str, Any]]:
        """Everything about everybody in plain Python types, which ``json.dumps`` takes.

        Returns
        -------
        list of dict
            One for each person: the columns of ``people``, the label ``factual``, the person's row
            as ``person``, and ``counterfactuals``, each with ``rank``, ``row``, ``measures`` and
            ``changes``. Missing cells and undefined numbers are None, dates and durations are in
            ISO 8601, infinite numbers are "Infinity" or "-Infinity", and any other object is its
            string.

        Raises
        ------
        SchemaError
            If two columns have the same name once names are strings, as keys of JSON are.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> (record,) = explainer.explain(bank.iloc[[3]]).to_dict()
        >>> record["factual"], record["status"], record["counterfactuals"][0]["row"]
        (3, 'answered', {'age': 52, 'salary': 70})
        """
        inside = self.to_pandas()
        tables = {"factuals": inside.factuals, "frame": inside.frame, "measures": inside.measures}
        return make_records(
            **tables, people=inside.people, changes=inside._changes(), owner=self.owner
        )

    def style(self) -> Any:
        """The counterfactuals with changed cells marked, for notebooks, HTML files and Excel.

        Returns
        -------
        pandas.io.formats.style.Styler or great_tables.GT
            For polars frames a great table, for all others a styler of pandas. Text is escaped.

        Raises
        ------
        MissingExtraError
            If Jinja2 or, for polars, great-tables is not installed.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
        >>> "font-weight: bold" in explainer.explain(bank.iloc[[3]]).style().to_html()
        True
        """
        inside = self.to_pandas()
        before = inside.factuals.iloc[self.owner]
        if getattr(self.adapter, "library", None) == "polars":
            return style_polars(before, inside.frame, self.adapter)
        return style_pandas(before, inside.frame, self.owner)

    def _native(self, table: pd.DataFrame) -> FrameT:
        return cast("FrameT", self.adapter.table_to_native(table))

    def _repr_html_(self) -> str:
        inside = self.to_pandas()
        return write_table(repr(self), inside.factuals, inside.frame, self.owner)

    def _changes(self: Counterfactuals[pd.DataFrame]) -> pd.DataFrame:
        before = self.factuals.iloc[self.owner]
        listed = list_changes(before, self.frame, self.consequences, self.losses)
        return listed.assign(actor=actors(listed["feature"], self.roles)) if self.roles else listed

    def __repr__(self) -> str:
        result = self.to_pandas()
        status = result.people["status"].value_counts()
        counts = ", ".join(f"{status.get(s, 0)} {s}" for s in (ANSWERED, ALREADY, UNANSWERED))
        return f"Counterfactuals({len(result.people)} people: {counts}; {len(result.frame)} rows)"


def make_counterfactuals(
    rows: EncodedRows,
    scored: ScoredRows,
    answers: ResultRows,
    misses: ResultRows,
    reasons: Mapping[int, Reason],
    *,
    n_evaluated: int = 0,
    n_unstable: int = 0,
    stopped: bool = False,
    timings: Mapping[str, float],
    consequences: tuple[Hashable, ...] = (),
    losses: tuple[Hashable, ...] = (),
    min_margin: float = 0.0,
) -> Counterfactuals[Any]:
    """A result in the kind of frame of the factuals."""
    labels = rows.index
    if isinstance(labels, pd.MultiIndex):
        labels = labels.to_flat_index()
    labels = labels.rename("factual")
    result = Counterfactuals(
        factuals=rows.as_given().set_axis(labels),
        **_answer_fields(answers, labels),
        people=make_people(rows, scored, answers, misses, reasons).set_axis(labels),
        nearest_misses=misses.frame.set_axis(labels.take(misses.owner)),
        n_evaluated=n_evaluated,
        n_unstable=n_unstable,
        stopped=stopped,
        timings=dict(timings),
        min_margin=min_margin,
        consequences=consequences,
        losses=losses,
    )
    return _to_native(result, rows.adapter)


def _answer_fields(answers: ResultRows, labels: pd.Index[Any]) -> dict[str, Any]:
    """The fields of a result that hold its answers."""
    index = pd.MultiIndex.from_arrays(
        [labels.take(answers.owner), answers.rank], names=["factual", "rank"]
    )
    measures = {name: answers.measures[name] for name in ("score", "sparsity", "gower")}
    measures["l1"] = measures["gower"] * answers.frame.shape[1]
    # With its own dtype each, or pandas 3 would choose another for strings.
    columns = {
        name: pd.Series(values, index=index, dtype=values.dtype)
        for name, values in (measures | dict(answers.measures)).items()
    }
    return {
        "frame": answers.frame.set_axis(index),
        "measures": pd.DataFrame(columns, index=index),
        "owner": answers.owner,
    }


def with_final_answers(
    result: Counterfactuals[FrameT],
    answers: ResultRows,
    kept: IntArray,
    ranges: pd.DataFrame,
    n_withdrawn: int,
) -> Counterfactuals[FrameT]:
    """The same result with its answers in their final form.

    ``kept`` are the positions that the answers had; ``ranges`` are numbered by those they have.
    """
    inside = result.to_pandas()
    people, fields = inside.people.copy(), _answer_fields(answers, inside.people.index)
    people["n_counterfactuals"] = np.bincount(answers.owner, minlength=len(people))
    lost = (people["status"] == ANSWERED) & (people["n_counterfactuals"] == 0)
    people.loc[lost, ["status", "reason", "reason_kind"]] = UNANSWERED, WITHDRAWN, "withdrawn"
    widened = inside.anonymous
    if widened is not None:
        widened = take_answers(widened, kept, fields["frame"].index)
    final = replace(
        inside,
        **fields,
        people=people,
        anonymous=None,
        n_unstable=inside.n_unstable + n_withdrawn,
        _ranges=ranges,
    )
    native = cast("Counterfactuals[FrameT]", _to_native(final, result.adapter))
    return native if widened is None else with_anonymous(native, widened)


def _to_native(
    result: Counterfactuals[pd.DataFrame], adapter: FrameAdapter
) -> Counterfactuals[Any]:
    """The same result in another kind of frame."""
    if not adapter.needs_conversion:
        return result
    rows = {name: adapter.rows_to_native(getattr(result, name)) for name in _ROWS}
    tables = {name: adapter.table_to_native(getattr(result, name)) for name in _TABLES}
    return replace(result, **rows, **tables, adapter=adapter, _in_pandas=result)


def take_people(
    result: Counterfactuals[pd.DataFrame], places: IntArray, labels: pd.Index[Any] | None = None
) -> Counterfactuals[pd.DataFrame]:
    """The result of some of its people, in their order; with other labels, if these are given.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> result = explainer.explain(bank.head(3))
    >>> take_people(result, np.array([0, 2])).people.index.tolist()
    [0, 2]
    """
    labels = result.people.index[places] if labels is None else labels
    answers = np.flatnonzero(np.isin(result.owner, places))
    owner = np.searchsorted(places, result.owner[answers])
    ranks = result.frame.index.get_level_values("rank")[answers]
    index = pd.MultiIndex.from_arrays([labels.take(owner), ranks], names=["factual", "rank"])
    missed = result.people["nearest_score"].notna().to_numpy()
    misses = np.flatnonzero(np.isin(np.flatnonzero(missed), places))
    widened, ranges = result.anonymous, result._ranges
    if ranges is not None:
        ranges = take_ranges(ranges, answers)
    return replace(
        result,
        factuals=result.factuals.iloc[places].set_axis(labels),
        people=result.people.iloc[places].set_axis(labels),
        frame=result.frame.iloc[answers].set_axis(index),
        measures=result.measures.iloc[answers].set_axis(index),
        nearest_misses=result.nearest_misses.iloc[misses].set_axis(labels[missed[places]]),
        owner=owner,
        anonymous=None if widened is None else take_answers(widened, answers, index),
        _ranges=ranges,
    )


def number_people(
    result: Counterfactuals[pd.DataFrame], positions: IntArray
) -> Counterfactuals[pd.DataFrame]:
    """The same result with numbers instead of labels, which may repeat."""
    return take_people(result, np.arange(len(positions)), pd.Index(positions, name="factual"))


def take_ranges(ranges: pd.DataFrame, answers: IntArray) -> pd.DataFrame:
    """The ranges of some answers, numbered by the place of each among these."""
    taken = ranges[ranges["answer"].isin(answers)]
    place = pd.Series(np.arange(answers.size), index=answers)[taken["answer"]]
    return taken.assign(answer=place.to_numpy()).sort_values(
        "answer", kind="stable", ignore_index=True
    )


def ranges_by_answer(result: Counterfactuals[pd.DataFrame]) -> list[list[dict[Any, Any]]]:
    """The ranges of final answers, a list of records for each."""
    assert result._ranges is not None
    by_answer: list[list[dict[Any, Any]]] = [[] for _ in range(len(result.frame))]
    for row in result._ranges.to_dict("records"):
        by_answer[row["answer"]].append(row)
    return by_answer


def label_answers(result: Counterfactuals[FrameT], table: pd.DataFrame) -> FrameT:
    """A table about answers by number, with the labels of these."""
    labels = result.to_pandas().frame.index.to_frame(index=False)
    labels = labels.iloc[table["answer"].to_numpy()].reset_index(drop=True)
    table = table.reset_index(drop=True).drop(columns="answer")
    return cast("FrameT", result.adapter.table_to_native(labels.join(table)))


def with_anonymous(
    result: Counterfactuals[FrameT], answers: AnonymousAnswers[pd.DataFrame]
) -> Counterfactuals[FrameT]:
    """The same result with widened answers."""
    if result._in_pandas is None:
        return replace(result, anonymous=cast("AnonymousAnswers[FrameT]", answers))
    native = replace(
        cast("AnonymousAnswers[Any]", answers),
        frame=result.adapter.rows_to_native(answers.frame),
        measures=result.adapter.table_to_native(answers.measures),
        cells=result.adapter.table_to_native(answers.cells),
    )
    inner = with_anonymous(result._in_pandas, answers)
    return replace(result, anonymous=native, _in_pandas=inner)
