"""torch: modules that take a matrix of numbers.

A module says neither what its output means nor which classes there are; the user does.

Always true: the module runs in evaluation mode, without gradients and on its own device; afterwards
it is in the mode it was in before.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .base import FrameLike, Output, Wrapper, check_native, check_output, is_from, is_number

NumericOutput = Literal["logits", "probabilities", "score"]


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
    def _output(self) -> Output:
        return self.output

    @property
    def _labels(self) -> Sequence[Hashable] | None:
        return self.classes

    def _query(self, rows: FrameLike) -> np.ndarray:
        import torch

        matrix = _matrix(rows if self.encode is None else self.encode(rows))
        weights = [p for p in self.module.parameters() if p.is_floating_point()]
        dtype = weights[0].dtype if weights else torch.float32
        device = weights[0].device if weights else None
        given = torch.tensor(matrix, dtype=dtype, device=device)
        if given.isinf().any():
            raise PredictorError(
                f"A number in the rows is too large for the module's {dtype}. Rescale the column."
            )
        with _evaluating(self.module), torch.no_grad():
            output = self.module(given)
        if not isinstance(output, torch.Tensor):
            raise PredictorError(
                f"The torch module must return one tensor, got {type(output).__name__}. "
                "Wrap it in a module whose forward returns only the tensor to use."
            )
        return np.asarray(output.to(device="cpu", dtype=torch.float64).numpy())


def adapt(predictor: Any) -> Any:
    """Anything but a bare module, for which the error says how to wrap it."""
    if not is_from(predictor, "torch", "Module"):
        return predictor
    raise PredictorError(
        f"The torch module {type(predictor).__name__} does not say what its output means. Wrap it: "
        'mcce.predictors.Torch(module, output="logits", classes=["no", "yes"]), or with '
        'output="probabilities" and classes, or with output="score".'
    )


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode inside; afterwards every submodule is in its own mode again."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _matrix(rows: Any) -> np.ndarray:
    """The rows as a dense matrix of float64."""
    if isinstance(rows, pd.DataFrame):
        other = [name for name, dtype in rows.dtypes.items() if not is_number(dtype)]
        if other:
            raise PredictorError(
                f"A torch module takes numbers, but the columns {other!r} are not numeric. Pass "
                "encode=, a function from the frame to a matrix, e.g. transform of a fitted "
                "ColumnTransformer."
            )
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return dense.astype(np.float64)
