"""Ctrl-C is heard while compiled code runs."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# A tree that takes seconds to grow. A signal is handled again and again during this one call of a
# kernel; one that did not look for signals would let it be handled once, after the call.
ONE_KERNEL = """
import signal
import numpy as np
from mcce.kernels import SplitColumns, Growth, Numbers, fixed_point, grow_tree

chance, n_rows = np.random.default_rng(0), 400_000
codes = chance.integers(0, 200_000, (6, n_rows), dtype=np.int32)
yes = np.ones(6, dtype=bool)
columns = SplitColumns(codes, ~yes, yes, np.full(6, 200_000))
response = Numbers(fixed_point(chance.normal(size=n_rows)))
columns.narrow
n_handled = 0


def handle(*_):
    global n_handled
    n_handled += 1
    if n_handled == 4:
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise KeyboardInterrupt


signal.signal(signal.SIGALRM, handle)
signal.setitimer(signal.ITIMER_REAL, 0.01, 0.01)
try:
    grow_tree(columns, np.arange(6), response, codes[0], Growth(min_samples_leaf=1))
except KeyboardInterrupt:
    print("interrupted")
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs the timers of POSIX")
def test_signals_are_handled_while_a_tree_grows():
    child = subprocess.run(
        [sys.executable, "-c", ONE_KERNEL], capture_output=True, text=True, check=False
    )

    assert child.stdout.split() == ["interrupted"], child.stderr
