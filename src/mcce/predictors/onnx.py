"""ONNX: inference sessions of onnxruntime.

A session declares its inputs, so it gets the rows column by column under its names and in its
types, or as one matrix. The user says what its numbers mean and which classes there are.

Always true: no cell is truncated to fit an input; what the input cannot hold is an error. If the
session returns labels itself, they are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError, shorten
from ..tables.columns import is_missing, plain
from .calls import FrameLike
from .wrapper import (
    NumericOutput,
    Wrapper,
    check_native,
    check_output,
    holds_numbers,
    is_from,
)

SESSION = ("onnxruntime", "InferenceSession")
FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
WHOLES = {f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "bool")}
LABELS = ("tensor(string)", "tensor(int64)")


@dataclass(frozen=True, eq=False)
class Onnx(Wrapper):
    """An ``onnxruntime.InferenceSession`` as a predictor.

    MCCE takes a session as it is if its only output is one float per row, which is the score.

    Parameters
    ----------
    session
        The session. Its inputs are the columns by name, or one matrix.
    output : {"logits", "probabilities", "score"}
        What the numbers are; a score is one number per row, used as it is.
    classes
        The labels in the order of the output's columns, for logits and probabilities. For two
        labels, one column is enough: that of the second.
    name
        Name of the session's output to use; only needed if several are numeric.

    Raises
    ------
    PredictorError
        If ``session`` is not an ONNX session.
    ParameterError
        If ``output`` or ``name`` is unknown, or ``classes`` does not fit the output.

    Examples
    --------
    >>> session = onnxruntime.InferenceSession("credit.onnx")  # doctest: +SKIP
    >>> predictor = Onnx(session, "probabilities", ["declined", "accepted"])  # doctest: +SKIP
    >>> mcce.MCCE(predictor, desired="accepted")  # doctest: +SKIP
    """

    session: Any
    output: NumericOutput
    classes: Sequence[Hashable] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        check_native(self.session, *SESSION)
        check_output(self.output, get_args(NumericOutput), self.classes)
        self._output_name()

    def _query(self, rows: FrameLike) -> np.ndarray:
        output = self.session.run([self._output_name()], _feed(self.session, rows))[0]
        if not isinstance(output, list):
            return np.asarray(output)
        # A list with one dict per row, from class to probability.
        self._check_labels({label for by_class in output for label in by_class})
        return np.array([[by_class[label] for label in self.classes_] for by_class in output])

    def predict(self, rows: FrameLike) -> np.ndarray:
        """The session's own labels if it returns them, otherwise the most probable ones.

        Parameters
        ----------
        rows
            Rows, in any kind of frame.

        Returns
        -------
        (n_rows,)
            One label per row.
        """
        own = [output.name for output in self.session.get_outputs() if output.type in LABELS]
        if self.output != "probabilities" or len(own) != 1:
            return super().predict(rows)
        labels = np.asarray(self.session.run(own, _feed(self.session, rows))[0]).ravel()
        self._check_labels({*labels.tolist(), *self.classes_})
        return labels

    def _output_name(self) -> str:
        """Name of the session's output to use."""
        outputs = {out.name: out.type for out in self.session.get_outputs()}
        numbers = [name for name, kind in outputs.items() if kind not in LABELS]
        if self.name is None and len(numbers) == 1:
            return numbers[0]
        if self.name is None or self.name not in outputs:
            raise ParameterError(
                f"name must be one of the session's outputs {outputs!r}, got {shorten(self.name)}."
            )
        return self.name

    def _check_labels(self, own: set[Any]) -> None:
        """Raise unless the session's labels are the classes."""
        unknown = sorted(map(repr, own ^ set(self.classes_)))
        if unknown:
            raise PredictorError(
                f"The session has labels of its own, which differ from classes="
                f"{list(self.classes_)!r}: {', '.join(unknown)} are only in one of them. Pass the "
                "session's labels as classes."
            )


def adapt(predictor: Any) -> Any:
    """A session with one number per row as a score; for others the error says how to wrap it."""
    if not is_from(predictor, *SESSION):
        return predictor
    outputs = predictor.get_outputs()
    if len(outputs) == 1 and outputs[0].type in FLOATS and outputs[0].shape[1:] in ([], [1]):
        return Onnx(predictor, output="score")
    raise PredictorError(
        "The ONNX session does not say what its outputs mean, "
        f"{ {out.name: out.type for out in outputs}!r}. Wrap it: mcce.predictors.Onnx(session, "
        'output="probabilities", classes=["no", "yes"]), or with output="logits" and classes, or '
        'with output="score"; name= selects one of several outputs.'
    )


def _feed(session: Any, rows: FrameLike) -> dict[str, np.ndarray]:
    """The rows as the session takes them: column by column, or as one matrix."""
    inputs = session.get_inputs()
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    if len(inputs) == 1 and (inputs[0].name not in frame.columns or frame.shape[1] > 1):
        columns = [_cells(column, inputs[0].type) for _, column in frame.items()]
        return {inputs[0].name: np.column_stack(columns)}
    names = [given.name for given in inputs]
    if set(names) != set(frame.columns):
        raise PredictorError(
            f"The session takes the columns {names!r} by name, got {list(frame.columns)!r}. Fit "
            "the explainer on exactly these columns."
        )
    return {
        given.name: _cells(frame[given.name], given.type).reshape(-1, *[1] * (len(given.shape) - 1))
        for given in inputs
    }


def _cells(column: pd.Series[Any], wanted: str) -> np.ndarray:
    """A column in the type of an input; floats are rounded to its precision."""
    missing = is_missing(column)
    if wanted in FLOATS and holds_numbers(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).astype(FLOATS[wanted])
    cells = plain(column)
    if not missing.any():
        if wanted == "tensor(string)" and all(isinstance(cell, str) for cell in cells):
            return cells
        if wanted in WHOLES and holds_numbers(column.dtype):
            whole = cells.astype(WHOLES[wanted])
            if (whole == cells).all():
                return whole
    holds = "missing values" if missing.any() else "values"
    raise PredictorError(
        f"The session takes column {column.name!r} as {wanted}, which cannot hold its {holds} "
        f"(dtype {column.dtype}). Convert the column, or export the session with another type."
    )
