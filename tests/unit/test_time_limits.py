"""Time limits end the work, what was fitted before stands, and a bar shows how far it is."""

from __future__ import annotations

import sys
import time

import numpy as np
import pandas as pd
import pytest

from bank import bank, score
from mcce import (
    MCCE,
    McceError,
    MissingExtraError,
    ParameterError,
    TimeLimitError,
    constraints,
)
from mcce.kernels import CancelledError, cancellable
from searches import slow

SETTINGS = {"desired": (0.8, 10), "immutable": ["sex"], "n_samples": 50, "random_state": 0}


@pytest.fixture(scope="module")
def train():
    return bank(150)


@pytest.fixture(scope="module")
def people():
    return bank(30, seed=1)


def test_a_fit_that_takes_too_long_raises_and_the_old_one_stands(train):
    explainer = MCCE(score, **SETTINGS).fit(train)
    old = explainer.fitted_

    with pytest.raises(TimeLimitError, match=r"fit takes longer than max_seconds=1e-09"):
        explainer.fit(train, max_seconds=1e-9)

    assert explainer.fitted_ is old
    assert issubclass(TimeLimitError, McceError)
    assert issubclass(TimeLimitError, TimeoutError)


def test_a_slow_predictor_counts_towards_the_time_limit_of_a_fit(train):
    def slow(frame):
        time.sleep(0.3)
        return score(frame)

    with pytest.raises(TimeLimitError):
        MCCE(slow, **SETTINGS).fit(train, max_seconds=0.1)


def test_a_limit_that_is_not_reached_changes_nothing(train, people):
    free = MCCE(score, **SETTINGS).fit(train)
    limited = MCCE(score, **SETTINGS, max_seconds=3600.0).fit(train, max_seconds=3600)

    pd.testing.assert_frame_equal(limited.explain(people).frame, free.explain(people).frame)


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
def test_a_time_limit_ends_a_search_inside_long_rules(train, people):
    def waste_time(frame):
        time.sleep(0.3)
        return frame["age"] > 0

    long = f"{'+'.join(['age'] * 900)} >= 0"
    rules = [constraints.relation("slow", waste_time)]
    rules += [constraints.relation(str(at), long) for at in range(5)]
    settings = SETTINGS | {"n_samples": 2000, "max_seconds": 0.3}
    explainer = MCCE(score, **settings, search="paper", memory=64.0).fit(train)

    started = time.process_time()
    stopped = explainer.explain(people, constraints=rules)
    limited = time.process_time() - started
    explainer.set_params(max_seconds=None).explain(people, constraints=rules)
    unlimited = time.process_time() - started - limited

    assert stopped.stopped
    assert limited < unlimited / 4


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_work_that_is_cancelled_ends_before_the_next_rule(train, people, search):
    later = []
    first = constraints.relation("first", lambda rows: (work.cancel(), rows["age"] > 0)[1])
    second = constraints.relation("second", lambda rows: (later.append(1), rows["age"] > 0)[1])
    explainer = MCCE(score, **SETTINGS, search=search, constraints=[first, second]).fit(train)

    with cancellable() as work, pytest.raises(CancelledError):
        explainer.explain(people)

    assert later == []


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), "1", True])
def test_a_time_limit_of_a_fit_that_is_none_is_refused(train, seconds):
    with pytest.raises(ParameterError, match="max_seconds must be a number of seconds"):
        MCCE(score, **SETTINGS).fit(train, max_seconds=seconds)


@pytest.mark.filterwarnings("ignore::mcce.McceWarning")
@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
@pytest.mark.parametrize("n_jobs", [2, *slow(1)])
def test_explaining_with_little_time_returns_what_was_found(train, people, search, n_jobs):
    explainer = MCCE(score, **SETTINGS, search=search, n_jobs=n_jobs, memory=1.0).fit(train)
    expected = explainer.explain(people)

    for seconds in [*np.geomspace(1e-6, 0.2, 5), 3600.0]:
        result = explainer.set_params(max_seconds=float(seconds)).explain(people)

        assert result.stopped or seconds > 1e-6
        assert not (result.stopped and seconds == 3600)
        assert set(result.people["status"]) <= {"answered", "already desired", "no answer"}
        assert (score(result.frame) >= 0.8).all()
        assert result.missing["reason"].str.len().gt(0).all()
        if search == "paper" or not result.stopped:
            answered = np.isin(expected.owner, result.owner)
            pd.testing.assert_frame_equal(result.frame, expected.frame[answered])


def test_a_bar_is_drawn_on_a_terminal_and_nowhere_else(train, people, capsys, monkeypatch):
    pytest.importorskip("tqdm")

    def shown(verbose):
        MCCE(score, **SETTINGS, verbose=verbose).fit(train).explain(people)
        return capsys.readouterr()

    silent = shown(True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    unasked, drawn = shown(False), shown(True)

    assert silent.err == silent.out == unasked.err == unasked.out == drawn.out == ""
    assert "model" in drawn.err
    assert "explain" in drawn.err


def test_a_bar_without_its_library_names_the_extra(train, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setitem(sys.modules, "tqdm", None)

    with pytest.raises(MissingExtraError, match=r'pip install "\.\[progress\]"'):
        MCCE(score, **SETTINGS, verbose=True).fit(train)
