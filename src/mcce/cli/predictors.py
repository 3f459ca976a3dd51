"""Black boxes by name: files of several libraries, functions and servers.

A function may be in a module of the folder in which the command was started. Python imports a
module once per process, but a worker of a cluster may serve many commands, whose modules have the
same names in other folders or were edited meanwhile.

Always true: nothing that runs code from a file is loaded without ``--trust``; only the library that
a file is for is imported; a command gets the modules of its own folder as they are when it starts,
and modules that the process had before, or that are installed, stay as they are.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import uuid4

from ..errors import McceError, MissingExtraError, ParameterError, PredictorError, shorten
from ..predictors.lightgbm import LightGBM
from ..predictors.onnx import Onnx
from ..predictors.remote import Remote
from ..predictors.transport import read_address
from ..predictors.xgboost import XGBoost
from ..runtime.files import checksum
from ..runtime.progress import without_prints
from .arguments import PredictorArguments
from .terminal import notify, printable

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


def load_predictor(
    choice: PredictorArguments, origin: ModuleFolder | None = None, *, warned: bool = False
) -> Any:
    """The predictor that the user means; ``warned`` if there was a warning about its code."""
    if URL.match(choice.name):
        return Remote(
            choice.name,
            choice.output or "score",  # type: ignore[arg-type]
            choice.classes,
            rows_per_second=choice.rows_per_second,
            in_flight=choice.in_flight,
        )
    if choice.rows_per_second is not None or choice.in_flight is not None:
        raise ParameterError(
            "--rows-per-second and --in-flight are for servers, but the predictor is "
            f"{shorten(choice.name, 200)}. Leave them out, or give the URL of a server."
        )
    kind = choice.kind or KINDS.get(Path(choice.name).suffix.lower())
    function = FUNCTION.fullmatch(choice.name)
    if kind is None and function is not None:
        with without_prints():
            return _import(function["module"], function["name"], origin or ModuleFolder.here())
    if kind not in LOADERS:
        raise ParameterError(
            f"The kind of the predictor {shorten(choice.name, 200)} is not clear. Use a file "
            f"that ends in {', '.join(KINDS)}, module:name, a URL, or --predictor-kind with "
            f"one of {', '.join(LOADERS)}."
        )
    if not Path(choice.name).is_file():
        raise PredictorError(
            f"There is no predictor file {shorten(choice.name, 200)}. Check its name."
        )
    if kind == "joblib" and choice.trust and not warned:
        notify(f"warning: loading {printable(choice.name)} runs the code in it (--trust).")
    with without_prints(), _load_errors(choice.name):
        return LOADERS[kind](choice)


def load_retrained(choice: PredictorArguments) -> list[Any] | None:
    """The models that were trained anew; None if no file is named."""
    if choice.retrained is None:
        return None
    found = load_predictor(PredictorArguments(choice.retrained, "joblib", choice.trust))
    if not isinstance(found, list):
        raise PredictorError(
            f"{shorten(choice.retrained, 200)} holds no list of models. Name the file that mcce "
            "fit --retrained wrote."
        )
    return found


@contextmanager
def _load_errors(name: str) -> Iterator[None]:
    """Turn errors of a library about its file into errors of ours."""
    try:
        yield
    except McceError:
        raise
    except ImportError as error:
        raise MissingExtraError(
            f"The predictor {shorten(name, 200)} needs {error.name or 'a library'}, which "
            "is not installed. Install it, for example with pip install "
            '".[predictors]" or ".[skops]" in mcce\'s folder.'
        ) from error
    # Libraries raise all kinds of errors for files that are not theirs.
    except Exception as error:
        raise PredictorError(
            f"The predictor {shorten(name, 200)} cannot be loaded "
            f"({type(error).__name__}: {shorten(error, 200)}). Check that the file is whole, "
            "and that the libraries have the versions that wrote it."
        ).keeping(error) from error


def split_limits(choice: PredictorArguments, n_workers: int) -> PredictorArguments:
    """The predictor as each of several processes loads it: with its part of the limits.

    Examples
    --------
    >>> server = PredictorArguments("http://models/credit", rows_per_second=1000.0, in_flight=8)
    >>> part = split_limits(server, 3)
    >>> part.rows_per_second, part.in_flight
    (333.0, 2)
    """
    if n_workers == 1:
        return choice
    return replace(
        choice,
        rows_per_second=_part("--rows-per-second", choice.rows_per_second, n_workers),
        in_flight=_part("--in-flight", choice.in_flight, n_workers),
    )


def public_name(choice: PredictorArguments) -> str:
    """The name without what is secret in it: user, password and query of a URL."""
    return str(read_address("url", choice.name)) if URL.match(choice.name) else choice.name


def predictor_files(choice: PredictorArguments) -> list[Path]:
    """The files of a predictor that is loaded: its own, or those of the modules it is made of.

    Installed packages that a module imports are left out, and so is what it reads by itself.
    """
    if Path(choice.name).is_file():
        return [Path(choice.name)]
    function = FUNCTION.fullmatch(choice.name)
    if URL.match(choice.name) or function is None:
        return []
    names = {function["module"], *_modules_in(os.getcwd())}
    files = [getattr(sys.modules.get(name), "__file__", None) for name in sorted(names)]
    return [Path(file) for file in files if file is not None and os.path.isfile(file)]


def predictor_checksum(choice: PredictorArguments) -> str:
    """A checksum of a predictor that is loaded: of its files, and of its name if it is no file."""
    files = predictor_files(choice)
    if files == [Path(choice.name)]:
        return checksum(choice.name)
    content = [public_name(choice), *(f"{file.name} {checksum(file)}" for file in files)]
    return hashlib.sha256("\n".join(content).encode(errors="replace")).hexdigest()


@dataclass(frozen=True)
class PredictorLoader:
    """Loads a predictor in a worker as it was loaded here, whatever the worker's current folder."""

    choice: PredictorArguments
    origin: ModuleFolder

    @classmethod
    def here(cls, choice: PredictorArguments) -> PredictorLoader:
        """The loader for names in the current folder."""
        path = os.path.abspath(choice.name)
        name = path if os.path.isfile(path) else choice.name
        return cls(replace(choice, name=name), ModuleFolder.here())

    def __call__(self) -> Any:
        """The predictor."""
        if not URL.match(self.choice.name) and not os.path.isdir(self.origin.folder):
            raise PredictorError(
                f"A worker does not see the folder {shorten(self.origin.folder, 200)}, from which "
                "the predictor is loaded. Start the run in a folder that all workers share."
            )
        predictor = load_predictor(self.choice, self.origin, warned=True)
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
    """A function or object of a module, which may be in the folder of the run."""
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


def _load_joblib(choice: PredictorArguments) -> Any:
    if not choice.trust:
        raise ParameterError(
            f"{shorten(choice.name, 200)} is a pickle: loading it runs whatever code its author "
            "put there. If the file is your own, add --trust. Formats without code are skops, ONNX "
            "and the files of XGBoost, LightGBM and CatBoost."
        )
    from joblib import load

    return load(choice.name)


def _load_skops(choice: PredictorArguments) -> Any:
    from skops import io

    unknown = io.get_untrusted_types(file=choice.name)
    if unknown and not choice.trust:
        raise ParameterError(
            f"{shorten(choice.name, 200)} uses types that skops does not know to be safe: "
            f"{shorten(unknown, 400)}. If you trust them, add --trust."
        )
    return io.load(choice.name, trusted=unknown)


def _load_onnx(choice: PredictorArguments) -> Any:
    import onnxruntime

    session = onnxruntime.InferenceSession(choice.name, providers=["CPUExecutionProvider"])
    if choice.output is None and choice.classes is None:
        return session
    output: Any = choice.output or "probabilities"
    return Onnx(session, output, choice.classes)


def _load_xgboost(choice: PredictorArguments) -> Any:
    import xgboost

    booster = xgboost.Booster()
    booster.load_model(choice.name)
    return booster if choice.classes is None else XGBoost(booster, choice.classes)


def _load_lightgbm(choice: PredictorArguments) -> Any:
    import lightgbm

    booster = lightgbm.Booster(model_file=choice.name)
    return booster if choice.classes is None else LightGBM(booster, choice.classes)


def _load_catboost(choice: PredictorArguments) -> Any:
    import catboost

    model = catboost.CatBoost()
    model.load_model(choice.name)
    return model


LOADERS: dict[str, Callable[[PredictorArguments], Any]] = {
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
        with _lock:
            _turn_to(self)
            found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
        return found


# Modules that this process had before any command, and the command whose modules it has now.
_lock = threading.RLock()
_before: frozenset[str] | None = None
_current: ModuleFolder | None = None


def _turn_to(origin: ModuleFolder) -> None:
    """Forget the modules of another command, and look into the folder of this one first."""
    global _before, _current
    if _before is None:
        _before = frozenset(sys.modules)
    if _current != origin:
        for name in [] if _current is None else _modules_in(_current.folder):
            del sys.modules[name]
        sys.path[:] = [origin.folder, *(one for one in sys.path if one != origin.folder)]
        _current = origin
    # Files that are newer than Python's list of a folder are not seen otherwise.
    invalidate_caches()


def _modules_in(folder: str) -> list[str]:
    """Modules that commands imported from a folder, with those of its packages."""
    loaded = list(sys.modules.items())
    new = [(name, module) for name, module in loaded if name not in (_before or ())]
    tops = {name for name, module in new if _folder_of(module) == folder}
    return [name for name, _ in new if name.partition(".")[0] in tops]


def _folder_of(module: Any) -> str | None:
    """The folder of a module or package; None if it has none."""
    # Libraries put objects of their own there, which answer to any name.
    if not isinstance(module, ModuleType):
        return None
    known = vars(module)
    places = list(known.get("__path__") or ()) or [known.get("__file__")]
    return os.path.dirname(os.path.abspath(places[0])) if isinstance(places[0], str) else None
