"""Attributes that are computed or imported once, when they are first read."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Self, TypeVar, overload

Value = TypeVar("Value")


class cached_property(functools.cached_property[Value]):  # noqa: N801 - named like its base
    """A :class:`functools.cached_property` without the lock that it has before Python 3.12.

    That lock is shared by all instances of a class. A child process that is forked while another
    thread holds it waits forever, and until then threads wait for each other. Here, threads that
    read the attribute at the same time may all compute it; all of them get the value that was
    stored first. Instances can be pickled and copied meanwhile.
    """

    def __set_name__(self, owner: type[Any], name: str) -> None:
        super().__set_name__(owner, name)
        # Python would iterate over the attributes while other threads may add to them.
        if not any("__getstate__" in vars(base) for base in owner.__mro__[:-1]):
            setattr(owner, "__getstate__", _copy_of_attributes)  # noqa: B010 - mypy cannot type it

    @overload
    def __get__(self, instance: None, owner: type[Any] | None = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: type[Any] | None = None) -> Value: ...
    def __get__(self, instance: object | None, owner: type[Any] | None = None) -> Self | Value:
        if instance is None:
            return self
        # Python calls this only while the instance has no value under that name.
        name, value = str(self.attrname), self.func(instance)
        stored: Value = instance.__dict__.setdefault(name, value)
        return stored


def _copy_of_attributes(instance: object) -> dict[str, Any]:
    return instance.__dict__.copy()


def attribute_loader(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package, given the module of each name.

    A name that is the name of its module gives the module itself.
    """

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f".{modules[name]}", package)
        value = module if modules[name] == name else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load
