"""Names and values from anywhere, in pictures: shown as they are, within bounds."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcce import Counterfactuals, Schema
from mcce.predictors import make_decision
from mcce.report import plots
from mcce.report.cells import CellWords
from mcce.report.labels import Labels
from mcce.report.plots.style import LINE, LINES, wrap

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

HOSTILE = [
    "$x^2$ and $y_1$",
    "$",
    r"\$\frac{1}{2}$",
    "_hidden",
    "a_b^c{d}",
    "%d %s",
    "two\nlines\tand\x00more",
    "<script>alert('x')</script>",
    "long " * 2_000,
    "x" * 10_000,
]


def explain(name, level):
    train = pd.DataFrame({name: ["plain", level, "other"] * 4, "n": range(12)})
    decision = make_decision(lambda frame: (frame[name] == level) * 1.0, (0.5, 1.0))
    people = pd.DataFrame({name: ["plain"], "n": [2]})
    answers = pd.DataFrame({name: [level], "n": [2]})
    made = Counterfactuals.from_frame(
        people, answers, schema=Schema.learn(train), decision=decision
    )
    return train, made


def draw_all(train, result, name):
    yield plots.plot_answer(result, accepted=train)
    yield plots.plot_answers(result, accepted=train)
    yield plots.plot_table(result)
    yield plots.plot_changed_features(result)
    yield plots.plot_front({name: result})
    yield plots.plot_group_costs(result, name)


@pytest.mark.parametrize("nasty", HOSTILE, ids=range(len(HOSTILE)))
def test_no_text_is_read_as_mathematics(nasty):
    train, result = explain(nasty, nasty)

    for axes in draw_all(train, result, nasty):
        axes.figure.canvas.draw()
        found = axes.figure.findobj(matplotlib.text.Text)
        texts = [text for text in found if text.get_visible() and text.get_text()]
        from_data = [text for text in texts if set("$_^") & set(text.get_text())]
        assert not any(text.get_parse_math() or text.get_usetex() for text in from_data)
        for text in texts:
            lines = text.get_text().split("\n")
            assert len(lines) <= LINES
            assert max(map(len, lines)) <= 75
        plt.close(axes.figure)


@given(st.text(max_size=300))
@settings(max_examples=60, deadline=None)
def test_wrapped_text_is_of_bounded_size(text):
    lines = wrap(text).split("\n")

    assert len(lines) <= LINES
    assert max(map(len, lines)) <= LINE


@given(
    st.lists(
        st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(10**6), 10**6),
        min_size=2,
        max_size=4,
        unique=True,
    )
)
@settings(max_examples=100, deadline=None)
def test_numbers_that_differ_are_written_differently(numbers):
    texts = CellWords(Labels()).values("x", numbers)

    assert len(set(texts)) == len(set(numbers))


def test_forty_levels_have_forty_bars():
    levels = [f"level {number:02d}" for number in range(40)]
    train, result = explain("region", "level 39")
    train = pd.DataFrame({"region": levels, "n": range(40)})

    axes = plots.plot_answer(result, accepted=train)

    # The person's own level, "plain", is one more.
    assert len(axes.patches) == 41
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert all(end < start + 1e-9 for (_, end), (start, _) in itertools.pairwise(edges))


def test_twenty_features_have_a_line_each():
    train = pd.DataFrame(np.arange(80.0).reshape(4, 20), columns=[f"x{j}" for j in range(20)])
    decision = make_decision(lambda frame: frame["x0"], (30.0, 100.0))
    result = Counterfactuals.from_frame(
        train.iloc[[0]], train.iloc[[3]], schema=Schema.learn(train), decision=decision
    )

    axes = plots.plot_answer(result, accepted=train)

    places = axes.get_yticks()
    assert len(places) == 20
    height = axes.figure.get_figheight() / len(places)
    assert height > 0.7
    plt.close(axes.figure)


def test_texts_of_an_answer_do_not_overlap():
    levels = ["a level with a rather long name", "another level whose name is long"]
    train = pd.DataFrame({"n": np.arange(100.0), "level": levels * 50})
    decision = make_decision(lambda frame: frame["n"], (50.0, 100.0))
    people = pd.DataFrame({"n": [49.0, 49.0], "level": levels})
    answers = pd.DataFrame({"n": [50.0, 99.0], "level": levels[::-1]})
    result = Counterfactuals.from_frame(
        people, answers, schema=Schema.learn(train), decision=decision
    )

    for person in (0, 1):
        axes = plots.plot_answer(result, person, accepted=train)
        renderer = axes.figure.canvas.get_renderer()
        axes.figure.canvas.draw()
        boxes = [text.get_window_extent(renderer) for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
        plt.close(axes.figure)
