"""torch: modules that take a matrix of numbers, and predictors that offer gradients.

A module says neither what its output means nor which classes there are; the user does. A predictor
offers gradients by capability, never by the name of its library: it has two steps, from a frame to
the numbers that its network takes, and from these to its output.

Always true: torch is imported when a module is called. The module runs in evaluation mode and on
its own device, and its weights get no gradients; afterwards it is in the mode it was in before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .calls import FrameLike
from .wrapper import (
    NumericOutput,
    Wrapper,
    check_native,
    check_output,
    holds_numbers,
    is_from,
)


@dataclass(frozen=True, eq=False)
class Torch(Wrapper):
    """A ``torch.nn.Module`` as a predictor.

    Parameters
    ----------
    module
        The trained module. It gets a tensor of shape (n_rows, n_columns) in the precision of its
        own parameters, float32 if it has none; booleans are 0 and 1, missing values NaN.
    output : {"logits", "probabilities", "score"}
        What it returns; a score is one number per row, used as it is.
    classes
        The labels in the order of the output's columns, for logits and probabilities. For two
        labels, one column is enough: that of the second.
    encode
        A function from the frame to the matrix, e.g. ``transform`` of a fitted scikit-learn
        transformer. None if all columns are numbers or booleans in the order of the module.

    Raises
    ------
    PredictorError
        If ``module`` is not a torch module.
    ParameterError
        If ``output`` is unknown, or ``classes`` does not fit it.

    Examples
    --------
    >>> predictor = Torch(  # doctest: +SKIP
    ...     module, output="logits", classes=["declined", "accepted"], encode=encoder.transform
    ... )
    >>> mcce.MCCE(predictor, desired="accepted")  # doctest: +SKIP
    """

    module: Any
    output: NumericOutput
    classes: Sequence[Hashable] | None = None
    encode: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        check_native(self.module, "torch", "Module")
        check_output(self.output, get_args(NumericOutput), self.classes)

    @property
    def offers_gradients(self) -> bool:
        """True: every module can be differentiated."""
        return True

    def encode_inputs(self, rows: FrameLike) -> np.ndarray:
        """The matrix that the module gets.

        Parameters
        ----------
        rows
            A frame or an array with the columns that the module was trained on.

        Returns
        -------
        (n_rows, n_inputs)
            Numbers in float64.
        """
        return _matrix(rows if self.encode is None else self.encode(rows))

    def differentiate(self, inputs: Any) -> Any:
        """The output for a matrix, as a differentiable function of it.

        Parameters
        ----------
        inputs : torch.Tensor of shape (n_rows, n_inputs)
            The matrix, which is given to the module in its own precision and on its own device.

        Returns
        -------
        torch.Tensor
            In float64: probabilities of shape (n_rows, n_classes), or a score per row. The weights
            of the module get no gradients.
        """
        import torch

        output = self._forward(inputs).to(device=inputs.device, dtype=torch.float64)
        if self.output == "score":
            return output.reshape(len(inputs))
        output = output.reshape(len(inputs), -1)
        assert self.classes is not None
        one_column = output.shape[1] == 1 and len(self.classes) == 2
        if self.output == "probabilities":
            return torch.cat([1 - output, output], dim=1) if one_column else output
        if one_column:
            output = torch.cat([torch.zeros_like(output), output], dim=1)
        return torch.softmax(output, dim=1)

    def _query(self, rows: FrameLike) -> np.ndarray:
        import torch

        with torch.no_grad():
            output = self._forward(torch.tensor(self.encode_inputs(rows)))
        return np.asarray(output.to(device="cpu", dtype=torch.float64).numpy())

    def _forward(self, inputs: Any) -> Any:
        """Output of the module for a matrix, with gradients for the matrix only."""
        import torch

        weights = [p for p in self.module.parameters() if p.is_floating_point()]
        dtype = weights[0].dtype if weights else torch.float32
        device = weights[0].device if weights else None
        given = inputs.to(dtype=dtype, device=device)
        if given.isinf().any():
            raise PredictorError(
                f"A number in the rows is too large for the module's {dtype}. Rescale the column."
            )
        with _evaluating(self.module):
            output = self.module(given)
        if not isinstance(output, torch.Tensor):
            raise PredictorError(
                f"The torch module must return one tensor, got {type(output).__name__}. "
                "Wrap it in a module whose forward returns only the tensor to use."
            )
        return output


def adapt(predictor: Any) -> Any:
    """The predictor itself; for a bare module, an error that says how to wrap it."""
    if not is_from(predictor, "torch", "Module"):
        return predictor
    raise PredictorError(
        f"The torch module {type(predictor).__name__} does not say what its output means. Wrap it: "
        'mcce.predictors.Torch(module, output="logits", classes=["no", "yes"]), or with '
        'output="probabilities" and classes, or with output="score".'
    )


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode with frozen weights; afterwards every part is in its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    weights = [weight for weight in module.parameters() if weight.requires_grad]
    module.eval()
    try:
        for weight in weights:
            weight.requires_grad_(False)
        yield
    finally:
        for part, training in modes:
            part.training = training
        for weight in weights:
            weight.requires_grad_(True)


def _matrix(rows: Any) -> np.ndarray:
    """The rows as a dense matrix of float64."""
    if isinstance(rows, pd.DataFrame):
        other = [name for name, dtype in rows.dtypes.items() if not holds_numbers(dtype)]
        if other:
            raise PredictorError(
                f"A torch module takes numbers, but the columns {other!r} are not numeric. Pass "
                "encode=, a function from the frame to a matrix, e.g. transform of a fitted "
                "ColumnTransformer."
            )
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return dense.astype(np.float64)


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
    >>> Logistic().offers_gradients
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
