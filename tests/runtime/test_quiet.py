"""Prints and warnings that threads hide at the same time."""

from __future__ import annotations

import sys
import threading
import warnings

import pytest

from mcce.errors import McceWarning
from mcce.runtime.quiet import without_prints, without_warnings


@pytest.mark.parametrize("hide", [without_prints, without_warnings])
def test_nothing_stays_changed_whoever_leaves_first(hide):
    before = sys.stdout, list(warnings.filters)
    first, second = hide(), hide()

    first.__enter__()
    second.__enter__()
    inside = sys.stdout, list(warnings.filters)
    first.__exit__(None, None, None)
    between = sys.stdout, list(warnings.filters)
    second.__exit__(None, None, None)

    assert inside == between != before
    assert (sys.stdout, list(warnings.filters)) == before


def test_threads_that_come_and_go_leave_everything_as_it_was():
    before, told = (sys.stdout, list(warnings.filters)), []

    def work():
        for _ in range(200):
            with without_prints(), without_warnings():
                told.append(sys.stdout is sys.stderr)
                warnings.warn("who has no answer", McceWarning, stacklevel=1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(told) == 8 * 200
    assert all(told)
    assert (sys.stdout, list(warnings.filters)) == before


def test_prints_go_to_standard_error_and_only_our_warnings_are_hidden(capsys):
    with without_prints():
        sys.stdout.write("from a predictor\n")
    with without_warnings():
        warnings.warn("ours", McceWarning, stacklevel=1)
        with pytest.warns(UserWarning, match="yours"):
            warnings.warn("yours", UserWarning, stacklevel=1)

    assert capsys.readouterr() == ("", "from a predictor\n")


def test_an_error_leaves_nothing_changed():
    before = sys.stdout

    with pytest.raises(ValueError, match="no"), without_prints():
        raise ValueError("no")

    assert sys.stdout is before
