"""MCCE: counterfactual explanations for tabular data, in three steps.

Paper, section "Generating counterfactual explanations with MCCE": (1) model the mutable features
given the immutable ones and the decision, (2) generate many candidates per person, (3) keep the
valid ones and rank them. ``fit`` is step 1, ``explain`` is steps 2 and 3.

The predictor is given and not trained: cloning keeps it, and its own parameters are not ours. What
``fit`` learned is one frozen value, ``fitted_``; the attributes that end with an underscore are
views of it. What only some calls use is imported there, so that the paper's search loads little.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, overload

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from .constraints.collection import Constraints
from .counterfactuals.result import Counterfactuals
from .distances import find_distance
from .errors import NotFittedError
from .fitted import FitRequest, Fitted, learn
from .flags import table_of_flags
from .kernels import FloatArray
from .model.registry import find_generator, require
from .parameters import (
    check_parameters,
    check_real,
    check_robustness,
    check_seconds,
    check_seed,
    check_unchanged,
    learned_parameters,
)
from .predictors.decision import Decision
from .protocols import Callback, Distance, Generator, is_private
from .runtime.threads import time_limit
from .search.config import (
    ExactSearch,
    ExplainSettings,
    Search,
    SearchName,
    find_search,
    find_survival,
)
from .search.explain import explain, warn_of_gaps
from .search.prerequisites import (
    check_ignored_relations,
    check_private,
    check_refit,
    needs_of,
    plausibility_model,
    with_held_columns,
)
from .tables.columns import Kind
from .tables.frames import ArrayAdapter, FrameT
from .tables.roles import Role, check_roles
from .tables.schema import Schema

if TYPE_CHECKING:
    from .analysis.answers import Requirements
    from .boosting.surrogate import Surrogate
    from .plausibility.model import PlausibilityModel
    from .survival.committee import Retrain, Survival


class MCCE(BaseEstimator):
    """Monte Carlo sampling of valid and realistic counterfactual explanations.

    Parameters
    ----------
    predictor
        The black box: a fitted scikit-learn estimator or pipeline on the raw columns, a boosting
        model, one of :mod:`mcce.predictors`, or any callable from a frame to one score per row.
        It is never trained here.
    desired
        The decision people want: a tuple of two numbers (a closed interval of the score), an
        :class:`Interval` with open or infinite ends, or a class label or list of labels. None is
        [0.5, 1] for the second class of a binary classifier, or that class itself if the
        classifier has a threshold of its own.
    immutable, mutable
        Exact names of the columns that must not change, or of those that may: pass one of them.
    roles
        Who can act on a column, by name: ``"action"`` (the person), ``"ours"`` (whoever decides) or
        ``"past"`` (nobody). They change no answer; ``result.changes()`` says who would act.
    kinds
        ``"numeric"`` or ``"categorical"`` by column name, where the dtype would mislead.
    score_class
        The class whose probability is the score, if not the second.
    generator
        Step 1: ``"trees"`` or another name of :doc:`generators </user_guide/extending>`, or a
        generator object, e.g. ``TreeChain(min_samples_leaf=10)``.
    constraints
        How people may change: a list of :mod:`mcce.constraints`, or the path of a file of them.
    survival
        The share of retrained models that should accept each answer, such as 0.9, or a
        :class:`Survival` that says how they are trained; 0 only measures how many do. The models
        come from ``y`` and ``retrain`` of :meth:`fit`; without these, boosted trees stand for them.
        None neither requires nor measures it.
    ignore_relations
        Answers keep the relations between columns that hold in all training rows, such as
        ``total = months * price``; ``relations_`` lists them. Pass a list of such names to let
        answers break these, or True to not look for any. The paper's search never does.
    search
        How to search: ``"balanced"``, ``"sparse"``, ``"near"``, ``"nearest"``, ``"plausible"`` or
        ``"paper"``, see :class:`Search`; ``"exact"``, the best row that the model could draw; or a
        :class:`Search` or :class:`ExactSearch` of your own. None is ``"balanced"``, or ``"paper"``
        with a private generator, whose budget covers nothing else.
    n_samples
        Draws per person, the K of the paper. None is 1000 for the paper's search, and
        100 for the others.
    max_seconds
        Time limit of a call of ``explain``, which then returns what it has found.
    n_counterfactuals
        How many counterfactuals each person gets at most. Those of the searches that sample beyond
        the paper ask for different things: fewer are returned rather than the same twice.
    diversity
        From 0 to 1, how much the difference between a person's counterfactuals counts against
        their distance; see :mod:`mcce.postprocess.diversity` for the rule. The first one stays the
        same. None returns the best ones.
    distance
        ``"gower"`` or another name of :doc:`distances </user_guide/searches>`, or a distance
        object, e.g. ``HVDM(alpha=0.5)``. It ranks after the number of changes, and is a column of
        ``result.measures``.
    memory
        Megabytes that the candidates of one block of people may take.
    n_jobs
        Threads, as in scikit-learn. The predictor is called from the caller's thread only, unless
        it has the attribute ``thread_safe``, which is then True.
    random_state
        Seed of all draws, a whole number; None draws one at fit and keeps it as ``seed_``.
    verbose
        Whether to show a progress bar on a terminal (needs tqdm).

    Examples
    --------
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.69, 1.0), search="near")
    >>> explainer = explainer.set_params(immutable=["age"], random_state=0).fit(bank)
    >>> result = explainer.explain(bank.iloc[[3]])
    >>> result.changes()
       factual  rank feature before after    kind
    0        3     1  salary     56    70  action
    """

    fitted_: Fitted

    def __init__(
        self,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        mutable: Sequence[Hashable] | None = None,
        roles: Mapping[Hashable, Role] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
        score_class: Hashable | None = None,
        generator: str | Generator = "trees",
        constraints: Any = None,
        survival: float | Survival | None = None,
        ignore_relations: bool | Sequence[str] = False,
        search: SearchName | Search | ExactSearch | None = None,
        n_samples: int | None = None,
        max_seconds: float | None = None,
        n_counterfactuals: int = 1,
        diversity: float | None = None,
        distance: str | Distance = "gower",
        memory: float = 256.0,
        n_jobs: int | None = None,
        random_state: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.predictor = predictor
        self.desired = desired
        self.immutable = immutable
        self.mutable = mutable
        self.roles = roles
        self.kinds = kinds
        self.score_class = score_class
        self.generator = generator
        self.constraints = constraints
        self.survival = survival
        self.ignore_relations = ignore_relations
        self.search = search
        self.n_samples = n_samples
        self.max_seconds = max_seconds
        self.n_counterfactuals = n_counterfactuals
        self.diversity = diversity
        self.distance = distance
        self.memory = memory
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def fit(
        self,
        X: FrameT,
        y: Any = None,
        *,
        feature_names: Sequence[Hashable] | None = None,
        retrain: Retrain | None = None,
        max_seconds: float | None = None,
    ) -> Self:
        """Learn from training data how mutable features depend on immutable ones (step 1).

        Parameters
        ----------
        X
            Training rows: a pandas or polars frame, a pyarrow table or a 2-D array. The predictor
            always receives this kind of frame.
        y
            Labels, if you have them. Decisions come from the predictor: labels tell whether they
            were left among the columns, and with ``survival`` models are trained on them.
        feature_names
            Names for the columns of an array; x0, x1, … by default.
        retrain
            With ``survival``, a function of rows and labels that trains a predictor like this one,
            for example with other hyper-parameters each time. None clones an estimator of
            scikit-learn and fits it with other seeds.
        max_seconds
            Time limit of this call. A fit that takes longer raises an error, and the previous fit
            stands, as it does if the call fails in another way or is interrupted.

        Returns
        -------
        MCCE
            The fitted explainer.

        Raises
        ------
        ParameterError, SchemaError, ConstraintError, PredictorError
            If a parameter, a column, a constraint or the predictor cannot be used.
        TimeLimitError
            If the time limit has passed.

        Warns
        -----
        McceWarning
            If columns look like identifiers, row numbers, constants or the outcome, see
            ``flagged_columns_``, or if no training row has the desired decision, or every one has
            it.
        """
        check_parameters(self)
        check_seconds(max_seconds)
        request = self._fit_request(feature_names, y, retrain)
        with time_limit("fit", max_seconds):
            fitted = learn(X, request)
        check_roles(self.roles, fitted.schema.names)
        check_ignored_relations(fitted, self.ignore_relations)
        self.fitted_ = fitted
        return self

    @overload
    def explain(
        self,
        X: np.ndarray,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
    ) -> Counterfactuals[pd.DataFrame]: ...
    @overload
    def explain(
        self,
        X: FrameT,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
    ) -> Counterfactuals[FrameT]: ...
    def explain(
        self,
        X: Any,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
    ) -> Counterfactuals[Any]:
        """Find counterfactuals for people (steps 2 and 3).

        People who already have the desired decision are reported, not explained. Finding nothing is
        an answer: see ``result.missing`` for the reasons.

        Parameters
        ----------
        X
            People, with the columns of the training data in any order. The result comes in the same
            kind of frame.
        constraints
            Further constraints for this call, for example what is frozen for some of these people.
        callback
            Called with a :class:`~mcce.protocols.Progress` between predictor calls. Return True to
            stop and keep what was found.

        Returns
        -------
        Counterfactuals
            Counterfactuals, their measures, and what became of each person.

        Raises
        ------
        McceError
            If the explainer is not fitted, or a parameter, column or constraint cannot be used.

        Warns
        -----
        McceWarning
            If people have no counterfactual, the predictor is unstable, or nobody with the desired
            decision shares a person's immutable values.
        """
        fitted, settings, bound = self._prepare(constraints)
        roles = check_roles(self.roles, fitted.schema.names)
        result = explain(fitted, settings, X, bound, callback)
        warn_of_gaps(result, fitted, settings.search.by_sampling)
        return result.with_roles(roles)

    def finalize(
        self,
        result: Counterfactuals[FrameT],
        *,
        rounding: Mapping[Hashable, float] | None = None,
        constraints: Any = None,
    ) -> Counterfactuals[FrameT]:
        """Round, check and measure answers once, for people to read.

        Letters, reports, commands and the service show final answers alone, so all of them show the
        same rows. Numbers are rounded as coarsely as the predictor and everything that ``explain``
        requires of an answer allow, down to the number as it is; columns that follow from others
        follow. If a single number of an answer changes, it goes no further than needed: to the
        nearest round number of its range. No value passes the person's own. Every row is then
        scored and measured again, and gets its ranges. Answers that are refused are withdrawn, and
        of equal answers of a person the first one stays. If the first answer is only narrowly
        accepted, another one that is not, and has no more actions, comes first. Anonymous answers
        are not rounded.

        Parameters
        ----------
        result
            What :meth:`explain` returned. One that is final is returned as it is.
        rounding
            Step to which a number is rounded at first, by column, such as those of
            ``mcce.report.Labels.rounding``; 0 leaves a column as it is. For all others, and where
            the step is too coarse, it is a tenth of the change or less.
        constraints
            The further constraints of the call of ``explain``, if it had some.

        Returns
        -------
        Counterfactuals
            The result with ``final`` and ``ranges``. ``proven`` is False for answers that were
            rounded.

        Raises
        ------
        NotFittedError, ParameterError, SchemaError
            If the explainer is not fitted, a parameter cannot have its value, or the result is
            that of another explainer.

        Warns
        -----
        McceWarning
            If answers are refused by the predictor or the constraints, and so withdrawn.

        Examples
        --------
        >>> from mcce import MCCE
        >>> salaries = [*range(50_000, 90_000, 400)] * 2
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 50, "salary": salaries})
        >>> explainer = MCCE(lambda frame: frame["salary"], (70_123, 1e9), immutable=["age"])
        >>> result = explainer.set_params(search="near").fit(bank).explain(bank.iloc[[3]])
        >>> final = explainer.finalize(result, rounding={"salary": 1_000})
        >>> final.frame
                      age  salary
        factual rank
        3       1      52   71000
        >>> final.ranges[["feature", "value", "low", "high", "high_open"]]
          feature  value    low   high  high_open
        0  salary  71000  71000  89600       True
        """
        from .analysis.finalizing import finalize, warn_of_withdrawn

        final = finalize(*self._prepare(constraints), result, rounding)
        warn_of_withdrawn(result, final)
        return final

    def ranges(
        self,
        result: Counterfactuals[FrameT],
        *,
        constraints: Any = None,
        random_state: int | None = None,
    ) -> FrameT:
        """Which other values of the changed features would do as well.

        For each changed number of a counterfactual the widest interval of training values around
        its own, all other changes as they are, in which the row stays valid, plausible and allowed:
        with the decision and margin, the ``min_plausibility``, the constraints, the relations and
        the bounds of the search. For each changed category the other levels that would do. Columns
        that follow from others follow here too, and have no range of their own. The predictor
        scores at most 20 rows for each changed feature, boxes included, so not every value of a
        range is tried.

        Parameters
        ----------
        result
            What :meth:`explain` returned. One that is final has its ranges already.
        constraints
            The further constraints of that call, if it had some.
        random_state
            Seed of the points that are tried in boxes; None is ``seed_``.

        Returns
        -------
        frame
            One row per counterfactual and changed feature: ``factual``, ``rank``, ``feature``,
            ``kind`` ("numeric" or "categorical"), the counterfactual's own ``value``; of a number
            the ends ``low`` and ``high`` of its range, and whether training has nothing beyond them
            (``low_open``, ``high_open``); of a category ``others``, a list of levels;
            ``n_training`` (training rows with a value of the range, or one of these levels) and
            ``n_tried`` (rows scored for it). For counterfactuals with two or more numbers that may
            move, ``box_low`` and ``box_high``: how far they may move at the same time; with
            ``box_tried`` (corners and random points inside that were tried), ``box_held`` (how many
            of them held), ``box_share`` (the share of the points inside that hold, with 95 %
            confidence; 1 if all of them were tried and held) and ``box_accepted`` (accepted
            training rows inside, if fit kept them). What does not apply is missing.

        Raises
        ------
        NotFittedError, ParameterError, SchemaError
            If the explainer is not fitted, a parameter cannot have its value, or the result is
            that of another explainer.

        Warns
        -----
        McceWarning
            If counterfactuals are not valid by this explainer: they have no ranges.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
        >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.69, 0.81), search="near")
        >>> explainer = explainer.set_params(immutable=["age"], random_state=0).fit(bank)
        >>> result = explainer.explain(bank.iloc[[3]])
        >>> explainer.ranges(result)[["feature", "value", "low", "high", "n_training", "n_tried"]]
          feature value low high  n_training  n_tried
        0  salary    70  70   80           6       11
        """
        from .analysis.ranges import RangeSettings, find_ranges

        requirements = requirements_of(self, constraints)
        check_seed(random_state)
        seed = self.seed_ if random_state is None else int(random_state)
        settings = RangeSettings(self.fitted_, requirements, seed)
        if isinstance(result, Counterfactuals) and result.ranges is not None:
            return result.ranges
        return find_ranges(settings, result, verbose=bool(self.verbose))

    def robustness(
        self,
        result: Counterfactuals[FrameT],
        *,
        n_perturbations: int = 100,
        scale: float = 0.05,
        constraints: Any = None,
        random_state: int | None = None,
    ) -> FrameT:
        """How robust the counterfactuals of a result are.

        Parameters
        ----------
        result
            What :meth:`explain` returned.
        n_perturbations
            Perturbations of each counterfactual, at most.
        scale
            How far a number may move, as a share of its training range.
        constraints
            The further constraints of that call, if it had some: what is derived follows them.
        random_state
            Seed of the perturbations; None is ``seed_``.

        Returns
        -------
        frame
            One row per counterfactual, with its index: ``valid`` (in a fresh predictor call),
            ``margin`` (how far inside the desired set, see :meth:`Decision.score_margins`),
            ``stability`` (share of small perturbations of the changed numbers that stay valid),
            ``partial`` (share of proper subsets of the changes that are valid already),
            ``minimal`` (whether none is) and ``n_evaluated`` (rows scored). Undefined values are
            NaN. Columns that follow from others follow here too, and are no changes of their own.

        Raises
        ------
        NotFittedError, ParameterError
            If the explainer is not fitted, or a parameter cannot have its value.
        """
        from .analysis.robustness import RobustnessSettings, measure_robustness

        requirements = requirements_of(self, constraints)
        check_robustness(n_perturbations, scale, random_state)
        seed = self.seed_ if random_state is None else int(random_state)
        settings = RobustnessSettings(
            self.fitted_.decision, requirements, int(n_perturbations), float(scale), seed
        )
        return measure_robustness(settings, result, verbose=bool(self.verbose))

    def relax(
        self,
        X: FrameT,
        training: Any = None,
        *,
        constraints: Any = None,
        only: Sequence[str] | None = None,
    ) -> Any:
        """Which single constraint or bound, if lifted, would give people an answer.

        Parameters
        ----------
        X
            People, with the columns of the training data in any order.
        training
            The training data, to try immutable features too: each is modelled again as mutable,
            which takes as long as fitting. None does not try immutable features; nor does a
            private explainer, which would have to pay for every model.
        constraints
            Further constraints, as in :meth:`explain`.
        only
            Names of the constraints and bounds to try, those that are likely to help first. This
            takes less time: there are fewer draws, and the rest is left out after a second once
            something helps. None tries all.

        Returns
        -------
        frame
            One row per person without an answer and thing that could be lifted: ``factual``,
            ``lifted``, ``kind`` ("constraint", "bound" or "immutable"), whether the person is then
            ``answered``, and the ``sparsity`` and ``gower`` of the best answer. Answers that
            also satisfy the lifted constraint do not count: the first search merely missed them.

        Raises
        ------
        NotFittedError
            If the explainer is not fitted, or a parameter that ``fit`` depends on was changed.
        """
        from .search.relaxing import relaxation_table

        fitted, settings, bound = self._prepare(constraints)
        check_refit(fitted.generator, training)
        fit_again = None if training is None else self._refitter(training, fitted)
        return relaxation_table(fitted, settings, X, bound, fit_again, only)

    def plausibility(self, X: FrameT) -> FrameT:
        """How plausible rows are among real people with the desired decision.

        Parameters
        ----------
        X
            Rows, with the columns of the training data in any order.

        Returns
        -------
        frame
            One row each, with its index, and one column ``plausibility``: the share of accepted
            training rows, held out from what was learned, that look at least as unusual. It is a
            conformal p-value: one in twenty real accepted people has 0.05 or less. It ignores
            unseen pairs of values, which answers must also avoid.

        Raises
        ------
        NotFittedError
            If the explainer is not fitted, or has no plausibility model, as with the search of the
            paper.

        Examples
        --------
        >>> from mcce import MCCE
        >>> months = np.arange(1200) % 60 + 1
        >>> bills = pd.DataFrame({"months": months, "total": 20 * months})
        >>> explainer = MCCE(lambda frame: frame["total"] / 1200, (0.1, 1), random_state=0)
        >>> odd = pd.DataFrame({"months": [30, 30], "total": [600, 1100]})
        >>> explainer.fit(bills).plausibility(odd).round(2)
           plausibility
        0          0.95
        1          0.00
        """
        fitted = self._check_fitted()
        rows = fitted.schema.encode(X)
        found = plausibility_model(fitted).assess(rows.tree_codes, rows.all_numbers)
        table = pd.DataFrame({"plausibility": found.p_value}, index=rows.index)
        native: FrameT = rows.adapter.table_to_native(table)
        return native

    def log_likelihood(self, X: FrameT) -> FloatArray:
        """Log-probability of rows under the model, given the desired decision.

        Parameters
        ----------
        X
            Rows, with the columns of the training data in any order.

        Returns
        -------
        (n_rows,)
            Log-probability of the mutable values given the immutable ones; minus infinity for a row
            that the model could not draw.

        Raises
        ------
        NotFittedError, ParameterError
            If the explainer is not fitted, or its generator has no density.
        """
        fitted = self._check_fitted()
        generator = require(fitted.generator, "density", "log_likelihood needs densities of rows")
        return generator.log_likelihood(fitted.schema.encode(X))

    def save(self, path: str | os.PathLike[str], *, key: bytes | None = None) -> None:
        """Write the fitted explainer, without its predictor, to a file for :func:`mcce.load`.

        The file holds no code, but training values by feature; whole training rows only with a
        search that excludes copies of them, and whole accepted ones with a search that uses them.
        With a private generator it holds none of these.

        Parameters
        ----------
        path
            The file; one that exists is replaced.
        key
            A secret of at least 16 bytes, better 32, that signs the file for ``load(key=...)``.

        Raises
        ------
        NotFittedError, SavedFileError, ParameterError
            If the explainer is not fitted, or the file or a parameter cannot be written.
        """
        from .saving.document import save

        fitted = self._check_ready()
        save(self.get_params(deep=False), fitted, path, key)

    @property
    def schema_(self) -> Schema:
        """The columns of the training data."""
        return self.fitted_.schema

    @property
    def decision_(self) -> Decision:
        """How the predictor is called and what is desired of it."""
        return self.fitted_.decision

    @property
    def generator_(self) -> Generator:
        """The fitted model of step 1."""
        return self.fitted_.generator

    @property
    def distance_(self) -> Distance:
        """The fitted distance."""
        return self.fitted_.distance

    @property
    def n_desired_(self) -> int:
        """Number of training rows with the desired decision."""
        return self.fitted_.n_desired

    @property
    def seed_(self) -> int:
        """Seed of all draws."""
        return self.fitted_.seed

    @property
    def plausibility_(self) -> PlausibilityModel | None:
        """What accepted training rows look like; None if the search does not need it."""
        return self.fitted_.plausibility

    @property
    def surrogate_(self) -> Surrogate | None:
        """The surrogate: a model of the predictor, so that searches call it on few rows only.

        A poor surrogate costs extra predictor calls. None if the search does not use one, as the
        paper's, or if fit had too little to learn from.

        Attributes
        ----------
        r2, rank_agreement
            Share of the variance that it explains on rows held out, and the rank correlation with
            the predictor's scores there. Probabilities are compared by their logit.
        error
            Typical error there, robust to a few huge ones.
        n_rows, n_held_out
            Training rows that it was learned from, and those that were held out to measure it.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"salary": np.arange(600) % 90, "debt": np.arange(600) % 70})
        >>> explainer = MCCE(lambda frame: (frame["salary"] - frame["debt"]) / 100, (0.3, 1.0))
        >>> surrogate = explainer.set_params(random_state=0).fit(bank).surrogate_
        >>> surrogate.r2 > 0.9, surrogate.n_held_out
        (True, 100)
        """
        return self.fitted_.surrogate

    @property
    def retrained_(self) -> list[Any] | None:
        """The models that ``fit`` trained anew for ``survival``; None if it trained none.

        A saved explainer does not hold them: keep them beside it, for example by joblib, and pass
        them to :func:`mcce.load`.
        """
        lasting = self.fitted_.lasting
        models = None if lasting is None else lasting.retrained
        return None if models is None else [one.predictor for one in models.decisions]

    @property
    def relations_(self) -> pd.DataFrame:
        """Relations between columns that the training data suggest, one in each row.

        Attributes
        ----------
        relation, kind
            Its name, such as ``total = months * price``, and its kind.
        target, features
            The column that follows from others, and all columns it mentions.
        holds
            Share of training rows in which it holds.
        n_rows, p_value
            Rows held out to confirm it, and an upper bound of the chance to find a relation like
            that if the columns had nothing to do with each other.
        tolerance
            Largest deviation of an equality, and whether ``relative`` to its formula.
        enforced
            Whether it holds in all training rows, so that answers keep it.
        """
        from .relations.relation import table_of_relations

        if self.fitted_.relations is None:
            raise AttributeError(
                "relations_ needs a search other than the paper's, and ignore_relations other than "
                "True, at fit."
            )
        return table_of_relations(self.fitted_.relations)

    @property
    def flagged_columns_(self) -> pd.DataFrame:
        """Columns that are no action for anybody, as far as ``fit`` can tell, one in each row.

        Searches other than the paper's leave identifiers and constants as they are, unless they are
        named in ``mutable`` or in a constraint. An ignored column cannot be what brings about a
        decision, but may change with others, so that the row stays plausible. Tables of less than
        100 rows have no flags.

        Attributes
        ----------
        column
            Its name.
        flag
            ``"identifier"``: it names its row. ``"constant"``: it has one value. ``"ignored"``: the
            predictor does not use it. ``"outcome"``: it is what the predictor should predict, and
            was left among the columns.
        why
            What was found.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"salary": np.arange(600) % 90, "debt": np.arange(600) % 70})
        >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.3, 1.0), random_state=0)
        >>> explainer.fit(bank).flagged_columns_[["column", "flag"]]
          column     flag
        0   debt  ignored
        """
        return table_of_flags(self.fitted_.flags or (), self.fitted_.schema)

    @property
    def timings_(self) -> Mapping[str, float]:
        """Wall-clock seconds of fitting, by step."""
        return self.fitted_.seconds

    @property
    def n_features_in_(self) -> int:
        """Number of columns of the training data."""
        return len(self.fitted_.schema.features)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """Names of the columns, where they have names that are all strings."""
        schema = self.fitted_.schema
        unnamed = isinstance(schema.adapter, ArrayAdapter) and not schema.adapter.named
        if unnamed or not all(isinstance(name, str) for name in schema.names):
            raise AttributeError("feature_names_in_ needs columns whose names are all strings.")
        return np.array(schema.names, dtype=object)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name, including those of generator and distance, not of the predictor.

        Parameters
        ----------
        deep
            Whether to include the parameters of generator and distance.

        Returns
        -------
        dict
            Values by name.
        """
        params: dict[str, Any] = super().get_params(deep=False)
        for part in ("generator", "distance") if deep else ():
            if hasattr(params[part], "get_params") and not isinstance(params[part], type):
                params |= {f"{part}__{k}": v for k, v in params[part].get_params().items()}
        return params

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same predictor: it is given, not trained here."""
        params = self.get_params(deep=False)
        kept = {"predictor", "desired"}
        return type(self)(
            **{k: v if k in kept else clone(v, safe=False) for k, v in params.items()}
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags

    def _fit_request(
        self,
        feature_names: Sequence[Hashable] | None,
        labels: Any,
        retrain: Retrain | None,
    ) -> FitRequest:
        """What ``fit`` is to learn, with the generator and the distance by their names."""
        generator, distance = find_generator(self.generator), find_distance(self.distance)
        search = find_search(self.search, private=is_private(generator))
        check_private(generator, search, distance, self.ignore_relations)
        return FitRequest(
            predictor=self.predictor,
            desired=self.desired,
            score_class=self.score_class,
            immutable=self.immutable,
            mutable=self.mutable,
            kinds=self.kinds,
            feature_names=feature_names,
            generator=generator,
            distance=distance,
            constraints=self.constraints,
            labels=labels,
            survival=find_survival(self.survival, search, private=is_private(generator)),
            retrain=retrain,
            needs=needs_of(search, self.ignore_relations),
            random_state=self.random_state,
            n_jobs=self.n_jobs,
            verbose=bool(self.verbose),
            parameters=learned_parameters(self),
        )

    def _refitter(self, training: Any, fitted: Fitted) -> Callable[[Sequence[Hashable]], Fitted]:
        """A function that fits again with other immutable columns; all else is as it is now."""
        start = clone(self).set_params(mutable=None, survival=None, random_state=fitted.seed)
        adapter = fitted.schema.adapter
        named = isinstance(adapter, ArrayAdapter) and adapter.named
        names = fitted.schema.names if named and isinstance(training, np.ndarray) else None

        def fit_again(immutable: Sequence[Hashable]) -> Fitted:
            again: MCCE = clone(start).set_params(immutable=immutable)
            return again.fit(training, feature_names=names).fitted_

        return fit_again

    def _prepare(self, constraints: Any) -> tuple[Fitted, ExplainSettings, Constraints]:
        """What a call works with; the constraints are the explainer's and those of the call."""
        # Read once: another thread may fit this explainer again meanwhile.
        fitted = self._check_ready()
        settings = ExplainSettings.from_parameters(
            self.get_params(deep=False), private=is_private(fitted.generator)
        )
        own, more = (Constraints.bind(c, fitted.schema) for c in (self.constraints, constraints))
        return fitted, settings, with_held_columns(fitted, settings, own.joined(more), self.mutable)

    def _check_ready(self) -> Fitted:
        """The fitted state; raises if parameters changed since ``fit``."""
        fitted = self._check_fitted()
        check_parameters(self)
        check_unchanged(self, fitted.parameters)
        return fitted

    def _check_fitted(self) -> Fitted:
        if not hasattr(self, "fitted_"):
            raise NotFittedError(
                "This MCCE is not fitted yet. Call fit with the training data before explaining."
            )
        return self.fitted_


def load(
    path: str | os.PathLike[str],
    predictor: Any,
    *,
    generator: Generator | None = None,
    retrained: Sequence[Any] | None = None,
    tolerance: float = 1e-9,
    key: bytes | None = None,
) -> MCCE:
    """Load a saved explainer together with the predictor it explains.

    Its answers are the same as before saving. Loading runs no code from the file, whoever wrote it.
    But the checksums in a file prove nothing about its origin: an edited file with new checksums
    and a sound structure loads, and gives other answers. Only a signature tells, see ``key``.

    Parameters
    ----------
    path
        File written by :meth:`MCCE.save`.
    predictor
        The predictor that was explained. It must score the probe rows in the file as it did.
    generator
        An unfitted instance, if the explainer was saved with a generator that is not part of
        mcce: a file holds no code.
    retrained
        The models that were trained anew for ``survival``, which ``retrained_`` of the explainer
        was when it was saved.
    tolerance
        Relative difference up to which such scores are equal; raise it for float32 predictors.
    key
        The secret that the file was signed with; a file without that signature is refused. None
        does not look at signatures.

    Returns
    -------
    MCCE
        The fitted explainer.

    Raises
    ------
    SavedFileError
        If the file cannot be read, is damaged, was not signed with the key, or holds no explainer.
    PredictorError
        If the predictor is not the one that the explainer was saved with.
    ParameterError
        If an argument cannot have its value, or the file needs a generator of yours.
    MissingExtraError
        If the file needs a library that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> score = lambda frame: frame["salary"] / 100
    >>> explainer = MCCE(score, (0.7, 1.0), immutable=["age"], random_state=0).fit(bank)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explainer.save(f"{folder}/loans.mcce")
    ...     loaded = load(f"{folder}/loans.mcce", score)
    >>> loaded.explain(bank.head(2)).frame.equals(explainer.explain(bank.head(2)).frame)
    True
    """
    from .saving.document import restore

    check_real("tolerance", tolerance, "a finite number >= 0")

    def check(given: Mapping[str, Any]) -> dict[str, Any]:
        explainer = MCCE(predictor, **given)
        check_parameters(explainer)
        parameters = explainer.get_params(deep=False)
        del parameters["predictor"]
        return parameters

    parameters, fitted = restore(path, predictor, tolerance, check, generator, key, retrained)
    explainer = MCCE(predictor, **parameters)
    explainer.fitted_ = replace(fitted, parameters=learned_parameters(explainer))
    return explainer


def requirements_of(explainer: MCCE, constraints: Any = None) -> Requirements:
    """What an explainer requires of rows, given further constraints of one call.

    Raises NotFittedError if it is not fitted, or parameters were changed since.
    """
    from .analysis.answers import Requirements

    return Requirements.of(*explainer._prepare(constraints))
