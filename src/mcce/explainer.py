"""MCCE: counterfactual explanations for tabular data, in three steps.

Paper, section "Generating counterfactual explanations with MCCE": (1) model the mutable features
given the immutable ones and the decision, (2) generate many candidates per person, (3) keep the
valid ones and rank them. ``fit`` is step 1, ``explain`` is steps 2 and 3.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Self, overload

import numpy as np
import pandas as pd

from .analysis.anonymity import anonymize, read_anonymity
from .analysis.relaxation import Refit, relaxations
from .analysis.requirements import Requirements
from .counterfactuals import Counterfactuals, FrameT, with_anonymous
from .distances import find_distance
from .estimator import Estimator
from .fitted import learn
from .model import find_generator
from .parameters import check_parameters, check_seconds, learned_parameters
from .protocols import Callback, Distance, Generator
from .runtime.limits import time_limit
from .saving import save
from .search.config import ExactSearch, Search, SearchName, check_private, check_refit, find_search
from .search.consequences import check_ignored
from .search.explain import explain, warn_of_gaps
from .tables.columns import Kind
from .tables.roles import Role, check_roles


class MCCE(Estimator):
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
        Step 1: ``"trees"`` or another name of :doc:`generators </user_guide/generators>`, or a
        generator object, e.g. ``TreeChain(min_samples_leaf=10)``.
    constraints
        How people may change: a list of :mod:`mcce.constraints`, or the path of a file of them.
    ignore_relations
        Answers keep the relations between columns that hold in all training rows, such as
        ``total = months * price``; ``relations_`` lists them. Pass a list of such names to let
        answers break these, or True to not look for any. The paper's search never does.
    search
        How to search: ``"paper"``, ``"balanced"``, ``"sparse"``, ``"plausible"``, ``"near"`` or
        ``"fast"``, see :meth:`Search.preset`; ``"exact"``, the best row that the model could draw;
        or a :class:`Search` or :class:`ExactSearch` of your own.
    n_samples
        Draws per person, the K of the paper. None is what the search says, 1000 for the paper's.
    max_seconds
        Time limit of a call of ``explain``, which then returns what it has found.
    n_counterfactuals
        How many counterfactuals each person gets at most.
    diversity
        From 0 to 1, how much the difference between a person's counterfactuals counts against
        their distance; see :mod:`mcce.postprocess.diversity` for the rule. The first one stays the
        same. None returns the best ones, however similar.
    distance
        ``"gower"``, ``"l1"``, ``"heom"``, ``"hvdm"`` or ``"ivdm"``, or a distance object, e.g.
        ``HVDM(alpha=0.5)``. It ranks after the number of changes, and is a column of
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
    >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.7, 1.0), immutable=["age"])
    >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank.iloc[[3]])
    >>> result.changes()
       factual  rank feature before after    kind
    0        3     1  salary     56    70  action
    """

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
        ignore_relations: bool | Sequence[str] = False,
        search: SearchName | Search | ExactSearch = "paper",
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
        max_seconds: float | None = None,
    ) -> Self:
        """Learn from training data how mutable features depend on immutable ones (step 1).

        Parameters
        ----------
        X
            Training rows: a pandas or polars frame, a pyarrow table or a 2-D array. The predictor
            always receives this kind of frame.
        y
            Ignored: the decisions come from the predictor.
        feature_names
            Names for the columns of an array; x0, x1, … by default.
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
            If almost every row has its own level in a column.
        """
        check_parameters(self)
        check_seconds(max_seconds)
        search = find_search(self.search)
        generator, distance = find_generator(self.generator), find_distance(self.distance)
        check_private(generator, search, distance, self.ignore_relations)
        needs = search.needs
        with time_limit("fit", max_seconds):
            fitted = learn(
                X,
                predictor=self.predictor,
                desired=self.desired,
                immutable=self.immutable,
                mutable=self.mutable,
                kinds=self.kinds,
                score_class=self.score_class,
                feature_names=feature_names,
                generator=generator,
                distance=distance,
                constraints=self.constraints,
                plausibility=needs.measures_plausibility,
                surrogate=needs.surrogate,
                relations=needs.relations and self.ignore_relations is not True,
                training_rows=needs.training_rows,
                random_state=self.random_state,
                n_jobs=self.n_jobs,
                verbose=bool(self.verbose),
                parameters=learned_parameters(self),
            )
        check_roles(self.roles, fitted.schema.names)
        check_ignored(fitted, self.ignore_relations)
        self.fitted_ = fitted
        return self

    @overload
    def explain(
        self,
        X: np.ndarray,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
        anonymity: int | None = None,
        quasi_identifiers: Sequence[Hashable] | None = None,
        training: Any = None,
        min_pureness: float = 0.9,
    ) -> Counterfactuals[pd.DataFrame]: ...
    @overload
    def explain(
        self,
        X: FrameT,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
        anonymity: int | None = None,
        quasi_identifiers: Sequence[Hashable] | None = None,
        training: Any = None,
        min_pureness: float = 0.9,
    ) -> Counterfactuals[FrameT]: ...
    def explain(
        self,
        X: Any,
        *,
        constraints: Any = None,
        callback: Callback | None = None,
        anonymity: int | None = None,
        quasi_identifiers: Sequence[Hashable] | None = None,
        training: Any = None,
        min_pureness: float = 0.9,
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
        anonymity
            Also give the answers with ranges and sets of values that at least so many training
            people fit, as ``result.anonymous``: see :class:`mcce.AnonymousAnswers`.
        quasi_identifiers
            With ``anonymity``, the columns by which people could be recognised. Those that are
            immutable are the person's own in every answer, and are not widened.
        training
            With ``anonymity``, the rows that the explainer was fitted on, which it does not keep.
        min_pureness
            With ``anonymity``, the share of the combinations of widened values that the predictor
            must accept, where possible; ``result.anonymous.measures`` says where it is not.

        Returns
        -------
        Counterfactuals
            Counterfactuals, their measures, and what became of everybody.

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
        # Read once: another thread may fit this explainer again meanwhile.
        fitted, settings = self._check_ready(), self._settings()
        roles = check_roles(self.roles, fitted.schema.names)
        given = anonymity, quasi_identifiers, training, min_pureness
        anonymous = read_anonymity(fitted, *given)
        bound = self._bind(constraints, fitted)
        result = explain(
            fitted,
            settings,
            X,
            bound,
            max_seconds=self.max_seconds,
            callback=callback,
            verbose=bool(self.verbose),
        )
        warn_of_gaps(result, fitted.schema)
        if anonymous is not None:
            requirements = Requirements.of(fitted, settings, bound)
            widened = anonymize(anonymous, fitted, requirements, result)
            result = with_anonymous(result, widened)
        return result.with_roles(roles)

    def relax(self, X: FrameT, training: Any = None, *, constraints: Any = None) -> Any:
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

        Returns
        -------
        frame
            One row per person without an answer and thing that could be lifted: ``factual``,
            ``lifted``, ``kind`` ("constraint", "bound" or "immutable"), whether the person is then
            ``answered``, and the ``sparsity`` and ``gower`` of the best answer.

        Raises
        ------
        NotFittedError
            If the explainer is not fitted, or a parameter that ``fit`` depends on was changed.
        """
        fitted, settings = self._check_ready(), self._settings()
        check_refit(fitted.generator, training)
        return relaxations(
            fitted,
            settings,
            X,
            self._bind(constraints, fitted),
            refit=None if training is None else Refit(self, fitted, training),
            verbose=bool(self.verbose),
        )

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
        fitted = self._check_ready()
        save(self.get_params(deep=False), fitted, path, key)
