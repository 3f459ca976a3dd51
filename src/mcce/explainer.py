"""MCCE: counterfactual explanations for tabular data, in three steps.

Paper, section "Generating counterfactual explanations with MCCE": (1) model the mutable features
given the immutable ones and the decision, (2) generate many candidates per person, (3) keep the
valid ones and rank them. ``fit`` is step 1, ``explain`` is steps 2 and 3.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, overload

import numpy as np
import pandas as pd

from .analysis.relaxation import relaxations
from .analysis.robustness import Trial, measure_robustness
from .constraints.collection import Constraints
from .counterfactuals import UNANSWERED, Counterfactuals, FrameT
from .distances import find_distance, is_gower, measure_rows
from .errors import McceWarning, ParameterError
from .estimator import Estimator
from .execution.progress import Clock, ProgressBar
from .kernels import FloatArray, IntArray, rows_as_bytes
from .model import find_generator, require, visit_order_of
from .parameters import check_parameters, check_real, check_trial, learned_parameters
from .plausibility.model import PlausibilityModel
from .predictors.decision import Decision
from .predictors.desired import make_decision
from .protocols import Callback, Distance, Generator, Progress
from .saving import restore, save
from .search.config import ExactSearch, Search, find_search
from .search.outcome import Outcome
from .search.plan import make_plan
from .search.result import to_counterfactuals
from .search.runner import search
from .tables.columns import Kind
from .tables.schema import EncodedRows, Schema

NO_DESIRED = "no training row has the desired decision"
# Share of real accepted rows by which answers are judged if the search asks for none.
SHARE = 0.95


class MCCE(Estimator):
    """Monte Carlo sampling of valid and realistic counterfactual explanations.

    Parameters
    ----------
    predictor
        The black box: a fitted scikit-learn estimator or pipeline on the raw columns, a boosting
        model, one of ``mcce.predictors``, or any callable from a frame to one score per row. It is
        given, not trained here.
    desired
        The decision people want: a tuple of two numbers (a closed interval of the score), an
        :class:`Interval` with open or infinite ends, or a class label or list of labels. None is
        [0.5, 1] for the second class of a binary classifier, or that class itself if the
        classifier has a threshold of its own.
    immutable
        Exact names of the columns that must not change.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, where the dtype would mislead.
    score_class
        The class whose probability is the score, if not the second.
    generator
        Step 1: ``"trees"`` or a generator object, e.g. ``TreeChain(min_samples_leaf=10)``.
    constraints
        How people may change: a list of :mod:`mcce.constraints`, or the path of a file of them.
    search
        How answers are searched for: ``"paper"``, ``"balanced"``, ``"sparse"``, ``"plausible"``,
        ``"near"``, ``"fast"``, or a :class:`Search` of your own, where all are described; or
        ``"exact"``, the best row that the model could draw, see :class:`ExactSearch`.
    n_samples
        Candidates per person, the K of the paper; None: what the search says, 1000 for the paper's.
    max_samples
        People without an answer get further candidates up to so many; None: what the search says,
        no further ones for the paper's.
    max_seconds
        A call of ``explain`` stops after about so long and returns what was found by then.
    n_counterfactuals
        How many counterfactuals each person gets at most.
    diversity
        From 0 to 1, how much difference between several counterfactuals of a person counts against
        distance; see :mod:`mcce.diversity` for the rule. The first stays the same. None: the best
        ones, however alike.
    max_sparsity, max_distance
        Upper bounds on the number of changes and on the distance of what is returned.
    rank_by
        What makes a candidate better, the decisive first: ``"sparsity"``, ``"distance"``.
    distance
        ``"gower"`` or a distance object.
    exclude_training_rows
        Never return an exact copy of a training row.
    tolerance
        Share of the training range up to which a numeric difference is not counted as a change.
        Only to reproduce tables that were counted so; 0 counts exactly.
    memory
        Megabytes that the candidates of one block of people may take.
    n_jobs
        Threads, as in scikit-learn. The predictor is called from the caller's thread only.
    random_state
        Seed of all draws, a whole number; None picks one at fit and keeps it as ``seed_``.
    verbose
        Whether to show a progress bar on long work (needs tqdm; silent without a terminal).

    Attributes
    ----------
    schema_ : Schema
        The columns as training showed them.
    decision_ : Decision
        How the predictor is called and what is desired of it.
    generator_
        The fitted model of step 1.
    distance_
        The fitted distance.
    n_desired_ : int
        Training rows with the desired decision.
    seed_ : int
        Seed of all draws.
    plausibility_ : PlausibilityModel or None
        What accepted training rows look like, learned only for searches that ask.
    training_rows_ : array or None
        The training rows as bytes, kept only with ``exclude_training_rows``.
    timings_ : dict
        Wall-clock seconds of fitting by step.

    Examples
    --------
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.7, 1.0), immutable=["age"])
    >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank.iloc[[3]])
    >>> result.changes()
       factual  rank feature before after
    0        3     1  salary     56    70
    """

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        score_class: Hashable | None = None,
        generator: str | Generator = "trees",
        constraints: Any = None,
        search: str | Search | ExactSearch = "paper",
        n_samples: int | None = None,
        max_samples: int | None = None,
        max_seconds: float | None = None,
        n_counterfactuals: int = 1,
        diversity: float | None = None,
        max_sparsity: int | None = None,
        max_distance: float | None = None,
        rank_by: Sequence[str] = ("sparsity", "distance"),
        distance: str | Distance = "gower",
        exclude_training_rows: bool = False,
        tolerance: float = 0.0,
        memory: float = 256.0,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.predictor = predictor
        self.desired = desired
        self.immutable = immutable
        self.kinds = kinds
        self.score_class = score_class
        self.generator = generator
        self.constraints = constraints
        self.search = search
        self.n_samples = n_samples
        self.max_samples = max_samples
        self.max_seconds = max_seconds
        self.n_counterfactuals = n_counterfactuals
        self.diversity = diversity
        self.max_sparsity = max_sparsity
        self.max_distance = max_distance
        self.rank_by = rank_by
        self.distance = distance
        self.exclude_training_rows = exclude_training_rows
        self.tolerance = tolerance
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, feature_names: Sequence[Hashable] | None = None
    ) -> MCCE:
        """Learn from training data how the mutable features go with the rest (step 1).

        Parameters
        ----------
        X
            Training rows: a pandas or polars frame, a pyarrow table or a 2-D array. The predictor
            is always handed this kind.
        y
            Ignored: the decisions come from the predictor.
        feature_names
            Names for the columns of an array; x0, x1, … if there are none.
        """
        check_parameters(self)
        generator, distance = find_generator(self.generator), find_distance(self.distance)
        needs_plausibility = find_search(self.search).needs_plausibility
        clock = Clock()
        rows = Schema.learn_rows(
            X, immutable=self.immutable, kinds=self.kinds, feature_names=feature_names
        )
        schema = rows.schema
        Constraints.bind(self.constraints, schema)
        clock.stop("encode")
        decision = make_decision(
            self.predictor, self.desired, score_class=self.score_class, adapter=schema.adapter
        )
        desired = decision.score(rows.frame).valid
        clock.stop("decision")
        seed = _seed(self.random_state)
        generator = generator.fit(
            rows, desired, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose
        )
        clock.stop("model")
        self.schema_: Schema = schema
        self.decision_: Decision = decision
        self.generator_: Generator = generator
        self.distance_: Distance = distance.fit(schema, rows, desired)
        self.n_desired_: int = int(desired.sum())
        self.plausibility_: PlausibilityModel | None = None
        if needs_plausibility and desired.any():
            order = visit_order_of(generator, schema)
            self.plausibility_ = PlausibilityModel().fit(rows, desired, order, self.n_jobs)
            clock.stop("plausibility")
        self.seed_: int = seed
        self.training_rows_: np.ndarray | None = None
        if self.exclude_training_rows:
            self.training_rows_ = np.unique(rows_as_bytes(rows.exact.T))
        self._keep_names(schema)
        self.timings_: dict[str, float] = clock.seconds
        self._learned: dict[str, Any] = learned_parameters(self)
        return self

    @overload
    def explain(
        self, X: np.ndarray, *, constraints: Any = None, callback: Callback | None = None
    ) -> Counterfactuals[pd.DataFrame]: ...
    @overload
    def explain(
        self, X: FrameT, *, constraints: Any = None, callback: Callback | None = None
    ) -> Counterfactuals[FrameT]: ...
    def explain(
        self, X: Any, *, constraints: Any = None, callback: Callback | None = None
    ) -> Counterfactuals[Any]:
        """Counterfactuals for people (steps 2 and 3).

        People who are already decided as desired are reported, not explained. Finding nothing is
        an answer: see ``result.missing`` for the reasons.

        Parameters
        ----------
        X
            People, with the columns of the training data in any order, in any kind of frame: the
            result comes in that kind.
        constraints
            Further constraints for this call, e.g. what is frozen for some of these people.
        watch
            Called between waves of questions to the predictor with how far the work has come;
            return True to stop and keep what was found.
        """
        self._check_ready()
        if callback is not None and not callable(callback):
            raise ParameterError(
                f"watch must be a function that is told the progress, got {callback!r}."
            )
        clock = Clock()
        bound = self._bind(constraints)
        rows = self.schema_.encode(X)
        clock.stop("encode")
        scored = self.decision_.score(rows.frame)
        clock.stop("decision")
        found = self._search(rows, np.flatnonzero(~scored.valid), bound, callback)
        seconds = clock.seconds | found.seconds | {"total": clock.total()}
        result = to_counterfactuals(rows, scored, found, seconds, self._looks(found))
        self._warn(result)
        return result

    def relax(self, X: Any, training: Any = None, *, constraints: Any = None) -> Any:
        """What would give people without an answer one, if it alone were lifted.

        Parameters
        ----------
        X
            People, with the columns of the training data in any order.
        training
            The training data once more, to try immutable features too: each is learned anew as
            mutable, which takes as long as fitting. None: immutable features are not tried.
        constraints
            Further constraints, as in :meth:`explain`.
        """
        self._check_ready()
        return relaxations(self, X, training, self._bind(constraints))

    def robustness(
        self,
        result: Counterfactuals[FrameT],
        *,
        n_perturbations: int = 100,
        scale: float = 0.05,
        random_state: int | None = None,
    ) -> FrameT:
        """How firmly the counterfactuals of a result stand, one row each with its index.

        ``valid``: whether a fresh call of the predictor says so. ``margin``: how far inside the
        desired set it is, see :meth:`Decision.margin`. ``stability``: share of small moves of its
        changed numbers that keep it valid, NaN if none can move. ``partial``: share of the proper
        subsets of its changes that are valid already, NaN if there are none; ``minimal``: whether
        none is. ``n_evaluated``: rows the predictor was asked about.

        Parameters
        ----------
        result
            What :meth:`explain` returned.
        n_perturbations, scale
            Moves of each at most, and how far a number may move as a share of its training range;
            see :mod:`mcce.robustness`.
        random_state
            Seed of the moves; None is ``seed_``.
        """
        self._check_ready()
        check_trial(n_perturbations, scale, random_state)
        seed = self.seed_ if random_state is None else int(random_state)
        trial = Trial(self.decision_, int(n_perturbations), float(scale), seed)
        return measure_robustness(trial, self.schema_, result, verbose=self.verbose)

    def log_likelihood(self, X: Any) -> FloatArray:
        """Log-probability of each row's mutable values given its immutable ones, if desired.

        Minus infinity for a row that the model could not have drawn.
        """
        self._check_fitted()
        generator = require(self.generator_, "density", "log_likelihood asks how likely rows are")
        return generator.log_likelihood(self.schema_.encode(X))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Put the fitted explainer, without its predictor, into a file for :func:`load`.

        The file holds no code. It does hold training values, feature by feature; whole training
        rows only with ``exclude_training_rows``, and whole accepted ones with a search that goes by
        what accepted rows look like.
        """
        self._check_ready()
        save(self, path)

    def _bind(self, more: Any) -> Constraints:
        """The constraints of the explainer and of one call."""
        usual = Constraints.bind(self.constraints, self.schema_)
        return usual.joined(Constraints.bind(more, self.schema_))

    def _search(
        self,
        rows: EncodedRows,
        people: IntArray,
        constraints: Constraints,
        callback: Callback | None = None,
    ) -> Outcome:
        """Steps 2 and 3 for the people at these positions."""
        if self.n_desired_ == 0:
            return Outcome.nothing(rows, people, NO_DESIRED)
        bar = ProgressBar(people.size, "explain", self.verbose)

        ends = time.monotonic() + (math.inf if self.max_seconds is None else self.max_seconds)

        def on_progress(progress: Progress) -> bool | None:
            bar.show(progress.n_settled)
            told = callback(progress) if callback is not None else None
            return told or time.monotonic() >= ends

        try:
            return search(make_plan(self, constraints, on_progress), rows, people)
        finally:
            bar.close()

    def _looks(self, found: Outcome) -> dict[str, np.ndarray]:
        """Whether answers are proven, and how real they look if fit has learned what that is."""
        looks: dict[str, np.ndarray] = {}
        if not is_gower(self.distance_):
            looks[self.distance_.name] = measure_rows(self.distance_, found.answers.chosen)
        if isinstance(find_search(self.search), ExactSearch):
            looks["proven"] = np.isin(found.answers.owner, sorted(found.proven))
        if self.plausibility_ is not None:
            share = find_search(self.search).support or SHARE
            looks |= self.plausibility_.measures(found.answers.chosen, share)
        return looks

    def _warn(self, result: Counterfactuals[Any]) -> None:
        """One warning per call for what a user must not overlook."""
        result = result.to_pandas()
        told = []
        n_missing = int((result.people["status"] == UNANSWERED).sum())
        if n_missing:
            told.append(
                f"{n_missing} of {len(result.people)} people have no counterfactual; "
                "result.missing says why."
            )
        if result.n_unstable:
            told.append(
                f"The predictor is unstable: {result.n_unstable} counterfactuals it had accepted "
                "were refused when it was asked again, and were withdrawn."
            )
        alone = result.measures.get("no_reference_group")
        if alone is not None and alone.any():
            told.append(
                f"{int(alone.sum())} counterfactuals are for people whose immutable values no "
                "accepted training row has: nothing is known of what is usual for them "
                "(no_reference_group in result.measures)."
            )
        if told:
            warnings.warn(" ".join(told), McceWarning, stacklevel=3)


def load(
    path: str | os.PathLike[str],
    predictor: Any,
    *,
    generator: Generator | None = None,
    tolerance: float = 1e-9,
) -> MCCE:
    """An explainer that was saved, with the predictor it explains; its answers are the same.

    Parameters
    ----------
    path
        File written by :meth:`MCCE.save`. It is checked and never executed, whoever wrote it.
    predictor
        The predictor that was explained. It must score the probe rows in the file as it did.
    generator
        An unfitted instance, if the explainer was saved with a generator that is not part of
        mcce: a file holds no code.
    tolerance
        Relative difference up to which such scores are equal; raise it for float32 predictors.
    """
    check_real("tolerance", tolerance, "a finite number >= 0")
    explainer = restore(MCCE, path, predictor, tolerance, generator)
    explainer._keep_names(explainer.schema_)
    explainer._learned = learned_parameters(explainer)
    return explainer


def _seed(random_state: int | None) -> int:
    """The seed itself, or a fresh one from the operating system."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    return int(random_state)
