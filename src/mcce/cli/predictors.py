"""Black boxes by name: files of several libraries, functions and servers.

A function may stand in a module of the folder that the command was started in. Python imports a
module once per process, but a worker of a cluster may serve many commands, whose modules have the
same names in other folders or were edited meanwhile.

Always true: nothing that runs code from a file is loaded without ``--trust``; only the library that
a file is for is imported; a command gets the modules of its own folder as they are when it starts,
and modules that the process had before, or that are installed, stay as they are.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from ..errors import McceError, MissingExtraError, ParameterError, PredictorError, shorten
from ..files.parts import checksum
from ..runtime.progress import without_prints
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
# Tells the commands of this process from those of others.
_PROCESS = uuid4().hex


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

    def load(self, origin: ModuleFolder | None = None) -> Any:
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
                return _import(function["module"], function["name"], origin or ModuleFolder.here())
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


@dataclass(frozen=True)
class PredictorLoader:
    """Loads a predictor in a worker as it was loaded here, whatever the worker's current folder."""

    choice: PredictorChoice
    origin: ModuleFolder

    @classmethod
    def here(cls, choice: PredictorChoice) -> PredictorLoader:
        """The loader for names in the current folder."""
        path = os.path.abspath(choice.name)
        name = path if os.path.isfile(path) else choice.name
        return cls(replace(choice, name=name, warned=True), ModuleFolder.here())

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


def _import(module: str, name: str, origin: ModuleFolder) -> Any:
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


@dataclass(frozen=True)
class ModuleFolder:
    """Where the modules of a command come from."""

    folder: str
    process: str

    @classmethod
    def here(cls) -> ModuleFolder:
        """The current folder, and this process."""
        return cls(os.getcwd(), _PROCESS)

    def load(self, module: str, name: str) -> Any:
        """A function or object of a module."""
        with _state.lock:
            _state.turn_to(self)
            found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


class _State:
    """Whose modules this process has."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._origin: ModuleFolder | None = None
        self._folders: set[str] = set()
        self._before: frozenset[str] = frozenset()

    def turn_to(self, origin: ModuleFolder) -> None:
        """Forget the modules of other commands, and look into the folder of this one first."""
        if self._origin is None:
            self._before = frozenset(sys.modules)
        if self._origin != origin:
            self._forget()
            sys.path[:] = [origin.folder, *(one for one in sys.path if one != origin.folder)]
            self._folders.add(origin.folder)
            self._origin = origin
        # Files that are newer than Python's list of a folder are not seen otherwise.
        invalidate_caches()

    def _forget(self) -> None:
        tops = {
            name
            for name, module in list(sys.modules.items())
            if name not in self._before and _folder_of(module) in self._folders
        }
        for name in list(sys.modules):
            if name.partition(".")[0] in tops:
                del sys.modules[name]


_state = _State()


def _folder_of(module: Any) -> str | None:
    """The folder that a module or package stands in; None if it stands in none."""
    # Libraries put objects of their own there, which answer to any name.
    if not isinstance(module, ModuleType):
        return None
    known = vars(module)
    places = list(known.get("__path__") or ()) or [known.get("__file__")]
    return os.path.dirname(os.path.abspath(places[0])) if isinstance(places[0], str) else None
