"""torch: modules on numeric columns.

A module says neither what its numbers mean nor which classes they belong to: the user does.

Always true: the module is asked in evaluation mode, without gradients, on its own device, and is
left in the mode it was in.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import PredictorError
from .wrapper import FrameLike, Output, Wrapper, check_native, check_output, is_from, is_number

OUTPUTS = ("logits", "probabilities", "score")


@dataclass(frozen=True, eq=False)
class Torch(Wrapper):
    """A ``torch.nn.Module`` from a matrix of numbers to logits, probabilities or scores.

    Parameters
    ----------
    module
        The trained module. It gets a tensor of shape (n_rows, n_columns) in the precision of its
        own parameters, float32 if it has none; booleans are 0 and 1, missing is NaN.
    output
        What it answers with: ``"logits"``, ``"probabilities"`` or ``"score"``, one number per
        row that is taken as it is.
    classes
        The labels in the order of the columns of the answer. One column is the second of two.
    encode
        From the frame to the matrix, e.g. ``transformer.transform`` of a fitted scikit-learn
        transformer. None: all columns are numbers or booleans and stand as the module wants them.
    """

    module: Any
    output: Output
    classes: Sequence[Hashable] | None = None
    encode: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        check_native(self.module, "torch", "Module")
        check_output(self.output, OUTPUTS, self.classes)

    @property
    def output_(self) -> Output:
        """What the module answers with."""
        return self.output

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of the columns of the answer; None for a score."""
        return self.classes

    def ask(self, rows: FrameLike) -> np.ndarray:
        """What the module gives for the rows."""
        import torch

        matrix = _matrix(rows if self.encode is None else self.encode(rows))
        weights = [p for p in self.module.parameters() if p.is_floating_point()]
        dtype = weights[0].dtype if weights else torch.float32
        device = weights[0].device if weights else None
        given = torch.tensor(matrix, dtype=dtype, device=device)
        if given.isinf().any():
            raise PredictorError(f"A number in the rows is too large for the module's {dtype}.")
        with _evaluating(self.module), torch.no_grad():
            answer = self.module(given)
        if not isinstance(answer, torch.Tensor):
            raise PredictorError(
                f"The torch module must answer with one tensor, got {type(answer).__name__}. "
                "Wrap it in a module whose forward gives the tensor you want."
            )
        return np.asarray(answer.to(device="cpu", dtype=torch.float64).numpy())


def adapt(predictor: Any) -> Any:
    """A bare module is an error that says how to wrap it; anything else comes back as it is."""
    if not is_from(predictor, "torch", "Module"):
        return predictor
    raise PredictorError(
        f"The torch module {type(predictor).__name__} does not say what it answers with. Say it: "
        'mcce.predictors.Torch(module, output="logits", classes=["no", "yes"]), '
        'output="probabilities" with classes, or output="score".'
    )


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Evaluation mode inside, every part in its own mode again afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, training in modes:
            part.training = training


def _matrix(rows: Any) -> np.ndarray:
    """A dense matrix of float64."""
    if isinstance(rows, pd.DataFrame):
        odd = [name for name, dtype in rows.dtypes.items() if not is_number(dtype)]
        if odd:
            raise PredictorError(
                f"A torch module takes numbers, but the columns {odd!r} are none. Pass encode=, "
                "a function from the frame to a matrix, e.g. that of a fitted ColumnTransformer."
            )
        return rows.to_numpy(dtype=np.float64, na_value=np.nan)
    dense = rows.toarray() if hasattr(rows, "toarray") else np.asarray(rows)
    return dense.astype(np.float64)
