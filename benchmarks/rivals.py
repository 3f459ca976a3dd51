"""Contenders of the bench of searches: NICE, its nearest row, its published package, and ours.

A contender is a function of a case, the training rows it may see, the people and a seed. Rivals
hold immutable features fixed by looking only at rows that share them with the person; who has no
such row gets no answer. NICE starts from the nearest accepted row whose outcome is the desired one
too ("justified"), and copies from it the value with the greatest reward until the row is valid:
the gain in score, or that gain times the drop of an auto-encoder's error.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor

from cases import Case
from judges import Space
from mcce import MCCE, Counterfactuals
from mcce.candidates import Draws
from mcce.kernels import BoolArray, Codes, IntArray, WordArray
from mcce.tables.schema import EncodedRows
from measure import cpu
from predictors import N_EPOCHS, Floats

PRESETS = ("paper", "sparse", "balanced", "plausible", "near", "fast")
HAS_PRESETS = "search" in inspect.signature(MCCE).parameters
# A search is clocked so often at most, and not again once it took so long together.
CLOCKED = 3
SECONDS_FOR_MORE = 2.0

Result = TypeVar("Result")
Reward: TypeAlias = Callable[[Floats, Floats, Floats], Floats]


@dataclass(frozen=True, eq=False)
class Answers:
    """What a contender gives.

    Parameters
    ----------
    frame
        One row for everybody who has an answer.
    owner
        Position of the person of each row.
    n_asked
        Rows the black box was asked about in the search; people and a last check are not in it.
    fit_seconds, seconds
        CPU seconds before the first person, and for all people.
    """

    frame: pd.DataFrame
    owner: NDArray[np.int64]
    n_asked: float = np.nan
    fit_seconds: float = np.nan
    seconds: float = np.nan

    @classmethod
    def of(cls, result: Counterfactuals[pd.DataFrame]) -> Answers:
        """The best counterfactual of each person of a result of ours."""
        first = result.measures.index.get_level_values("rank") == 1
        frame = result.frame[first].reset_index(drop=True)
        return cls(frame, result.owner[first], result.n_evaluated)


Contender: TypeAlias = Callable[[Case, pd.DataFrame, pd.DataFrame, int], Answers]


def ours(
    case: Case,
    train: pd.DataFrame,
    people: pd.DataFrame,
    seed: int,
    *,
    search: str,
    generator: Any = "trees",
) -> Answers:
    """Our explainer with one of its searches."""
    settings: dict[str, Any] = {"n_samples": case.n_samples} if search == "paper" else {}
    if HAS_PRESETS:
        settings["search"] = search
    explainer = MCCE(
        case.predictor,
        case.desired,
        immutable=case.immutable,
        generator=generator,
        n_jobs=1,
        random_state=seed,
        **settings,
    )
    fit_seconds, _ = cpu(partial(explainer.fit, train))
    seconds, result = clocked(partial(explainer.explain, people))
    answers = Answers.of(result)
    return Answers(answers.frame, answers.owner, answers.n_asked, fit_seconds, seconds)


class RealRows(BaseEstimator):
    """A generator that invents nobody: its draws are accepted training rows.

    Those with the group's immutable values, each as likely as the other; where there are none, the
    mutable values of any.
    """

    def fit(
        self,
        rows: EncodedRows,
        decision: BoolArray,
        *,
        n_jobs: int | None = 1,
        verbose: bool = False,
    ) -> RealRows:
        """Keep the accepted rows, and who shares immutable values."""
        self.schema_ = rows.schema
        self.plausibility_ = rows.descent[:, decision]
        self.pools_ = _by_key(self.plausibility_[self.schema_.immutable].T)
        return self

    def sample(self, given: Codes, keys: WordArray, draws: IntArray) -> Draws:
        """Rows drawn with replacement; a draw depends on key, immutable codes and number alone."""
        everybody = np.arange(self.plausibility_.shape[1])
        shape = self.schema_.mutable.size, keys.size, draws.size
        codes = np.empty(shape, dtype=self.plausibility_.dtype)
        for group, (key, fixed) in enumerate(
            zip(keys, given[self.schema_.immutable].T, strict=True)
        ):
            pool = self.pools_.get(fixed.tobytes(), everybody)
            chance = np.random.Generator(np.random.Philox(key=int(key)))
            places = (chance.random(int(draws.max()) + 1)[draws] * pool.size).astype(np.int64)
            codes[:, group] = self.plausibility_[np.ix_(self.schema_.mutable, pool[places])]
        return Draws(codes)


def nice(
    case: Case, train: pd.DataFrame, people: pd.DataFrame, seed: int, *, reward: str
) -> Answers:
    """NICE for all people at once, one call of the black box per round."""
    fit_seconds, model = cpu(lambda: Nice(case, train, seed, reward))
    seconds, (frame, owner, n_asked) = clocked(lambda: model.explain(people))
    return Answers(frame, owner, n_asked, fit_seconds, seconds)


class Nice:
    """What NICE keeps of the training rows, and its walk from people to their nearest row."""

    def __init__(self, case: Case, train: pd.DataFrame, seed: int, reward: str) -> None:
        self.case = case
        self.space = Space.learn(train)
        self.unlike = self.space.encode(train[justified(case, train)])
        self.fixed = train.columns.get_indexer(pd.Index(case.immutable))
        self.points = self.space.by_range(self.unlike)
        self.pools = _by_key(self.unlike[:, self.fixed])
        self.reward = reward
        self.error = _reconstruction(self.space, train, seed) if reward == "plausibility" else None

    def explain(self, people: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.int64], int]:
        """Answers, whose they are, and how many rows were asked."""
        own = self.space.encode(people)
        nearest = self.nearest(own)
        owner = np.flatnonzero(nearest >= 0)
        goal = self.unlike[nearest[owner]]
        if self.reward == "none":
            return self.space.decode(goal, people), owner, 0
        walked, n_asked = self._walk(own[owner], goal, self.case.predictor(people.iloc[owner]))
        return self.space.decode(walked, people), owner, n_asked

    def nearest(self, own: Floats) -> NDArray[np.int64]:
        """Position of each one's nearest row with equal immutable values, the first of equals."""
        mine = self.space.by_range(own)
        nearest = np.full(len(own), -1)
        for person, fixed in enumerate(np.ascontiguousarray(own[:, self.fixed])):
            pool = self.pools.get(fixed.tobytes())
            if pool is not None:
                gaps = np.abs(self.points[pool] - mine[person]).sum(axis=1)
                nearest[person] = pool[np.argmin(gaps)]
        return nearest

    def _walk(self, now: Floats, goal: Floats, score: Floats) -> tuple[Floats, int]:
        """Copy from the goal the value of the greatest reward until the row is valid."""
        now, score, n_asked = now.copy(), score.copy(), 0
        todo = np.arange(len(now))
        while todo.size:
            person, feature = np.nonzero(now[todo] != goal[todo])
            person = todo[person]
            tried = now[person]
            tried[np.arange(person.size), feature] = goal[person, feature]
            scores = self.case.predictor(self.space.decode(tried))
            n_asked += len(tried)
            value = self._value(now[person], tried, scores - score[person])
            # By person, the most valuable first, of equals the first column.
            order = np.lexsort((feature, -value, person))
            best = order[np.unique(person[order], return_index=True)[1]]
            now[todo], score[todo] = tried[best], scores[best]
            todo = todo[~self.case.desired.contains(score[todo])]
        return now, n_asked

    def _value(self, before: Floats, after: Floats, gain: Floats) -> Floats:
        if self.error is None:
            return gain
        drop = self.error(before) - self.error(after)
        # A loss of both must not pass for a gain.
        return np.where((gain < 0) & (drop < 0), -gain * drop, gain * drop)


def justified(case: Case, train: pd.DataFrame) -> NDArray[np.bool_]:
    """Accepted rows whose outcome, where it is known, is the desired one."""
    accepted = case.decide(train)
    return accepted if case.good is None else accepted & case.good.loc[train.index].to_numpy()


def package(case: Case, train: pd.DataFrame, people: pd.DataFrame, seed: int) -> Answers:
    """The published package ``NICEx``, reward sparsity, one person after the other."""
    fit_seconds, model = cpu(lambda: Package(case, train))
    seconds, (frame, owner, n_asked) = clocked(lambda: model.explain(people))
    return Answers(frame, owner, n_asked, fit_seconds, seconds)


class Package:
    """The published package on rows of numbers, which suit it best.

    It knows no immutable features: before each person its candidates are narrowed to the rows that
    share the person's.
    """

    def __init__(self, case: Case, train: pd.DataFrame) -> None:
        from nice import NICE

        self.case, self.n_asked = case, 0
        self.space = Space.learn(train)
        self.rows = self.space.encode(train)
        self.fixed = train.columns.get_indexer(pd.Index(case.immutable))
        levels = [at for at, column in enumerate(self.space.columns) if column.levels is not None]
        good = None if case.good is None else case.good.loc[train.index].to_numpy()
        self.nice = NICE(
            self._probabilities,
            self.rows.copy(),
            levels,
            y_train=good,
            justified_cf=good is not None,
        )
        self.candidates = self.nice.data.candidates_mask
        self.unlike = self.candidates & (self.nice.data.X_train_class == 1)

    def explain(self, people: pd.DataFrame) -> tuple[pd.DataFrame, NDArray[np.int64], int]:
        """Answers, whose they are, and how many rows were asked."""
        found, owner = [], []
        self.n_asked = 0
        for person, values in enumerate(self.space.encode(people)):
            alike = (self.rows[:, self.fixed] == values[self.fixed]).all(axis=1)
            if (self.unlike & alike).any():
                self.nice.data.candidates_mask = self.candidates & alike
                found.append(self.nice.explain(values[None].copy())[0])
                owner.append(person)
        walked = np.reshape(found, (-1, len(self.space.columns)))
        return self.space.decode(walked, people), np.array(owner, dtype=np.int64), self.n_asked

    def _probabilities(self, values: Floats) -> Floats:
        self.n_asked += len(values)
        score = self.case.predictor(self.space.decode(values))
        return np.column_stack([1 - score, score])


def clocked(work: Callable[[], Result]) -> tuple[float, Result]:
    """CPU seconds of the quickest of a few runs, and what the first gave."""
    best, result = cpu(work)
    spent = best
    for _ in range(CLOCKED - 1):
        if spent > SECONDS_FOR_MORE:
            break
        seconds, _ = cpu(work)
        best, spent = min(best, seconds), spent + seconds
    return best, result


def _by_key(rows: NDArray[Any]) -> dict[bytes, NDArray[np.int64]]:
    """Positions of equal rows, by the row's bytes."""
    rows = np.ascontiguousarray(rows)
    if not rows.shape[1]:
        return {b"": np.arange(len(rows))}
    _, first, group = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    group = group.ravel()  # older NumPy gives it a second axis
    parts = np.split(np.argsort(group, kind="stable"), np.cumsum(np.bincount(group))[:-1])
    return {rows[one].tobytes(): part for one, part in zip(first, parts, strict=True)}


def _reconstruction(space: Space, train: pd.DataFrame, seed: int) -> Callable[[Floats], Floats]:
    """Squared error of a small auto-encoder that has seen the training rows."""
    points = space.standardised(space.encode(train))
    width = points.shape[1]
    middle = max(2, width // 4)
    coder = MLPRegressor(
        hidden_layer_sizes=(width, middle, width),
        batch_size=min(256, len(points)),
        max_iter=N_EPOCHS,
        random_state=seed,
    )
    with warnings.catch_warnings():
        # So many passes are what is asked for; it need not have converged.
        warnings.simplefilter("ignore", ConvergenceWarning)
        coder.fit(points, points)

    def error(values: Floats) -> Floats:
        given = space.standardised(values)
        return ((given - coder.predict(given)) ** 2).mean(axis=1)

    return error


CONTENDERS: dict[str, Contender] = {
    "nice": partial(nice, reward="sparsity"),
    "nice-plausible": partial(nice, reward="plausibility"),
    "nice-package": package,
    "nearest": partial(nice, reward="none"),
    **{preset: partial(ours, search=preset) for preset in PRESETS},
    "real-rows": partial(ours, search="balanced", generator=RealRows()),
}
