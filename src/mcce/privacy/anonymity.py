"""Anonymity: answers widened until at least k training people fit.

Beyond the paper; after Goethals, Sörensen and Martens, "The privacy issue of counterfactual
explanations: explanation linkage attacks". Each quasi-identifier becomes a range or a set of
values, immutable ones around the person's own value. Greedy: of all wider cells the one that brings
most people for its loss, as long as the predictor still accepts a share of at least
``min_pureness`` of the values inside. Where nothing does, the cell with the largest share is taken,
and the answer is reported as not pure.

Pureness is a share of the training values inside; all combinations of them are scored if they are
few, otherwise random ones. The answer's other values stay as they are, and so do immutable ones;
columns that follow from others follow, and combinations in which one would leave its own cell
cannot occur, so they do not count.

Always true: at least k training people are in the cells of every answer, which hold the answer
itself; a step brings people inside, or nearer, so that it ends at the latest with everything; an
answer's cells do not depend on the others, their order or the size of a call; measures that are
released tell neither how wide the training data are nor how many values they have.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from ..analysis.answers import AnswerVariants, EncodedAnswers, Requirements
from ..candidates import CandidateRows
from ..counterfactuals.anonymous import AnonymousAnswers
from ..counterfactuals.result import Counterfactuals, with_anonymous
from ..errors import ParameterError, SchemaError, shorten
from ..explainer import MCCE, requirements_of
from ..kernels import BoolArray, Codes, FloatArray, IntArray, draw_keys, person_keys, pick
from ..parameters import check_count, check_real
from ..predictors.decision import ROWS_PER_CALL
from ..protocols import is_private
from ..relations.consequences import ComputedColumn
from ..tables.columns import differ
from ..tables.frames import FrameT
from ..tables.roles import check_names
from ..tables.schema import OWN, EncodedRows, Schema
from .anonymity_cells import NO_RUN, AnswerValue, Cell, WidenedColumn, answer_values, describe_cell

# Rows that are scored to choose a cell, and to measure the pureness of an answer.
ROWS_TO_CHOOSE, ROWS_TO_MEASURE = 100, 1000
# Wider cells that are tried at a time, in all, and of each feature.
AT_ONCE, MAX_TRIED_CELLS, MAX_TRIED_OF_FEATURE = 3, 18, 8
# The same in all, once nothing is pure enough.
MAX_LAST_CELLS = 6
# Gains count people who miss the fewest cells first, then those who miss more.
N_LEVELS = 3
# The number of an answer, and the cell of each quasi-identifier.
Widened: TypeAlias = tuple[int, Sequence[Cell]]


def anonymize(
    explainer: MCCE,
    result: Counterfactuals[FrameT],
    training: Any,
    *,
    anonymity: int,
    quasi_identifiers: Sequence[Hashable],
    min_pureness: float = 0.9,
    constraints: Any = None,
) -> Counterfactuals[FrameT]:
    """The result with ranges and sets of values that at least ``anonymity`` training people fit.

    Parameters
    ----------
    explainer
        The fitted explainer that gave the result.
    result
        What :meth:`mcce.MCCE.explain` returned.
    training
        The rows that the explainer was fitted on, which it does not keep.
    anonymity
        How many training people every answer must fit, at least 2.
    quasi_identifiers
        The columns by which people could be recognised, whether they can change or not.
    min_pureness
        The share of the combinations of widened values that the predictor must accept, where
        possible; ``measures`` of the answers says where it is not.
    constraints
        The further constraints of that call of ``explain``, if it had some.

    Returns
    -------
    Counterfactuals
        The same result, with an :class:`mcce.AnonymousAnswers` as ``anonymous``. Letters, reports
        and files of it tell the ranges and sets.

    Raises
    ------
    NotFittedError, ParameterError, SchemaError
        If the explainer is not fitted or is private, a parameter cannot have its value, or the
        result or the training rows are those of another explainer.

    Examples
    --------
    >>> from mcce import MCCE
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"], (70, 100), search="near").fit(bank)
    >>> exact = explainer.explain(bank.iloc[[3]])
    >>> result = anonymize(explainer, exact, bank, anonymity=3, quasi_identifiers=["salary"])
    >>> result.anonymous.frame
                  age    salary
    factual rank
    3       1      52  70 to 75
    """
    if not isinstance(explainer, MCCE):
        raise ParameterError(f"explainer must be a fitted MCCE, got {shorten(explainer)}.")
    requirements, fitted = requirements_of(explainer, constraints), explainer.fitted_
    if is_private(fitted.generator):
        raise ParameterError(
            f"The generator {type(fitted.generator).__name__} is private, but anonymity counts "
            "training people without noise. Use its answers as they are: what a private explainer "
            "answers is protected already."
        )
    check_real("min_pureness", min_pureness, "a number from 0 to 1", most=1.0)
    known = pd.DataFrame(columns=fitted.schema.names)
    names = check_names(quasi_identifiers, known, "quasi_identifiers")
    if not names:
        raise ParameterError(
            "quasi_identifiers must name at least one column by which people could be recognised, "
            f"got {shorten(quasi_identifiers)}."
        )
    rows = _read_training(fitted.schema, training, names, anonymity)
    # A row counts as accepted by its decision alone, whatever margin the search keeps.
    requirements = replace(requirements, decision=fitted.decision)
    answers = EncodedAnswers.read(fitted.schema, result, requirements.computed)
    columns = _columns_to_widen(fitted.schema, names, requirements.computed)
    meter = PurenessMeter(answers, columns, requirements, fitted.seed)
    widener = Widener(answers, columns, rows.codes, meter, int(anonymity), float(min_pureness))
    return with_anonymous(result, _tabulate(widener, widener.run(), result.to_pandas().frame))


def _read_training(
    schema: Schema, training: Any, names: Sequence[Hashable], anonymity: Any
) -> EncodedRows:
    """Training rows, checked: enough people, with values that the explainer knows."""
    rows = schema.encode(training)
    check_count("anonymity", anonymity, least=2)
    if int(anonymity) > len(rows):
        raise ParameterError(
            f"anonymity={anonymity} asks for more people than training has: {len(rows)}."
        )
    for name in dict.fromkeys([*names, *(schema.names[at] for at in schema.mutable)]):
        n_unknown = int((rows.codes[schema.position_of[name]] < 0).sum())
        if n_unknown:
            raise SchemaError(
                f"training has {n_unknown} of {len(rows)} rows with a value of {name!r} that the "
                "explainer has never seen. Pass the rows that it was fitted on, or some of them."
            )
    return rows


def _columns_to_widen(
    schema: Schema, names: Sequence[Hashable], targets: Sequence[ComputedColumn]
) -> list[WidenedColumn]:
    """All that is widened, so that nothing gives it away.

    A column that follows from a quasi-identifier is widened too, and so is what a quasi-identifier
    follows from.
    """
    place_of = {int(at): place for place, at in enumerate(schema.mutable)}
    positions = {schema.position_of[name] for name in names}
    places, size = {place_of[at] for at in positions if at in place_of}, -1
    while size < len(places):
        size = len(places)
        for target in targets:
            tied = {target.place, *target.actions.tolist()}
            if target.place in places or places.intersection(target.actions.tolist()):
                places |= tied if target.place in places else {target.place}
    positions |= {int(schema.mutable[place]) for place in places}
    return [WidenedColumn(schema.features[at], at, place_of.get(at)) for at in sorted(positions)]


@dataclass
class WidenedAnswer:
    """An answer that is being widened."""

    answer: int
    own: Sequence[AnswerValue]
    cells: list[Cell]
    crowd: int
    is_pure: bool = True


def _tabulate(
    widener: Widener, widened: Sequence[WidenedAnswer], exact: pd.DataFrame
) -> AnonymousAnswers[pd.DataFrame]:
    """What was found, with the labels of the result."""
    features, index = [column.feature for column in widener.columns], exact.index
    described = [
        {"feature": feature.name, **describe_cell(feature, own, cell)}
        for one in widened
        for feature, own, cell in zip(features, one.own, one.cells, strict=True)
    ]
    names = ["feature", "kind", "low", "high", "levels", "missing", "text"]
    cells = pd.DataFrame(described, columns=names, dtype=object).astype({"missing": bool})
    frame = exact.copy()
    for number, feature in enumerate(features):
        texts = cells["text"].iloc[number :: len(features)]
        frame[feature.name] = pd.Series(texts.to_numpy(), index=index, dtype=object)
    return AnonymousAnswers(
        frame=frame,
        measures=_measure(widener, widened).set_axis(index),
        cells=index.repeat(len(features)).to_frame(index=False).join(cells),
        anonymity=widener.anonymity,
        quasi_identifiers=tuple(feature.name for feature in features),
        min_pureness=widener.min_pureness,
    )


def _measure(widener: Widener, widened: Sequence[WidenedAnswer]) -> pd.DataFrame:
    """The measures of widened answers.

    Shares are rounded down to whole percents: exact ones would tell how many training values are
    inside.
    """
    cells = [(one.answer, one.cells) for one in widened]
    shown = [(one.answer, widener.shown_cells(one, one.cells)) for one in widened]
    pureness, of_changes = (widener.meter.measure(c, ROWS_TO_MEASURE)[0] for c in (cells, shown))
    blurred = [
        sum(widener.blurs(one.answer, at, cell) for at, cell in enumerate(one.cells))
        for one in widened
    ]
    return pd.DataFrame(
        {
            "crowd": np.array([one.crowd for one in widened], dtype=np.int64),
            "pureness": _whole_percents(pureness),
            "pureness_of_changes": _whole_percents(of_changes),
            "pure": np.minimum(pureness, of_changes) >= widener.min_pureness,
            "n_blurred": np.array(blurred, dtype=np.int64),
        }
    )


def _whole_percents(shares: FloatArray) -> FloatArray:
    # With room for the last bit of 0.29 * 100.
    return np.floor(shares * 100 + 1e-9) / 100


class Widener:
    """Widens answers, cell by cell, until each has a crowd of at least ``k`` training people."""

    def __init__(
        self,
        answers: EncodedAnswers,
        columns: Sequence[WidenedColumn],
        training: Codes,
        meter: PurenessMeter,
        anonymity: int,
        min_pureness: float,
    ) -> None:
        self.answers, self.columns, self.meter = answers, columns, meter
        self.anonymity, self.min_pureness = anonymity, min_pureness
        # Which columns each answer changes, shape (n_columns, n_answers).
        same = np.zeros(len(answers), dtype=bool)
        self.changed: BoolArray = np.array(
            [same if one.place is None else answers.changed[one.place] for one in columns]
        )
        self._training = training[[one.position for one in columns]]
        self._n_codes = [one.feature.n_codes for one in columns]

    def run(self) -> list[WidenedAnswer]:
        """The answers, each with a crowd that is large enough."""
        rows, widened = self.answers.rows, []
        own_values = [
            answer_values(rows.frame.iloc[:, one.position], rows.codes[one.position])
            for one in self.columns
        ]
        for answer, own in enumerate(zip(*own_values, strict=True)):
            cells = [one.start(value) for one, value in zip(self.columns, own, strict=True)]
            widened.append(WidenedAnswer(answer, own, cells, self._count(cells)))
        while small := [one for one in widened if one.crowd < self.anonymity]:
            for one, cells in zip(small, self._choose(small), strict=True):
                one.cells, one.crowd = cells, self._count(cells)
        for at in range(len(self.columns)):
            self._narrow(widened, at)
        return widened

    def blurs(self, answer: int, at: int, cell: Cell) -> bool:
        """Whether a cell of a changed feature holds the person's own value as well."""
        factuals, owner = self.answers.factuals, self.answers.owner[answer]
        own = factuals.tree_codes[self.columns[at].position, owner]
        return bool(self.changed[at, answer]) and (
            cell.is_whole or cell.run[0] <= own <= cell.run[1] or own in cell.levels
        )

    def shown_cells(self, one: WidenedAnswer, cells: Sequence[Cell]) -> list[Cell]:
        """The cells that the person is shown: what does not change stays as it is."""
        shown = []
        for at, (column, cell) in enumerate(zip(self.columns, cells, strict=True)):
            if not self.changed[at, one.answer]:
                cell = column.start(one.own[at])
            elif not column.feature.ordered:
                owner = self.answers.owner[one.answer]
                mine = self.answers.factuals.codes[column.position, owner]
                others = tuple(code for code in cell.codes.tolist() if code != mine)
                cell = replace(cell, run=NO_RUN, levels=others)
            shown.append(cell)
        return shown

    def _count(self, cells: Sequence[Cell]) -> int:
        """How many training people are in some cells."""
        return int(np.sum(self._misses(cells).sum(axis=0) == 0))

    def _misses(self, cells: Sequence[Cell]) -> BoolArray:
        """Which values of training people are outside of their cell, (n_columns, n_train)."""
        triples = zip(cells, self._n_codes, self._training, strict=True)
        return np.stack([~cell.inside(n_codes)[codes] for cell, n_codes, codes in triples])

    def _tally(self, at: int, some: BoolArray) -> IntArray:
        """How many of some people have each code of one column."""
        return np.bincount(self._training[at][some], minlength=self._n_codes[at])

    def _choose(self, small: Sequence[WidenedAnswer]) -> list[list[Cell]]:
        """The next cells of each: the first that are pure enough, otherwise the best."""
        chosen: dict[int, list[Cell]] = {}
        best: dict[int, tuple[float, list[Cell]]] = {}
        moves = {number: self._all_moves(one) for number, one in enumerate(small)}
        while tried := [
            (number, move)
            for number, theirs in moves.items()
            if number not in chosen
            for move in islice(theirs, AT_ONCE)
        ]:
            shares = self._shares([(small[number], move.cells) for number, move in tried])
            for (number, move), share in zip(tried, shares, strict=True):
                if number not in best or share - move.cost > best[number][0]:
                    best[number] = share - move.cost, move.cells
                if number not in chosen and not move.blurs and share >= self.min_pureness:
                    chosen[number] = move.cells
        for number, one in enumerate(small):
            one.is_pure &= number in chosen
        return [chosen.get(number, best[number][1]) for number in range(len(small))]

    def _all_moves(self, one: WidenedAnswer) -> Iterator[_Move]:
        """Wider cells of an answer in the order in which they are tried, found when needed."""
        # Cells that are not pure rarely become pure when widened.
        for level in range(N_LEVELS if one.is_pure else 1):
            yield from self._moves(one, level)

    def _narrow(self, widened: Sequence[WidenedAnswer], at: int) -> None:
        """Undo steps that later ones made needless, in one column of all answers."""
        tried: list[tuple[WidenedAnswer, list[Cell]]] = []
        for one in widened:
            misses = self._misses(one.cells)
            misses[at] = False
            counts = self._tally(at, misses.sum(axis=0) == 0)
            inner = self.columns[at].narrower(one.own[at], one.cells[at])
            enough = [cell for cell in inner if counts[cell.codes].sum() >= self.anonymity][
                :AT_ONCE
            ]
            if enough:
                # The last one is the present cell: nothing may become less pure.
                every = [*enough, one.cells[at]]
                tried += [(one, [*one.cells[:at], cell, *one.cells[at + 1 :]]) for cell in every]
        with_shares = list(zip(tried, self._shares(tried), strict=True))
        now = {one.answer: share for (one, _), share in with_shares}
        # The narrowest comes last, and stays.
        for (one, cells), share in reversed(with_shares):
            if share >= min(self.min_pureness, now[one.answer]):
                one.cells, one.crowd = cells, self._count(cells)

    def _shares(self, tried: Sequence[tuple[WidenedAnswer, list[Cell]]]) -> list[float]:
        """How pure cells are at least: all of them, and those that the person is shown."""
        cells = [(one.answer, cells) for one, cells in tried]
        cells += [(one.answer, self.shown_cells(one, cells)) for one, cells in tried]
        share, error = self.meter.measure(cells, ROWS_TO_CHOOSE)
        # Where no combination can occur, nothing is accepted.
        at_least = np.nan_to_num(share - error, nan=0.0).reshape(2, len(tried))
        return at_least.min(axis=0).tolist()

    def _moves(self, one: WidenedAnswer, level: int) -> list[_Move]:
        """Wider cells of an answer, those that bring most people for their loss first.

        People who miss the fewest cells count; at further levels, those who miss more.
        """
        misses, needed = self._misses(one.cells), self.anonymity - one.crowd
        n_misses = misses.sum(axis=0)
        numbers = np.unique(n_misses[n_misses > 0])
        number = int(numbers[level]) if level < numbers.size else -1
        moves: list[tuple[tuple[float, ...], _Move]] = []
        for at, column in enumerate(self.columns):
            theirs, counts = [], self._tally(at, misses[at] & (n_misses == number))
            for cell, gain in column.wider(one.own[at], one.cells[at], counts):
                cells = [*one.cells[:at], cell, *one.cells[at + 1 :]]
                blurs = self.blurs(one.answer, at, cell)
                move = _Move(cells, cell.loss - one.cells[at].loss, blurs)
                # More than are needed are no gain, once one cell is all that they miss.
                useful = min(gain, needed) if number == 1 else gain
                rank = (*_order(move, useful, cell), at)
                theirs.append((rank, move))
            moves += sorted(theirs, key=lambda pair: pair[0])[:MAX_TRIED_OF_FEATURE]
        moves.sort(key=lambda pair: pair[0])
        return [move for _, move in moves[: MAX_TRIED_CELLS if one.is_pure else MAX_LAST_CELLS]]


@dataclass(frozen=True)
class _Move:
    """Cells to try: what one more loses, and whether a change can no longer be seen."""

    cells: list[Cell]
    cost: float
    blurs: bool


def _order(move: _Move, useful: int, cell: Cell) -> tuple[float, ...]:
    """The best first: many people for the loss and, about equally many, round and in one step."""
    rate = math.inf if move.cost <= 0 else round(2 * math.log2(useful / move.cost))
    return move.blurs, -rate, not cell.is_round, -useful, move.cost


class PurenessMeter:
    """Measures the share of accepted combinations inside the cells of answers."""

    def __init__(
        self,
        answers: EncodedAnswers,
        columns: Sequence[WidenedColumn],
        requirements: Requirements,
        seed: int,
    ) -> None:
        follow = {column.place for column in requirements.computed}
        self._answers, self._requirements = answers, requirements
        mutable = [(at, one.place) for at, one in enumerate(columns) if one.place is not None]
        self._drawn = [(at, place) for at, place in mutable if place not in follow]
        self._following = [
            (at, one.position) for at, one in enumerate(columns) if one.place in follow
        ]
        self._variants = AnswerVariants(answers, requirements.computed, requirements.constraints)
        # Draws depend on the seed and the answer's own values alone.
        self._keys = person_keys(seed, answers.rows.tree_codes.T)

    def measure(self, widened: Sequence[Widened], most: int) -> tuple[FloatArray, FloatArray]:
        """Shares by at most so many combinations each, and their standard errors.

        NaN where no combination can occur.
        """
        shares, errors = [np.empty(0)], [np.empty(0)]
        at_once = max(1, ROWS_PER_CALL // most)
        for start in range(0, len(widened), at_once):
            share, error = self._measure(widened[start : start + at_once], most)
            shares.append(share)
            errors.append(error)
        return np.concatenate(shares), np.concatenate(errors)

    def _measure(self, widened: Sequence[Widened], most: int) -> tuple[FloatArray, FloatArray]:
        answers = np.array([answer for answer, _ in widened], dtype=np.int64)
        parts, is_sample = [], np.zeros(len(widened), dtype=bool)
        for number, (answer, cells) in enumerate(widened):
            choices = [self._choices(answer, place, cells[at]) for at, place in self._drawn]
            is_sample[number] = math.prod(some.size for some in choices) > most
            parts.append(self._combine(answer, choices, most))
        of = np.repeat(np.arange(len(parts)), [part.shape[1] for part in parts])
        rows = self._variants.make(answers[of], np.concatenate(parts, axis=1))
        can_occur = self._can_occur(rows, of, widened)
        accepted = np.zeros(of.size, dtype=bool)
        accepted[can_occur] = self._requirements.score(rows.take(can_occur)).valid
        n_scored, n_accepted = (
            np.bincount(of[c], minlength=len(parts)) for c in (can_occur, accepted)
        )
        with np.errstate(invalid="ignore"):
            share = n_accepted / n_scored
            error = np.sqrt(share * (1 - share) / n_scored)
        return share, np.where(is_sample, error, 0.0)

    def _combine(self, answer: int, choices: Sequence[Codes], most: int) -> Codes:
        """All combinations of values, or as many random ones as there may be."""
        sizes = [some.size for some in choices]
        numbers = np.arange(min(math.prod(sizes), most))
        codes = np.repeat(self._answers.codes[:, [answer]], numbers.size, axis=1)
        if math.prod(sizes) <= most:
            chosen: Any = np.unravel_index(numbers, sizes) if sizes else ()
        else:
            drawn = draw_keys(self._keys[[answer]], numbers)[0]
            pairs = zip(self._drawn, sizes, strict=True)
            chosen = [pick(drawn, place, np.full(numbers.size, n)) for (_, place), n in pairs]
        for (_, place), some, at in zip(self._drawn, choices, chosen, strict=True):
            codes[place] = some[at]
        return codes

    def _choices(self, answer: int, place: int, cell: Cell) -> Codes:
        """The values of a cell as codes of variants; the answer's own stays as it is."""
        answers = self._answers
        position, codes = answers.rows.schema.mutable[place], cell.codes
        exact, own = answers.rows.codes[position, answer], answers.codes[place, answer]
        mine = answers.factuals.codes[position, answers.owner[answer]]
        others = np.where(codes == mine, OWN, len(answers) + codes)
        some = np.where(codes == exact, own, others).astype(np.int32)
        return some if exact >= 0 else np.append(some, own)

    def _can_occur(
        self, rows: CandidateRows, of: IntArray, widened: Sequence[Widened]
    ) -> BoolArray:
        """Rows in which every column that follows from others is inside its cell."""
        can_occur = np.ones(of.size, dtype=bool)
        answers = np.array([answer for answer, _ in widened], dtype=np.int64)
        for at, position in self._following:
            feature = self._answers.rows.schema.features[position]
            column = rows.frame.iloc[:, position]
            exact, near = feature.encode(column)
            # A value that training never held counts as its nearest one, unless it is the answer's.
            code = np.where(exact >= 0, exact, np.minimum(near, feature.n_codes - 1))
            inside = np.stack([cells[at].inside(feature.n_codes) for _, cells in widened])
            own = self._answers.rows.frame.iloc[:, position].iloc[answers[of]]
            same = ~differ(column.reset_index(drop=True), own.reset_index(drop=True))
            can_occur &= inside[of, code] | same
        return can_occur
