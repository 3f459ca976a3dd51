"""What a method that explains must offer, and what it tells while it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Self

from ..runtime.progress import Progress

if TYPE_CHECKING:
    from ..counterfactuals import Counterfactuals


class Explainer(Protocol):
    """A method that finds counterfactuals; :class:`mcce.MCCE` is one."""

    def fit(self, X: Any) -> Self:
        """Learn from training data; returns itself.

        Parameters
        ----------
        X
            The training data.
        """
        ...

    def explain(self, X: Any) -> Counterfactuals[Any]:
        """Counterfactuals for every row of ``X``, or the reason why there is none.

        The result has the kind of frame, columns, dtypes and order of ``X``. Every counterfactual
        is valid by a fresh call of the predictor and keeps the immutable features. Nobody's result
        depends on who else is in ``X``. :meth:`Counterfactuals.from_frame` builds such a result.

        Parameters
        ----------
        X
            People, with the columns of the training data.
        """
        ...


class Callback(Protocol):
    """Called between two batches of predictor calls."""

    def __call__(self, progress: Progress) -> bool | None:
        """Return True to stop: people not settled by then are reported as such."""
        ...
