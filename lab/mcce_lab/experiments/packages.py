"""Published packages as explainers, for comparisons: NICEx and dice-ml, where they are installed.

Neither is installed with mcce. Each gets rows as numbers, levels as their codes, and one person at
a time. What it finds passes the same gate as every baseline: a fresh call of the predictor.

Always true: immutable cells are the person's own; global random states are left as they were; rows
with missing numbers are left out of training, and such people get a reason.
"""

from __future__ import annotations

import random
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal

import numpy as np
import pandas as pd

from mcce import Decision, Interval
from mcce.errors import McceError, MissingExtraError, SchemaError
from mcce.protocols import OWN, BoolArray, EncodedRows, FloatArray, IntArray, ScoredRows

from ..baselines.baseline import Baseline, Declined, Found, Training
from ..baselines.nearest import usable_rows
from ..baselines.nice import progress
from ..parameters import Count, Seed

INCOMPLETE = "a number is missing, and the package needs complete rows"
NO_ROW = "no accepted training row has the same immutable values"
NOTHING = "the package found no counterfactual"
# Labels by probability must agree with the decision.
MIN_MARGIN = 1e-9
# Packages keep the person, and take random numbers from global states.
_ALONE = threading.RLock()


class _Package(Baseline):
    """A package that explains one person at a time and calls the predictor on numbers."""

    def _learn(self, training: Training, y: Any) -> None:
        self._check_library()
        rows = training.rows
        for feature in rows.schema.features:
            if not feature.immutable and feature.table.dtype.kind in "mM":
                raise SchemaError(
                    f"The package cannot change the date or duration {feature.name!r}. Declare it "
                    "immutable, or pass it as a number."
                )
        self.usable_: IntArray = usable_rows(training, y, justified=self._justified)
        complete = np.flatnonzero(_is_complete(rows))
        self.complete_: IntArray = complete
        scored = ScoredRows(training.scored.score[complete], training.scored.valid[complete])
        self.box_ = _Box(rows.take(complete), scored, training.decision)
        if scored.valid.any():
            self._prepare(self.box_)

    def _search(self, declined: Declined) -> Found:
        complete, values = _is_complete(declined.rows), _as_numbers(declined.rows)
        reasons = dict.fromkeys(np.flatnonzero(~complete).tolist(), INCOMPLETE)
        owner, answers = [], []
        for person in np.flatnonzero(complete).tolist():
            with self.box_.scoring_for(declined, person):
                found, reason = self._answer(values[person])
            owner += [person] * len(found)
            answers.append(found)
            if not len(found):
                reasons[person] = reason
        owners = np.array(owner, dtype=np.int64)
        rows = np.concatenate([np.empty((0, values.shape[1])), *answers])
        return Found(owners, _as_frame(declined.rows, owners, rows), reasons)

    @property
    def _justified(self) -> bool:
        return False

    @abstractmethod
    def _check_library(self) -> None:
        """Raise if the package is not installed."""

    @abstractmethod
    def _prepare(self, box: _Box) -> None:
        """Hand the training rows to the package."""

    @abstractmethod
    def _answer(self, person: FloatArray) -> tuple[FloatArray, str]:
        """Answers for a person, shape (n_answers, n_features), or why there is none."""


@dataclass(eq=False, repr=False, kw_only=True)
class NICExPackage(_Package):
    """The published package ``NICEx`` with the reward sparsity.

    It does not support immutable features, so before each person its candidates are limited to
    rows with the same immutable values.

    Examples
    --------
    >>> NICExPackage(lambda frame: frame["pay"], (0.5, 1.0)).justified
    False
    """

    justified: bool = False

    def _check_library(self) -> None:
        _load("nice", "NICEx")

    @property
    def _justified(self) -> bool:
        return self.justified

    def _prepare(self, box: _Box) -> None:
        kinds = [feature.kind == "categorical" for feature in box.rows.schema.features]
        self.nice_ = _load("nice", "NICEx").NICE(
            box.probabilities, box.values.copy(), np.flatnonzero(kinds).tolist(), justified_cf=False
        )
        self.candidates_: BoolArray = np.isin(self.complete_, self.usable_)

    def _answer(self, person: FloatArray) -> tuple[FloatArray, str]:
        fixed = self.box_.rows.schema.immutable
        alike = (self.box_.values[:, fixed] == person[fixed]).all(axis=1) & self.candidates_
        if not alike.any():
            return np.empty((0, person.size)), NO_ROW
        self.nice_.data.candidates_mask = alike
        return np.asarray(self.nice_.explain(person[None].copy()), dtype=np.float64)[:1], NOTHING


@dataclass(eq=False, repr=False, kw_only=True)
class DiCEPackage(_Package):
    """The package ``dice-ml`` without gradients: diverse counterfactual explanations.

    Examples
    --------
    >>> DiCEPackage(lambda frame: frame["pay"], (0.5, 1.0), method="genetic").method
    'genetic'
    """

    method: Literal["random", "genetic", "kdtree"] = "random"
    n_counterfactuals: Count = 1
    random_state: Seed = 0

    def _check_library(self) -> None:
        _load("dice_ml", "dice-ml")

    def _prepare(self, box: _Box) -> None:
        dice, columns = _load("dice_ml", "dice-ml"), _DiceColumns(box.rows)
        frame = columns.write(box.values).assign(**{columns.outcome: box.scored.valid.astype(int)})
        data = dice.Data(
            dataframe=frame, continuous_features=columns.numbers, outcome_name=columns.outcome
        )
        model = dice.Model(model=_DiceModel(box, columns), backend="sklearn")
        with _seeded(self.random_state):
            self.dice_ = dice.Dice(data, model, method=self.method)
        self.columns_ = columns

    def _answer(self, person: FloatArray) -> tuple[FloatArray, str]:
        settings = {"random_seed": self.random_state} if self.method == "random" else {}
        with _seeded(self.random_state):
            try:
                found = self.dice_.generate_counterfactuals(
                    self.columns_.write(person[None]),
                    total_CFs=self.n_counterfactuals,
                    desired_class=1,
                    features_to_vary=self.columns_.mutable,
                    verbose=False,
                    **settings,
                )
            except McceError:
                raise
            except Exception as error:
                # It raises where it finds nothing, and for values that training never held.
                return np.empty((0, person.size)), f"{NOTHING} ({type(error).__name__})"
        frame = found.cf_examples_list[0].final_cfs_df
        if frame is None:
            return np.empty((0, person.size)), NOTHING
        return self.columns_.read(frame), NOTHING


@dataclass(eq=False)
class _Box:
    """The predictor for packages: from rows of numbers to two probabilities."""

    rows: EncodedRows
    scored: ScoredRows
    decision: Decision

    def __post_init__(self) -> None:
        self.values = _as_numbers(self.rows)
        ahead = progress(self.decision, self.scored.score, self.scored.score)
        self.scale = max(0.5, float(np.abs(ahead).max(initial=0.0)))
        self.person: tuple[Declined, int] | None = None

    @contextmanager
    def scoring_for(self, declined: Declined, person: int) -> Iterator[None]:
        """Score rows as those of one person, with their immutable cells; threads take turns."""
        with _ALONE:
            self.person = declined, person
            try:
                yield
            finally:
                self.person = None

    def probabilities(self, values: Any) -> FloatArray:
        """Probabilities of an undesired and of the desired decision, shape (n_rows, 2)."""
        values = np.asarray(values, dtype=np.float64)
        if self.person is None:
            return self._pair(self.scored, self.scored.score)
        declined, person = self.person
        owner = np.full(len(values), person)
        scored = declined.score(_as_frame(declined.rows, owner, values))
        return self._pair(scored, declined.scored.score[owner])

    def _pair(self, scored: ScoredRows, own: FloatArray) -> FloatArray:
        """Scores from 0 to 1, from a half on where the decision is the desired one."""
        chance = scored.score
        if isinstance(self.decision.desired, Interval):
            chance = 0.5 + progress(self.decision, own, scored.score) / (2 * self.scale)
        agreed = np.where(
            scored.valid,
            np.maximum(chance, 0.5 + MIN_MARGIN),
            np.minimum(chance, 0.5 - MIN_MARGIN),
        )
        desired = np.clip(agreed, 0.0, 1.0)
        return np.column_stack([1 - desired, desired])


class _DiceColumns:
    """Rows of numbers as frames that DiCE can read: levels as strings, names of its own."""

    outcome = "outcome"

    def __init__(self, rows: EncodedRows) -> None:
        features = rows.schema.features
        self.names = [f"c{at}" for at in range(len(features))]
        named = list(zip(self.names, features, strict=True))
        self.numbers = [name for name, feature in named if feature.kind == "numeric"]
        self.mutable = [name for name, feature in named if not feature.immutable]
        self.whole = {
            name: bool((values == np.rint(values)).all())
            for name, values in zip(self.names, _as_numbers(rows).T, strict=True)
        }

    def write(self, values: FloatArray) -> pd.DataFrame:
        """Rows of numbers as a frame."""
        columns = {}
        for name, column in zip(self.names, values.T, strict=True):
            whole = self.whole[name] and bool((column == np.rint(column)).all())
            typed = column.astype(np.int64) if whole else column
            columns[name] = typed if name in self.numbers else typed.astype(np.int64).astype(str)
        return pd.DataFrame(columns)

    def read(self, frame: pd.DataFrame) -> FloatArray:
        """The reverse, shape (n_rows, n_features)."""
        return frame[self.names].astype(np.float64).to_numpy()


class _DiceModel:
    """A classifier in the manner of scikit-learn, which is what DiCE calls."""

    def __init__(self, box: _Box, columns: _DiceColumns) -> None:
        self.box, self.columns = box, columns

    def predict_proba(self, frame: pd.DataFrame) -> FloatArray:
        return self.box.probabilities(self.columns.read(frame))

    def predict(self, frame: pd.DataFrame) -> IntArray:
        return self.predict_proba(frame).argmax(axis=1)


def _load(module: str, package: str) -> Any:
    """A package that mcce does not depend on."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            f"This comparison needs the package {package}: pip install {package}."
        ) from error


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Global random states with a seed, and as they were afterwards."""
    numbers, others = np.random.get_state(), random.getstate()  # noqa: NPY002
    np.random.seed(seed)  # noqa: NPY002
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numbers)  # noqa: NPY002
        random.setstate(others)


def _is_complete(rows: EncodedRows) -> BoolArray:
    """Which rows miss no number."""
    numeric = [feature.kind == "numeric" for feature in rows.schema.features]
    return np.asarray(~np.isnan(rows.all_numbers[numeric]).any(axis=0))


def _as_numbers(rows: EncodedRows) -> FloatArray:
    """Numbers as they are and levels as their codes, shape (n_rows, n_features)."""
    pairs = zip(rows.schema.features, rows.all_numbers, rows.codes, strict=True)
    columns = [n if feature.kind == "numeric" else codes for feature, n, codes in pairs]
    return np.stack(columns, axis=1).astype(np.float64)


def _as_frame(people: EncodedRows, owner: IntArray, values: FloatArray) -> pd.DataFrame:
    """Rows of numbers as rows of people: their own cells, except where they change."""
    own = _as_numbers(people)[owner]
    codes = np.full((people.schema.mutable.size, owner.size), OWN, dtype=np.int32)
    tables: list[pd.Series[Any]] = []
    for place, at in enumerate(people.schema.mutable):
        table, code = people.tables[place], values[:, at].astype(np.int64)
        changed = values[:, at] != own[:, at]
        if people.schema.features[at].kind == "numeric":
            dtype = people.frame.dtypes.iloc[at]
            whole = pd.api.types.is_integer_dtype(dtype)
            table = pd.Series(np.rint(values[:, at]) if whole else values[:, at]).astype(dtype)
            code = np.arange(owner.size)
        codes[place] = np.where(changed, code, OWN)
        tables.append(table)
    return people.compose(owner, codes, tables)
