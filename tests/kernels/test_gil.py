"""Every compiled kernel lets other threads run while it works."""

from __future__ import annotations

import sys
import threading

import pytest

from kernel_calls import kernel_calls
from mcce.kernels import _native
from mcce.kernels.cancellation import watch

# A thread that may run might still be woken too late for one call of a kernel, but not for so many.
N_TRIES = 500
CALLS = kernel_calls()


def lets_others_run(call, n_tries=N_TRIES):
    """Whether a waiting thread comes to run during one of the calls.

    Nobody is forced to let go of the GIL meanwhile, so it runs if and only if a call does.
    """
    gate, ran = threading.Lock(), []
    gate.acquire()

    def run():
        with gate:
            ran.append(True)

    thread, interval = threading.Thread(target=run), sys.getswitchinterval()
    sys.setswitchinterval(1000)
    try:
        thread.start()
        gate.release()
        for _ in range(n_tries):
            call()
            if ran:
                return True
        return False
    finally:
        sys.setswitchinterval(interval)
        thread.join()


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_releases_the_gil(name):
    # As in a thread that handles no signals: the main one lets others run to handle them.
    quiet = _native.Watch(None, signals=False)

    assert lets_others_run(lambda: CALLS[name](quiet))


def test_every_kernel_is_checked():
    methods = {
        name
        for value in vars(_native).values()
        if value is not _native.Cancellation
        for name in (vars(value) if isinstance(value, type) else ())
        if not name.startswith("_")
    }
    functions = {
        name
        for name, value in vars(_native).items()
        if callable(value) and not isinstance(value, type) and not name.startswith("_")
    }

    assert methods | functions == set(CALLS)


def test_calls_that_hold_the_gil_are_recognised():
    assert not lets_others_run(lambda: sum(range(50_000)), n_tries=50)
    assert not lets_others_run(watch, n_tries=50)
