"""Attributes that are computed once."""

from __future__ import annotations

import threading
from copy import deepcopy
from pickle import dumps, loads

import pytest

from mcce.caching import cached_property

LONG = 60.0


class Slow:
    """Counts how often its value is computed; computing waits for a gate."""

    def __init__(self, gate=None):
        self.gate = gate
        self.entered = threading.Event()
        self.n_computed = 0

    @cached_property
    def value(self):
        """A new object."""
        self.n_computed += 1
        self.entered.set()
        if self.gate is not None:
            assert self.gate.wait(LONG)
        return object()


class Plain:
    @cached_property
    def value(self):
        return [1, 2]


def test_a_value_is_computed_once():
    slow = Slow()

    assert slow.value is slow.value
    assert slow.n_computed == 1


def test_it_is_a_descriptor_with_the_documentation_of_its_function():
    assert isinstance(Slow.value, cached_property)
    assert Slow.value.__doc__ == "A new object."


def test_instances_have_their_own_values_and_pickles_keep_them():
    plain, other = Plain(), Plain()

    assert plain.value is not other.value
    assert loads(dumps(plain)).__dict__ == {"value": [1, 2]}


class ReadWhilePickled:
    """Reads an attribute of its owner as soon as it is pickled, as another thread might."""

    def __init__(self, owner):
        self.owner = owner

    def __reduce__(self):
        assert self.owner.value == [1, 2]
        return list, ()


@pytest.mark.parametrize("duplicate", [lambda one: loads(dumps(one)), deepcopy])
def test_an_instance_can_be_copied_while_attributes_are_computed(duplicate):
    plain = Plain()
    plain.first, plain.second = ReadWhilePickled(plain), 2

    assert duplicate(plain).second == 2


def test_a_thread_that_computes_does_not_hold_up_other_instances():
    gate = threading.Event()
    slow = Slow(gate)
    thread = threading.Thread(target=lambda: slow.value)
    thread.start()
    assert slow.entered.wait(LONG)
    done = threading.Event()

    threading.Thread(target=lambda: (Slow().value, done.set()), daemon=True).start()

    assert done.wait(LONG), "the other instance waits for a lock"
    gate.set()
    thread.join()


def test_threads_that_compute_together_all_get_the_value_stored_first():
    gate, got = threading.Event(), []
    slow = Slow(gate)
    threads = [threading.Thread(target=lambda: got.append(slow.value)) for _ in range(8)]
    for thread in threads:
        thread.start()

    gate.set()
    for thread in threads:
        thread.join()

    assert len(got) == 8
    assert {id(value) for value in got} == {id(slow.value)}
