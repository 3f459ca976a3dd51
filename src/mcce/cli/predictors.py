"""Black boxes by name: files of several libraries, functions and servers.

Always true: nothing that runs code from a file is loaded without ``--trust``; only the library that
a file is for is imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import McceError, MissingExtraError, ParameterError, PredictorError, shorten
from ..files.parts import checksum
from ..runtime.progress import without_prints
from .modules import Origin
from .terminal import printable, say, wrap

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
    """Which black box the user means, and what it does not say itself."""

    name: str
    kind: str | None = None
    trust: bool = False
    classes: Sequence[str] | None = None
    output: str | None = None
    rows_per_second: float | None = None
    in_flight: int | None = None
    warned: bool = False

    def load(self, origin: Origin | None = None) -> Any:
        """The predictor."""
        if URL.match(self.name):
            from ..predictors import Remote

            return Remote(
                self.name,
                self.output or "score",  # type: ignore[arg-type]
                self.classes,
                rows_per_second=self.rows_per_second,
                in_flight=self.in_flight,
            )
        if self.rows_per_second is not None or self.in_flight is not None:
            raise ParameterError(
                "--rows-per-second and --in-flight are for servers, but the predictor is "
                f"{shorten(self.name, 200)}. Leave them out, or give the URL of a server."
            )
        kind = self.kind or KINDS.get(Path(self.name).suffix.lower())
        function = FUNCTION.fullmatch(self.name)
        if kind is None and function is not None:
            with without_prints():
                return _import(function["module"], function["name"], origin or Origin.here())
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

    def shared_by(self, n_workers: int) -> PredictorChoice:
        """The predictor as each of several processes loads it: with its part of the limits.

        Examples
        --------
        >>> server = PredictorChoice("http://models/credit", rows_per_second=1000.0, in_flight=8)
        >>> part = server.shared_by(3)
        >>> part.rows_per_second, part.in_flight
        (333.0, 2)
        """
        if n_workers == 1:
            return self
        return replace(
            self,
            rows_per_second=_part("--rows-per-second", self.rows_per_second, n_workers),
            in_flight=_part("--in-flight", self.in_flight, n_workers),
        )

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


def _part(option: str, limit: Any, n_workers: int) -> Any:
    """The whole part of a limit that each worker gets; parts never sum up to more than it."""
    if limit is None:
        return None
    if limit < n_workers:
        raise ParameterError(
            f"{option} {limit:g} cannot be split among {n_workers} workers, which need at least 1 "
            f"each. Raise it, or use at most --workers {max(int(limit), 1)}."
        )
    return type(limit)(limit // n_workers)


@dataclass(frozen=True)
class PredictorLoader:
    """Loads a predictor in a worker as it was loaded here, whatever the worker's current folder."""

    choice: PredictorChoice
    origin: Origin

    @classmethod
    def here(cls, choice: PredictorChoice) -> PredictorLoader:
        """The loader for names in the current folder."""
        path = os.path.abspath(choice.name)
        name = path if os.path.isfile(path) else choice.name
        return cls(replace(choice, name=name, warned=True), Origin.here())

    def __call__(self) -> Any:
        """The predictor."""
        if not URL.match(self.choice.name) and not os.path.isdir(self.origin.folder):
            raise PredictorError(
                f"A worker does not see the folder {shorten(self.origin.folder, 200)}, from which "
                "the predictor is loaded. Start the run in a folder that all workers share."
            )
        predictor = self.choice.load(self.origin)
        if self.choice.rows_per_second is not None:
            # The process that leads the run, or a worker that was lost, may just have sent rows.
            predictor.hold_back()
        return predictor


def _import(module: str, name: str, origin: Origin) -> Any:
    """A function or object of a module, which may stand in the folder of the run."""
    try:
        return origin.load(module, name)
    except Exception as error:
        hint = f"Check the names; modules in {shorten(origin.folder, 200)} are found."
        if isinstance(error, FileNotFoundError):
            hint = "Let the module find its files by __file__: workers may run in another folder."
        raise PredictorError(
            f"The predictor {module}:{name} cannot be imported ({type(error).__name__}: "
            f"{shorten(error, 200)}). {hint}"
        ).keeping(error) from error


def _load_joblib(choice: PredictorChoice) -> Any:
    if not choice.trust:
        raise ParameterError(
            f"{shorten(choice.name, 200)} is a pickle: loading it runs whatever code its author "
            "put there. If the file is your own, add --trust. Formats without code are skops, ONNX "
            "and the files of XGBoost, LightGBM and CatBoost."
        )
    if not choice.warned:
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
