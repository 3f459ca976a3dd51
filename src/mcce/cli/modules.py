"""Modules of the folder that a command was started in, also for workers that outlive the command.

Python imports a module once per process. A worker of a cluster may serve many commands, whose
modules have the same names in other folders, or were edited meanwhile.

Always true: a command gets the modules of its own folder as they are when it starts; modules that
the process had before, and those that are installed, stay as they are.
"""

from __future__ import annotations

import os
import sys
import threading
from dataclasses import dataclass
from importlib import import_module, invalidate_caches
from types import ModuleType
from typing import Any
from uuid import uuid4

# Tells the commands of this process from those of others.
_PROCESS = uuid4().hex


@dataclass(frozen=True)
class Origin:
    """Where the modules of a command come from."""

    folder: str
    process: str

    @classmethod
    def here(cls) -> Origin:
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
        self._origin: Origin | None = None
        self._folders: set[str] = set()
        self._before: frozenset[str] = frozenset()

    def turn_to(self, origin: Origin) -> None:
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


def _folder_of(module: Any) -> str | None:
    """The folder that a module or package stands in; None if it stands in none."""
    # Libraries put objects of their own there, which answer to any name.
    if not isinstance(module, ModuleType):
        return None
    known = vars(module)
    places = list(known.get("__path__") or ()) or [known.get("__file__")]
    return os.path.dirname(os.path.abspath(places[0])) if isinstance(places[0], str) else None


_state = _State()
