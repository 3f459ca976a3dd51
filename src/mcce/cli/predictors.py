"""Black boxes by name: files of several libraries, functions and servers.

Always true: nothing that runs code from a file is loaded without ``--trust``; only the library that
a file is for is imported.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from ..errors import McceError, MissingExtraError, ParameterError, PredictorError, shorten
from ..execution.parts import checksum
from .terminal import printable, say, without_prints, wrap

KINDS = {
    ".joblib": "joblib",
    ".pkl": "joblib",
    ".pickle": "joblib",
    ".skops": "skops",
    ".onnx": "onnx",
    ".ubj": "xgboost",
    ".json": "xgboost",
    ".xgb": "xgboost",
    ".txt": "lightgbm",
    ".lgb": "lightgbm",
    ".cbm": "catboost",
}
FUNCTION = re.compile(r"(?P<module>[^\W\d]\w*(?:\.\w+)*):(?P<name>[^\W\d]\w*(?:\.\w+)*)")
URL = re.compile(r"https?://", re.IGNORECASE)


@dataclass(frozen=True)
class PredictorChoice:
    """Which black box the user means, and what it does not say itself.

    Parameters
    ----------
    name
        File, ``module:name`` or URL.
    kind
        What the file is; None goes by its extension.
    trust
        Whether code from the file may run.
    classes
        Labels in the order of the output.
    output
        What the numbers are.
    """

    name: str
    kind: str | None = None
    trust: bool = False
    classes: Sequence[str] | None = None
    output: str | None = None

    def load(self) -> Any:
        """The predictor.

        Raises
        ------
        ParameterError
            If the name is none of these, or code would run without trust.
        PredictorError
            If it cannot be loaded.
        MissingExtraError
            If its library is not installed.
        """
        if URL.match(self.name):
            from ..predictors import Remote

            return Remote(self.name, self.output or "score", self.classes)  # type: ignore[arg-type]
        kind = self.kind or KINDS.get(Path(self.name).suffix.lower())
        function = FUNCTION.fullmatch(self.name)
        if kind is None and function is not None:
            with without_prints():
                return _import(function["module"], function["name"])
        if kind not in LOADERS:
            raise ParameterError(
                f"The kind of the predictor {shorten(self.name, 200)} is not clear. Use a file "
                f"that ends in {', '.join(KINDS)}, module:name, a URL, or --predictor-kind with "
                f"one of {', '.join(LOADERS)}."
            )
        if not Path(self.name).is_file():
            raise PredictorError(
                f"There is no predictor file {shorten(self.name, 200)}. Check its name."
            )
        with without_prints():
            return self._guarded(LOADERS[kind])

    @property
    def shown(self) -> str:
        """The name without what is secret in it: user, password and query of a URL."""
        if not URL.match(self.name):
            return self.name
        from ..predictors.transport import read_address

        return str(read_address("url", self.name))

    def fingerprint(self) -> str:
        """What tells this predictor from others: the checksum of its file, or its name."""
        return checksum(self.name) if Path(self.name).is_file() else self.shown

    def _guarded(self, loader: Callable[[PredictorChoice], Any]) -> Any:
        try:
            return loader(self)
        except McceError:
            raise
        except ImportError as error:
            raise MissingExtraError(
                f"The predictor {shorten(self.name, 200)} needs {error.name or 'a library'}, which "
                "is not installed. Install it, for example with pip install "
                '"mcce[predictors]" or "mcce[skops]".'
            ) from error
        # A file of another library can fail in more ways than anybody could list.
        except Exception as error:
            raise PredictorError(
                f"The predictor {shorten(self.name, 200)} cannot be loaded "
                f"({type(error).__name__}: {shorten(error, 200)}). Check that the file is whole, "
                "and that the libraries have the versions that wrote it."
            ).keeping(error) from error


def _load_joblib(choice: PredictorChoice) -> Any:
    if not choice.trust:
        raise ParameterError(
            f"{shorten(choice.name, 200)} is a pickle: loading it runs whatever code its author "
            "put there. If the file is your own, add --trust. Formats without code are skops, ONNX "
            "and the files of XGBoost, LightGBM and CatBoost."
        )
    say(wrap(f"mcce: warning: loading {printable(choice.name)} runs the code in it (--trust)."))
    from joblib import load

    return load(choice.name)


def _load_skops(choice: PredictorChoice) -> Any:
    from skops import io

    unknown = io.get_untrusted_types(file=choice.name)
    if unknown and not choice.trust:
        raise ParameterError(
            f"{shorten(choice.name, 200)} uses types that skops does not know to be safe: "
            f"{shorten(unknown, 400)}. If you trust them, add --trust."
        )
    return io.load(choice.name, trusted=unknown)


def _load_onnx(choice: PredictorChoice) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(choice.name, providers=["CPUExecutionProvider"])
    if choice.output is None and choice.classes is None:
        return session
    from ..predictors import Onnx

    output: Any = choice.output or "probabilities"
    return Onnx(session, output, choice.classes)


def _load_xgboost(choice: PredictorChoice) -> Any:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(choice.name)
    if choice.classes is None:
        return booster
    from ..predictors import XGBoost

    return XGBoost(booster, choice.classes)


def _load_lightgbm(choice: PredictorChoice) -> Any:
    import lightgbm

    booster = lightgbm.Booster(model_file=choice.name)
    if choice.classes is None:
        return booster
    from ..predictors import LightGBM

    return LightGBM(booster, choice.classes)


def _load_catboost(choice: PredictorChoice) -> Any:
    import catboost

    model = catboost.CatBoost()
    model.load_model(choice.name)
    return model


LOADERS: dict[str, Callable[[PredictorChoice], Any]] = {
    "joblib": _load_joblib,
    "skops": _load_skops,
    "onnx": _load_onnx,
    "xgboost": _load_xgboost,
    "lightgbm": _load_lightgbm,
    "catboost": _load_catboost,
}


def _import(module: str, name: str) -> Any:
    """A function or object of a module, which may stand in the current folder."""
    if (here := os.getcwd()) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Exception as error:
        raise PredictorError(
            f"The predictor {module}:{name} cannot be imported ({type(error).__name__}: "
            f"{shorten(error, 200)}). Check the names; modules in the current folder are found."
        ).keeping(error) from error
    return found
