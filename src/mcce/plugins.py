"""Generators and distances by name, those of other packages included, imported when they are named.

A package offers its own through the entry points ``mcce.generators`` and ``mcce.distances`` of its
metadata. Saved files hold these names, and nothing else in a file is ever imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from .errors import MissingExtraError, ParameterError, missing_extra


@dataclass(frozen=True)
class Registry:
    """Classes of one kind by name: those of mcce, and those of installed packages."""

    group: str
    built_in: Mapping[str, str]  # "module:class" of each name
    elsewhere: Mapping[str, str]  # the package that would offer a name, and is not installed

    def names(self) -> list[str]:
        """All names that can be used here, those of mcce first."""
        return [*self.built_in, *sorted(set(_entry_points(self.group)) - set(self.built_in))]

    def __contains__(self, name: object) -> bool:
        """Whether a name can be used, here or once its package is installed."""
        return isinstance(name, str) and (name in self.names() or name in self.elsewhere)

    def load(self, name: str) -> type[Any]:
        """The class of a name; MissingExtraError if its package is not installed."""
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            kind: type[Any] = getattr(import_module(module), attribute)
            return kind
        found = _entry_points(self.group).get(name)
        package = "" if found is None else found.module.partition(".")[0]
        if found is not None:
            try:
                loaded: type[Any] = found.load()
                return loaded
            except ModuleNotFoundError as error:
                # Only the metadata of the package are left.
                if error.name != package:
                    raise
        if name in self.elsewhere:
            raise missing_extra(self.elsewhere[name], "", repr(name), folder="./lab")
        if package:
            raise MissingExtraError(f"{name!r} needs {package}, which is gone. Install it again.")
        raise ParameterError(f"There is no {name!r} among {self.names()!r}.")

    def name_of(self, kind: type[Any]) -> str | None:
        """The name of a class; None if it has none. Imports nothing that is not loaded."""
        place = f"{kind.__module__}:{kind.__qualname__}"
        for name, target in self.built_in.items():
            if target == place:
                return name
        package = kind.__module__.partition(".")[0]
        for name, found in _entry_points(self.group).items():
            if found.module.partition(".")[0] == package and found.load() is kind:
                return name
        return None


@cache
def _entry_points(group: str) -> Mapping[str, EntryPoint]:
    return {found.name: found for found in entry_points(group=group)}
