"""Pictures: what is drawn and written, not how it looks, and no harm from hostile names."""

from __future__ import annotations

import itertools
import sys

import numpy as np
import pandas as pd
import pytest

from mcce import Counterfactuals, MissingExtraError, ParameterError, Schema, SchemaError
from mcce.predictors import make_decision
from mcce.report import plots
from searches import slow

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
plt = pytest.importorskip("matplotlib.pyplot")

TRAIN = pd.DataFrame(
    {
        "age": np.arange(20, 80),
        "salary": np.linspace(100.0, 900.0, 60).round(),
        "housing": pd.Categorical(["rent", "own", "free"] * 20),
        "loans": [0, 1, 2, 3] * 15,
    }
)
LABELS = {
    "features": {
        "salary": {"name": "your salary", "unit": "{number} kr"},
        "loans": {"levels": {0: "none", 1: "one", 2: "two", 3: "three"}},
    }
}


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def make_result(people, answers, owner=None, schema=TRAIN):
    """A result in which every given answer is valid, whatever it holds."""
    decision = make_decision(lambda frame: frame["salary"].to_numpy(float) >= 500, (0.5, 1.0))
    return Counterfactuals.from_frame(
        people, answers, schema=Schema.learn(schema), decision=decision, owner=owner
    )


@pytest.fixture
def result():
    """Two answers for the person 7, one for 8, none for 9."""
    people = TRAIN.iloc[[3, 6, 12]].set_axis([7, 8, 9])
    answers = TRAIN.iloc[[3, 3, 6]].reset_index(drop=True)
    answers["salary"] = [500.0, 640.0, 700.0]
    answers["housing"] = pd.Categorical(["rent", "own", "rent"], TRAIN["housing"].cat.categories)
    answers["loans"] = [3, 0, 1]
    return make_result(people, answers, owner=[0, 0, 1])


def drawn_texts(axes):
    """Every text that a picture shows, once it is drawn."""
    axes.figure.canvas.draw()
    found = axes.figure.findobj(matplotlib.text.Text)
    return [text.get_text() for text in found if text.get_visible() and text.get_text()]


def names(axes):
    return [label.get_text() for label in axes.get_yticklabels()]


def test_an_answer_shows_each_changed_feature_before_and_after(result):
    axes = plots.plot_answer(result, 7, rank=2, accepted=TRAIN, labels=LABELS)

    assert names(axes) == ["Your salary", "housing", "Loans"]
    texts = drawn_texts(axes)
    for text in ("141\xa0kr", "640\xa0kr", "rent", "own", "three", "none", "accepted people"):
        assert text in texts
    full = [line for line in axes.lines if line.get_markersize() == 8]
    assert len(full) == 3


def test_only_changed_features_are_drawn_in_the_order_of_the_numbers(result):
    axes = plots.plot_answer(result, 7)
    with_people = plots.plot_answer(result, 7, accepted=TRAIN)

    assert names(axes) == ["salary"]
    assert "accepted people" not in drawn_texts(axes)
    assert not axes.patches
    (hollow,) = [line for line in with_people.lines if line.get_markersize() == 7]
    (full,) = [line for line in with_people.lines if line.get_markersize() == 8]
    assert 0 <= hollow.get_xdata()[0] < full.get_xdata()[0] <= 1


def test_several_answers_stand_side_by_side(result):
    axes = plots.plot_answers(result, 7, accepted=TRAIN)

    texts = drawn_texts(axes)
    heads = [text for text in axes.texts if text.get_text().startswith("Answer")]
    assert [head.get_text() for head in heads] == ["Answer 1", "Answer 2"]
    assert heads[0].get_position()[0] < heads[1].get_position()[0]
    assert names(axes) == ["salary", "housing", "loans"]
    assert texts.count("141") == 2
    # Four changed cells, and each answer has a hollow dot for each of the three features.
    assert sum(line.get_markersize() == 8 for line in axes.lines) == 4
    assert sum(line.get_markersize() == 7 for line in axes.lines) == 6


def test_a_missing_value_has_a_place_and_a_word():
    train = pd.DataFrame({"salary": [100.0, 600.0, np.nan] * 5})
    people, answers = pd.DataFrame({"salary": [np.nan]}), pd.DataFrame({"salary": [600.0]})

    axes = plots.plot_answer(make_result(people, answers, schema=train), accepted=train)

    assert "not stated" in drawn_texts(axes)


def test_a_consequence_is_dashed(result):
    object.__setattr__(result, "consequences", ("housing",))

    axes = plots.plot_answer(result, 7, rank=2)

    assert sum(line.get_linestyle() == "--" for line in axes.lines) == 1
    assert "follows from other changes" in drawn_texts(axes)


def test_numbers_that_nearly_agree_are_told_apart():
    train = pd.DataFrame({"salary": [499.9996, 500.0004]})

    axes = plots.plot_answer(make_result(train.iloc[[0]], train.iloc[[1]], schema=train))

    assert {"499.9996", "500.0004"} <= set(drawn_texts(axes))


def test_bars_count_best_answers_by_direction(result):
    axes = plots.plot_changed_features(result)

    assert names(axes) == ["salary", "loans"]
    assert [text.get_text() for text in axes.texts] == ["100\xa0%", "50\xa0%"]
    more, less, _ = axes.containers
    assert [bar.get_width() for bar in more] == [1.0, 0.0]
    assert [bar.get_width() for bar in less] == [0.0, 0.5]


def test_the_front_holds_what_nothing_beats():
    chance = np.random.default_rng(0)
    answers = pd.concat([TRAIN.iloc[[3]]] * 20, ignore_index=True)
    answers["salary"] = chance.integers(500, 900, 20).astype(float)
    answers["loans"] = chance.integers(0, 4, 20)
    answers["age"] = chance.choice([23, 24, 70], 20)
    result = make_result(TRAIN.iloc[[3]], answers, owner=[0] * 20)

    axes = plots.plot_front(result)

    points = result.measures[["sparsity", "gower"]].to_numpy(float)
    expected = [any((q <= p).all() and (q < p).any() for q in points) for p in points]
    drawn = [line for line in axes.lines if line.get_marker() == "o"]
    hollow = [line.get_markerfacecolor() == "none" for line in drawn]
    assert sorted(hollow) == sorted(expected)
    assert 0 < sum(hollow) < len(hollow)
    assert "Answer 1" in drawn_texts(axes)


def test_several_results_are_points_at_their_means(result):
    axes = plots.plot_front({"a": result, "b": result})

    (point,) = [line for line in axes.lines if line.get_marker() == "o"]
    assert point.get_xdata()[0] == 1.5
    assert "a, b" in drawn_texts(axes)


def test_groups_have_means_intervals_and_counts():
    people = pd.concat([TRAIN.iloc[:24], TRAIN.iloc[:1]], ignore_index=True)
    answers = people.assign(salary=np.linspace(500, 880, 25).round())
    answers.iloc[-1] = None
    groups = ["b", "a"] * 12 + ["a"]
    result = make_result(people, answers)

    axes = plots.plot_group_costs(result, groups, random_state=1)
    again = plots.plot_group_costs(result, groups, random_state=1)

    assert names(axes) == ["a", "b"]
    assert [t.get_text() for t in axes.texts] == ["13 people, 1 without an answer", "12 people"]
    means = [line.get_xdata()[0] for line in axes.lines if line.get_marker() == "o"]
    gower = result.measures["gower"].to_numpy()
    assert means == pytest.approx([gower[1::2].mean(), gower[:24:2].mean()])
    ends = [line.get_xdata() for line in axes.lines if line.get_marker() != "o"]
    assert all(low < mean < high for (low, high), mean in zip(ends, means, strict=True))
    assert [list(line.get_xdata()) for line in axes.lines] == [
        list(line.get_xdata()) for line in again.lines
    ]


@pytest.mark.parametrize("style", ["default", "dark_background"], ids=["light", "dark"])
def test_given_axes_are_drawn_in_and_decide_the_colours(result, style):
    with plt.style.context(style):
        _, panels = plt.subplots(1, 2)

    axes = plots.plot_answer(result, 7, ax=panels[1])

    assert axes is panels[1]
    assert not panels[0].texts
    colour = matplotlib.colors.to_rgb(axes.texts[0].get_color())
    assert (np.mean(colour) > 0.5) == (style == "dark_background")


def test_bad_arguments_are_named(result):
    wrong = [
        (lambda: plots.plot_answer("r"), "must be what explain returned"),
        (lambda: plots.plot_answer(result, 10), "10 is that of nobody"),
        (lambda: plots.plot_answer(result, 9), "has no answer"),
        (lambda: plots.plot_answer(result, 7, rank=3), r"ranks \[1, 2\], none of rank 3"),
        (lambda: plots.plot_answer(result, 7, ax="axes"), "ax must be axes"),
        (lambda: plots.plot_changed_features(result, n_features=0), "n_features"),
        (lambda: plots.plot_front({}), "at least one result"),
        (lambda: plots.plot_front({"a": result}, 7), "person is for a single result"),
        (lambda: plots.plot_group_costs(result, "sex"), "groups must be a column"),
        (lambda: plots.plot_group_costs(result, ["a"]), "one value per person, 3, got 1"),
        (lambda: plots.plot_group_costs(result, "age", measure="cost"), "measure must be"),
        (lambda: plots.plot_group_costs(result, "age", confidence=1), "confidence"),
        (lambda: plots.plot_answer(result, accepted=TRAIN[["age"]]), "lacks .*'loans'"),
    ]
    for call, words in wrong:
        with pytest.raises((ParameterError, SchemaError), match=words):
            call()


def test_without_matplotlib_the_extra_is_named(result, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)

    with pytest.raises(MissingExtraError, match=r"\.\[report\]"):
        plots.plot_answer(result)


def test_nothing_is_drawn_of_a_result_without_answers(result):
    nobody = make_result(TRAIN.iloc[[3]], TRAIN.iloc[:0], owner=np.empty(0, dtype=int))

    for plot in (
        plots.plot_answer,
        plots.plot_changed_features,
        plots.plot_front,
    ):
        with pytest.raises(ParameterError, match="Nobody"):
            plot(nobody)


HOSTILE = {
    "mathematics": r"$x^2$ and \$\frac{1}{2}$ a_b^c{d}",
    "one dollar": "$",
    "hidden": "_hidden %d %s",
    "markup": "<script>alert('x')</script>",
    "lines": "two\nlines\tand\x00more",
    "long": "x" * 10_000,
}


@pytest.mark.parametrize(
    "kind", ["mathematics", "lines", *slow("one dollar", "hidden", "markup", "long")]
)
def test_names_and_values_are_shown_as_they_are_within_bounds(kind):
    nasty = HOSTILE[kind]
    train = pd.DataFrame({nasty: ["plain", nasty, "other"] * 4, "n": range(12)})
    result = Counterfactuals.from_frame(
        pd.DataFrame({nasty: ["plain"], "n": [2]}),
        pd.DataFrame({nasty: [nasty], "n": [2]}),
        schema=Schema.learn(train),
        decision=make_decision(lambda frame: (frame[nasty] == nasty) * 1.0, (0.5, 1.0)),
    )
    drawn = [
        plots.plot_answer(result, accepted=train),
        plots.plot_answers(result, accepted=train),
        plots.plot_changed_features(result),
        plots.plot_front({nasty: result}),
        plots.plot_group_costs(result, nasty),
    ]

    for axes in drawn:
        axes.figure.canvas.draw()
        found = axes.figure.findobj(matplotlib.text.Text)
        texts = [text for text in found if text.get_visible() and text.get_text()]
        from_data = [text for text in texts if set("$_^") & set(text.get_text())]
        assert not any(text.get_parse_math() or text.get_usetex() for text in from_data)
        for text in texts:
            lines = text.get_text().split("\n")
            assert len(lines) <= 2
            assert max(map(len, lines)) <= 75
    if kind in ("one dollar", "markup"):
        assert nasty in [text.replace("\n", "") for text in drawn_texts(drawn[0])]


def test_forty_levels_have_forty_bars():
    levels = [f"level {number:02d}" for number in range(40)]
    train = pd.DataFrame({"region": levels, "salary": [600] * 40})
    people = pd.DataFrame({"region": ["plain"], "salary": [600]})
    seen = pd.concat([people, train], ignore_index=True)
    decision = make_decision(lambda frame: (frame["region"] != "plain") * 1.0, (0.5, 1.0))
    result = Counterfactuals.from_frame(
        people, train.tail(1), schema=Schema.learn(seen), decision=decision
    )

    axes = plots.plot_answer(result, accepted=train)

    # The person's own level, "plain", is one more.
    assert len(axes.patches) == 41
    edges = sorted((bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches)
    assert all(end < start + 1e-9 for (_, end), (start, _) in itertools.pairwise(edges))


def test_texts_of_an_answer_do_not_overlap():
    levels = ["a level with a rather long name", "another level whose name is long"]
    train = pd.DataFrame({"salary": np.arange(450.0, 550.0), "level": levels * 50})
    people = pd.DataFrame({"salary": [499.0, 499.0], "level": levels})
    answers = pd.DataFrame({"salary": [500.0, 549.0], "level": levels[::-1]})
    result = make_result(people, answers, schema=train)

    for person in (0, 1):
        axes = plots.plot_answer(result, person, accepted=train)
        axes.figure.canvas.draw()
        boxes = [text.get_window_extent() for text in axes.texts]
        assert not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
