"""Predictors that offer gradients, which some baselines need.

A predictor says so itself: by capability, never by the name of its library. It has two steps, from
a frame to the numbers that its network takes, and from these to its output.

Always true: nothing here imports torch; a predictor without gradients gets an error that names
methods that need none.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ..errors import PredictorError


class Differentiable(Protocol):
    """A predictor whose output can be differentiated with torch.

    Attributes
    ----------
    offers_gradients : bool
        True. A predictor without the attribute offers none.

    Examples
    --------
    >>> class Logistic:
    ...     offers_gradients = True
    ...
    ...     def __call__(self, rows):
    ...         return 1 / (1 + np.exp(3 - self.encode_inputs(rows)[:, 0]))
    ...
    ...     def encode_inputs(self, rows):
    ...         return rows[["salary"]].to_numpy(float) / 10
    ...
    ...     def differentiate(self, inputs):
    ...         return (inputs[:, 0] - 3).sigmoid()
    >>> offers_gradients(Logistic())
    True
    """

    @property
    def offers_gradients(self) -> bool:
        """Whether the two methods can be called."""

    def encode_inputs(self, rows: Any) -> np.ndarray:
        """The numbers that the network takes.

        Parameters
        ----------
        rows
            A frame as the predictor is called with.

        Returns
        -------
        (n_rows, n_inputs)
            Numbers; each row by itself.
        """

    def differentiate(self, inputs: Any) -> Any:
        """The output of the predictor, as a differentiable function of its inputs.

        Parameters
        ----------
        inputs : torch.Tensor of shape (n_rows, n_inputs)
            In float64, as :meth:`encode_inputs` gives them, on the device of the method.

        Returns
        -------
        torch.Tensor
            What ``predict_proba`` returns for these rows, or ``predict`` or the call of the
            predictor if it has none, in float64 and on the device of ``inputs``. Only ``inputs``
            gets gradients.
        """


def offers_gradients(predictor: Any) -> bool:
    """Whether a predictor says that it can be differentiated.

    Examples
    --------
    >>> offers_gradients(lambda frame: frame["salary"] / 100)
    False
    """
    return getattr(predictor, "offers_gradients", False) is True


def require_gradients(predictor: Any, method: str) -> Differentiable:
    """The predictor itself, if it offers gradients."""
    if offers_gradients(predictor):
        return predictor
    raise PredictorError(
        f"{method} needs gradients, which the predictor {type(predictor).__name__} does not offer. "
        "Wrap a torch module in mcce.predictors.Torch, write a predictor with "
        "offers_gradients = True (mcce.predictors.Differentiable), or use a method that needs no "
        "gradients: MCCE, NearestUnlike, NICE, GrowingSpheres, FACE or CCHVAE."
    )
