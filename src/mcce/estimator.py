"""What scikit-learn expects of an estimator, and measures of any rows and results.

The predictor is a parameter that is given and not trained: cloning keeps it, and its own
parameters are not ours. What ``fit`` learned is one frozen value, ``fitted_``; the attributes that
end with an underscore are views of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from .analysis.ranges import RangeSettings, find_ranges
from .analysis.requirements import Requirements
from .analysis.robustness import RobustnessSettings, measure_robustness
from .constraints.collection import Constraints
from .counterfactuals import Counterfactuals, FrameT
from .errors import NotFittedError
from .fitted import Fitted, plausibility_model
from .kernels import FloatArray
from .model import require
from .parameters import check_parameters, check_robustness, check_seed, check_unchanged
from .plausibility.model import PlausibilityModel
from .predictors.decision import Decision
from .protocols import Distance, Generator
from .relations.relation import table_of_relations
from .search.plan import Settings
from .surrogate import Surrogate
from .tables.frames import ArrayAdapter
from .tables.schema import Schema


class Estimator(BaseEstimator):
    """Parameters, clones, tags, the learned attributes, and measures of rows and results."""

    fitted_: Fitted
    generator: Any
    constraints: Any
    verbose: bool

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
        """What imitates the predictor, so that searches call it on few rows.

        None if the search does not use one, as the paper's, if fit had too little to learn from,
        or if the explainer was saved by an earlier version of mcce. Such searches, and those whose
        surrogate is not good, call the predictor on every row that they look at.

        Attributes
        ----------
        r2, rank_agreement
            Share of the variance that it explains on rows held out, and the rank correlation with
            what the predictor says of them. Probabilities are compared by their logit.
        error
            Typical error there, robust to a few huge ones.
        n_rows, n_held_out
            Training rows that it was learned from, and those that were held out to measure it.
        is_good
            Whether it leads searches: ``r2`` is at least 0.25, and at least 30 rows were held out.
            With ``max_evaluations`` it does in any case.

        Examples
        --------
        >>> from mcce import MCCE
        >>> bank = pd.DataFrame({"salary": np.arange(600) % 90, "debt": np.arange(600) % 70})
        >>> explainer = MCCE(lambda frame: (frame["salary"] - frame["debt"]) / 100, (0.3, 1.0))
        >>> explainer.set_params(search="sparse", random_state=0).fit(bank).surrogate_
        <Surrogate: r2 1.00 and rank agreement 0.99 on 100 of 600 training rows, leads searches>
        """
        return self.fitted_.surrogate

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
        if self.fitted_.relations is None:
            raise AttributeError(
                "relations_ needs a search other than the paper's, and ignore_relations other than "
                "True, at fit."
            )
        return table_of_relations(self.fitted_.relations)

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
            training rows, held out from what was learned, that look at least as strange. It is a
            conformal p-value: one in twenty real accepted people has 0.05 or less.

        Raises
        ------
        NotFittedError
            If the explainer is not fitted, or did not learn what accepted rows look like, as with
            the search of the paper.

        Examples
        --------
        >>> from mcce import MCCE
        >>> months = np.arange(1200) % 60 + 1
        >>> bills = pd.DataFrame({"months": months, "total": 20 * months})
        >>> explainer = MCCE(lambda frame: frame["total"] / 1200, search="balanced")
        >>> explainer = explainer.set_params(desired=(0.1, 1), random_state=0).fit(bills)
        >>> odd = pd.DataFrame({"months": [30, 30], "total": [600, 1100]})
        >>> explainer.plausibility(odd).round(2)
           plausibility
        0          0.95
        1          0.00
        """
        fitted = self._check_fitted()
        rows = fitted.schema.encode(X)
        found = plausibility_model(fitted).assess(rows.descent, rows.all_numbers)
        table = pd.DataFrame({"plausibility": found.p_value}, index=rows.labels)
        native: FrameT = rows.adapter.table_to_native(table)
        return native

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
        requirements = requirements_of(self, constraints)
        check_robustness(n_perturbations, scale, random_state)
        seed = self.fitted_.seed if random_state is None else int(random_state)
        size, rules = (int(n_perturbations), float(scale)), requirements.constraints
        decision, targets = self.fitted_.decision, requirements.targets
        settings = RobustnessSettings(decision, *size, seed, targets, rules)
        return measure_robustness(settings, self.schema_, result, verbose=bool(self.verbose))

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
            What :meth:`explain` returned.
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
        >>> explainer = MCCE(lambda frame: frame["salary"] / 100, (0.7, 0.8), immutable=["age"])
        >>> result = explainer.set_params(random_state=0).fit(bank).explain(bank.iloc[[3]])
        >>> explainer.ranges(result)[["feature", "value", "low", "high", "n_training", "n_tried"]]
          feature value low high  n_training  n_tried
        0  salary    70  70   80           6       11
        """
        requirements = requirements_of(self, constraints)
        check_seed(random_state)
        seed = self.fitted_.seed if random_state is None else int(random_state)
        settings = RangeSettings(self.fitted_, requirements, seed)
        return find_ranges(settings, result, verbose=bool(self.verbose))

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

    def _bind(self, more: Any, fitted: Fitted) -> Constraints:
        """The constraints of the explainer and of one call."""
        schema = fitted.schema
        return Constraints.bind(self.constraints, schema).joined(Constraints.bind(more, schema))

    def _settings(self) -> Settings:
        return Settings.from_parameters(self.get_params(deep=False))

    def _check_ready(self) -> Fitted:
        """What ``fit`` learned, if it still goes with the parameters."""
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

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy with the same predictor: it is given, not trained here."""
        params = self.get_params(deep=False)
        kept = {"predictor", "desired"}
        return type(self)(
            **{k: v if k in kept else clone(v, safe=False) for k, v in params.items()}
        )

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def requirements_of(explainer: Estimator, constraints: Any = None) -> Requirements:
    """What an explainer requires of rows, given further constraints of one call.

    Raises NotFittedError if it is not fitted, or parameters were changed since.
    """
    fitted = explainer._check_ready()
    bound = explainer._bind(constraints, fitted)
    return Requirements.of(fitted, explainer._settings(), bound)
