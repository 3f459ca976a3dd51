"""Modules of commands that one long-lived worker serves, one after the other."""

from __future__ import annotations

import sys

import pytest

from mcce.cli.modules import Origin, _State


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Makes folders with modules; what was imported from them is forgotten after the test."""
    monkeypatch.setattr("mcce.cli.modules._state", _State())
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    imported = set(sys.modules)

    def make(name, **modules):
        (tmp_path / name).mkdir(exist_ok=True)
        for module, text in modules.items():
            path = (tmp_path / name).joinpath(*module.split("__")).with_suffix(".py")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return str(tmp_path / name)

    yield make
    for name in set(sys.modules) - imported:
        del sys.modules[name]


def test_each_command_gets_the_module_of_its_own_folder(folder):
    first = Origin(folder("a", mybox="from helper import side", helper="side = 'a'"), "one")
    second = Origin(folder("b", mybox="from helper import side", helper="side = 'b'"), "two")

    found = [origin.load("mybox", "side") for origin in (first, second, first)]

    assert found == ["a", "b", "a"]


def test_packages_are_those_of_the_command_too(folder):
    packages = [
        Origin(folder(name, box__model=f"class Model: side = {name!r}"), name) for name in "ab"
    ]

    assert [origin.load("box.model", "Model.side") for origin in packages] == ["a", "b"]


def test_a_module_that_was_edited_is_imported_again_by_the_next_command(folder):
    where = folder("a", mybox="side = 'old'")
    before = Origin(where, "one").load("mybox", "side")
    folder("a", mybox="side = 'new, and longer'")

    assert before == Origin(where, "one").load("mybox", "side") == "old"
    assert Origin(where, "two").load("mybox", "side") == "new, and longer"


def test_modules_that_the_process_had_before_stay(folder, monkeypatch):
    where = folder("a", mybox="import theirs", theirs="side = 'a'")
    monkeypatch.syspath_prepend(where)
    import theirs

    for process in ("one", "two"):
        Origin(where, process).load("mybox", "theirs")

    assert sys.modules["theirs"] is theirs


def test_objects_that_libraries_take_for_modules_are_left_alone(folder, monkeypatch):
    class Anything:
        def __getattr__(self, _):
            return self

    origins = [Origin(folder(name, mybox=f"side = {name!r}"), name) for name in "ab"]
    origins[0].load("mybox", "side")
    monkeypatch.setitem(sys.modules, "odd", Anything())

    assert origins[1].load("mybox", "side") == "b"


def test_the_current_folder_stays_what_it_is(folder, monkeypatch):
    def change(_):
        raise AssertionError("The current folder belongs to all threads.")

    where = folder("a", mybox="side = 'a'")
    monkeypatch.setattr("os.chdir", change)

    assert Origin(where, "one").load("mybox", "side") == "a"
