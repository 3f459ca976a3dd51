"""An explainer as it is sent to workers: the bytes of its file, and how to load the predictor.

Always true: what is sent holds no pickle of the explainer; a process opens it once, however many
partitions and threads it has, so that limits of a predictor hold for all of them; a predictor that
is not ``thread_safe`` is called by one thread at a time; no setting is left that would make answers
depend on partitions.
"""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4
from weakref import WeakValueDictionary

from ..errors import ParameterError, shorten
from ..explainer import MCCE, load
from ..runtime.threads import one_at_a_time

# Explainers that a process keeps open although no thread uses them, for runs side by side.
KEPT = 2
_opening = threading.Lock()
_kept: OrderedDict[str, MCCE] = OrderedDict()
_opened: WeakValueDictionary[str, MCCE] = WeakValueDictionary()


@dataclass(frozen=True)
class Shipment:
    """An explainer on its way to workers; :meth:`pack` makes one."""

    content: bytes = field(repr=False)
    load_predictor: Callable[[], Any]
    tolerance: float = 1e-9
    generator: Any = None
    token: str = field(default_factory=lambda: uuid4().hex)

    @classmethod
    def pack(
        cls,
        explainer: MCCE,
        load_predictor: Callable[[], Any] | None = None,
        *,
        tolerance: float = 1e-9,
    ) -> Shipment:
        """An explainer, ready to be sent."""
        if explainer.max_seconds is not None:
            raise ParameterError(
                "max_seconds would make answers depend on partitions and machines. Set it to None: "
                "explainer.set_params(max_seconds=None)."
            )
        if load_predictor is None:
            load_predictor = _Given(explainer.predictor)
        if not callable(load_predictor):
            raise ParameterError(
                "load_predictor must be a function without arguments that returns the predictor, "
                f"got {shorten(load_predictor)}."
            )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "explainer.mcce")
            explainer.save(path)
            content = path.read_bytes()
        generator = None if _is_ours(explainer.generator) else explainer.generator
        return _sendable(cls(content, load_predictor, tolerance, generator))

    @contextmanager
    def opened(self) -> Iterator[MCCE]:
        """The explainer with its predictor, the same one for all threads of the process.

        Inside, a predictor that is not ``thread_safe`` is called by one thread at a time.
        """
        with one_at_a_time():
            yield self._open()

    def _open(self) -> MCCE:
        # Threads that come meanwhile wait: a second predictor would have limits of its own.
        with _opening:
            explainer = _opened.get(self.token)
            if explainer is None:
                explainer = _opened[self.token] = self._load()
            _kept[self.token] = explainer
            _kept.move_to_end(self.token)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
            return explainer

    def _load(self) -> MCCE:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "explainer.mcce")
            path.write_bytes(self.content)
            explainer = load(
                path,
                self.load_predictor(),
                generator=self.generator,
                tolerance=self.tolerance,
            )
        # A worker is one of many: threads of its own would only get in the way of others.
        return explainer.set_params(n_jobs=None, verbose=False)


@dataclass(frozen=True)
class _Given:
    """A function that returns a predictor."""

    predictor: Any

    def __call__(self) -> Any:
        return self.predictor


def _sendable(shipment: Shipment) -> Shipment:
    """The shipment, if engines can send it: all of them pickle functions whole, as joblib does."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        dumps(shipment)
    except Exception as error:  # whatever a predictor raises
        raise ParameterError(
            f"The predictor cannot be sent to workers ({shorten(error, 200)}). Pass "
            "load_predictor, a function that returns it there, such as from a file."
        ) from error
    return shipment


def _is_ours(generator: Any) -> bool:
    return isinstance(generator, str) or type(generator).__module__.split(".")[0] == "mcce"
