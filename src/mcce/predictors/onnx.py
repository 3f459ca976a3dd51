"""ONNX: inference sessions of onnxruntime.

A session declares its inputs, so rows go in by column name in the types it names, or as one matrix.
It does not tell its classes, nor always what its numbers mean: the user does.

Always true: no cell is cut to fit an input; what the input cannot hold is an error. Labels are
the session's own where it gives them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from ..errors import ParameterError, PredictorError
from ..tables.columns import is_missing, plain
from .wrapper import FrameLike, Output, Wrapper, check_native, check_output, is_from, is_number

OUTPUTS = ("logits", "probabilities", "score")
SESSION = ("onnxruntime", "InferenceSession")
FLOATS = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(float16)": np.float16}
WHOLES = {f"tensor({kind})": np.dtype(kind) for kind in ("int64", "int32", "int16", "int8", "bool")}
LABELS = ("tensor(string)", "tensor(int64)")


@dataclass(frozen=True, eq=False)
class Onnx(Wrapper):
    """An ``onnxruntime.InferenceSession``.

    Parameters
    ----------
    session
        The session. Its inputs are the columns by name, or one matrix of numbers.
    output
        What it answers with: ``"probabilities"``, ``"logits"`` or ``"score"``, one number per
        row that is taken as it is.
    classes
        The labels in the order of the columns of the answer. One column is the second of two.
    name
        The output of the session to take, where it has several with numbers.
    """

    session: Any
    output: Output
    classes: Sequence[Hashable] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        check_native(self.session, *SESSION)
        check_output(self.output, OUTPUTS, self.classes)
        self._answers()

    @property
    def output_(self) -> Output:
        """What the session answers with."""
        return self.output

    @property
    def labels(self) -> Sequence[Hashable] | None:
        """The classes in the order of the columns of the answer; None for a score."""
        return self.classes

    def ask(self, rows: FrameLike) -> np.ndarray:
        """What the session gives for the rows."""
        answer = self.session.run([self._answers()], _feed(self.session, rows))[0]
        if not isinstance(answer, list):
            return np.asarray(answer)
        # A list of maps from class to probability.
        unknown = {label for by_class in answer for label in by_class} ^ set(self.classes_)
        if unknown:
            raise self._other_labels(sorted(map(repr, unknown)))
        return np.array([[by_class[label] for label in self.classes_] for by_class in answer])

    def predict(self, rows: FrameLike) -> np.ndarray:
        """The session's own labels where it gives them, else the most probable ones."""
        own = [output.name for output in self.session.get_outputs() if output.type in LABELS]
        if self.output != "probabilities" or len(own) != 1:
            return super().predict(rows)
        labels = np.asarray(self.session.run(own, _feed(self.session, rows))[0]).ravel()
        unknown = set(labels.tolist()) - set(self.classes_)
        if unknown:
            raise self._other_labels(sorted(map(repr, unknown)))
        return labels

    def _answers(self) -> str:
        """The name of the output to take."""
        outputs = {out.name: out.type for out in self.session.get_outputs()}
        numbers = [name for name, kind in outputs.items() if kind not in LABELS]
        if self.name is None and len(numbers) == 1:
            return numbers[0]
        if self.name is None or self.name not in outputs:
            raise ParameterError(
                f"name must be one of the session's outputs {outputs!r}, got {self.name!r}."
            )
        return self.name

    def _other_labels(self, unknown: list[str]) -> PredictorError:
        return PredictorError(
            f"The session has its own labels, and they are not those of classes="
            f"{list(self.classes_)!r}: {', '.join(unknown)} stand on one side only. Pass the "
            "session's labels as classes."
        )


def adapt(predictor: Any) -> Any:
    """A session with one number per row as a score; one with more is an error that says how."""
    if not is_from(predictor, *SESSION):
        return predictor
    outputs = predictor.get_outputs()
    if len(outputs) == 1 and outputs[0].type in FLOATS and outputs[0].shape[1:] in ([], [1]):
        return Onnx(predictor, output="score")
    raise PredictorError(
        "The ONNX session does not say what it answers with, its outputs are "
        f"{ {out.name: out.type for out in outputs}!r}. Say it: mcce.predictors.Onnx(session, "
        'output="probabilities", classes=["no", "yes"]), output="logits" with classes, or '
        'output="score"; name= picks one of the outputs.'
    )


def _feed(session: Any, rows: FrameLike) -> dict[str, np.ndarray]:
    """The rows as the session wants them: column by column, or as one matrix."""
    inputs = session.get_inputs()
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    if len(inputs) == 1 and (inputs[0].name not in frame.columns or frame.shape[1] > 1):
        columns = [_cells(column, inputs[0].type) for _, column in frame.items()]
        return {inputs[0].name: np.column_stack(columns)}
    names = [given.name for given in inputs]
    if set(names) != set(frame.columns):
        raise PredictorError(
            f"The session wants the columns {names!r} by name, got {list(frame.columns)!r}."
        )
    return {
        given.name: _cells(frame[given.name], given.type).reshape(-1, *[1] * (len(given.shape) - 1))
        for given in inputs
    }


def _cells(column: pd.Series[Any], wanted: str) -> np.ndarray:
    """A column in the type that an input wants; floats are rounded to its precision."""
    missing = is_missing(column)
    if wanted in FLOATS and is_number(column.dtype):
        return column.to_numpy(dtype=np.float64, na_value=np.nan).astype(FLOATS[wanted])
    cells = plain(column)
    if not missing.any():
        if wanted == "tensor(string)" and all(isinstance(cell, str) for cell in cells):
            return cells
        if wanted in WHOLES and is_number(column.dtype):
            whole = cells.astype(WHOLES[wanted])
            if (whole == cells).all():
                return whole
    holds = "missing values" if missing.any() else f"values such as {cells[0]!r}"
    raise PredictorError(
        f"The session wants column {column.name!r} as {wanted}, which cannot hold its {holds} "
        f"(dtype {column.dtype}). Convert the column, or export the session with another type."
    )
