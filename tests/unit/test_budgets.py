"""Budgets of questions, time, draws and memory are kept for every person, whoever else is there."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bank import bank, score
from mcce import MCCE, McceWarning, ParameterError, Search
from mcce import constraints as c
from mcce.protocols import Capabilities
from searches import altered, assert_same, bounded, examples, explain, slow, texts

BEYOND = ["sparse", "balanced", "plausible", "near", "nearest"]
STOPPED = "The search was stopped before an answer was found."
MOST = 2**31 - 1


class Recorder:
    """A predictor that counts the rows of each person, by a column that nobody can change."""

    def __init__(self, function=score):
        self.function = function
        self.n_rows: Counter[int] = Counter()

    def __call__(self, frame):
        self.n_rows.update(frame["person"].tolist())
        return self.function(frame)


def wild(frame):
    """Scores that no surrogate can imitate."""
    numbers = frame["salary"].fillna(0).to_numpy() * 7919 + frame["years"].to_numpy() * 104729
    return np.sin(numbers) * 1000 % 1 + score(frame) / 10


def refusing(frame):
    """Nobody new is ever accepted."""
    return np.where(frame["person"] < 1000, score(frame), 0.1)


def table(n_rows, seed=1):
    return bank(n_rows, seed=seed).assign(person=np.arange(n_rows))


def asking(n_rows, seed=2):
    return table(n_rows, seed).assign(person=np.arange(1000, 1000 + n_rows))


def fitted(recorder, search, train=None, **more):
    explainer = MCCE(recorder, (0.9, 99.0), immutable=["sex", "person"], search=search)
    explainer.set_params(random_state=0, **more).fit(table(300) if train is None else train)
    recorder.n_rows.clear()
    return explainer


def n_asked(recorder, result, people):
    """Rows of each person scored in the search, without their own and the final call."""
    answers = result.frame["person"].value_counts()
    explained = people["person"][(result.people["status"] != "already desired").to_numpy()]
    rows = {person: recorder.n_rows[person] - 1 for person in explained}
    return {person: n - answers.get(person, 0) for person, n in rows.items()}


RULES = {
    "none": None,
    "few": [c.max_changes(2)],
    "tight": [c.only_up("years"), c.frozen("education"), c.relation("low", "salary < 50")],
}


@examples(0.2)
@given(
    most=st.integers(1, 20),
    name=st.sampled_from(BEYOND),
    n_counterfactuals=st.integers(1, 3),
    rules=st.sampled_from(sorted(RULES)),
    max_distance=st.sampled_from([None, 0.05]),
    function=st.sampled_from([score, wild]),
    n_train=st.sampled_from([8, 40, 120]),
    seed=st.integers(0, 5),
)
def test_nobody_has_more_rows_scored_than_max_evaluations(
    most, name, n_counterfactuals, rules, max_distance, function, n_train, seed
):
    recorder, people = Recorder(function), asking(6, seed + 100)
    search = Search(name, max_evaluations=most, max_samples=200, max_distance=max_distance)
    more = {"n_counterfactuals": n_counterfactuals, "constraints": RULES[rules]}
    explainer = fitted(recorder, search, table(n_train, seed), **more)

    result = explain(explainer, people)

    asked = n_asked(recorder, result, people)
    assert all(0 <= n <= most for n in asked.values())
    assert sum(asked.values()) == result.n_evaluated


@pytest.mark.parametrize(("name", "most"), [("sparse", 1), ("plausible", 8)])
def test_a_batch_changes_nothing_within_the_budget(name, most):
    people, recorder = asking(8), Recorder()
    search = Search(name, max_evaluations=most, max_samples=400)
    explainer = fitted(recorder, search, table(200), n_counterfactuals=2)
    together = explain(explainer, people)
    asked = n_asked(recorder, together, people)

    for at in range(len(people)):
        recorder.n_rows.clear()
        alone = explain(explainer, people.iloc[[at]])

        pd.testing.assert_frame_equal(alone.people, together.people.iloc[[at]], check_exact=True)
        pd.testing.assert_frame_equal(alone.frame, together.frame[together.owner == at])
        assert n_asked(recorder, alone, people.iloc[[at]]).items() <= asked.items()


def test_without_rows_to_ask_about_the_best_so_far_is_returned():
    explainer, people, sizes = fitted(Recorder(), "sparse"), asking(60), {}
    for most in [1, 2, 16, None]:
        search = Search("sparse", max_evaluations=most)
        result = explain(altered(explainer, search=search), people)
        assert (score(result.frame) >= 0.9).all()
        sizes[most] = len(result.frame)

    assert sizes[1] <= sizes[2] <= sizes[16] <= sizes[None]
    assert sizes[1] > 0.5 * sizes[None]


def test_enough_rows_change_nothing():
    plain, people = Search("balanced"), asking(20)
    free = fitted(Recorder(), plain)

    limited = altered(free, search=replace(plain, max_evaluations=500))

    assert_same(explain(limited, people), explain(free, people))


def test_a_reason_names_what_was_used_up():
    search = Search("sparse", max_evaluations=1, max_samples=200)

    result = explain(fitted(Recorder(refusing), search), asking(30))

    said = r"most promising one and did not accept it.*The limit max_evaluations was reached\.$"
    assert len(result.missing)
    assert len(result.frame) == 0
    assert result.missing["reason"].str.contains(said).all()


def test_rows_beyond_the_bounds_are_not_put_to_the_predictor():
    recorder, people = Recorder(), asking(30)
    search = Search("sparse", max_distance=0.001, max_samples=200, max_evaluations=50)

    result = explain(fitted(recorder, search), people)

    assert max(n_asked(recorder, result, people).values()) <= 1
    assert result.missing["reason"].str.contains("excluded by max_distance=0.001").any()


# ---------------------------------------------------------------------------------------------
# Stopping, draws and memory.


@pytest.mark.parametrize("search", ["paper", "balanced"])
def test_whoever_listens_can_stop_the_search_and_keeps_what_was_found(search):
    heard = []

    def stop(progress):
        heard.append(progress)
        return progress.n_settled >= 3

    explainer = fitted(Recorder(), search, memory=1e-6)  # everybody in a block of their own
    result = explain(explainer, asking(30), callback=stop)

    assert result.stopped
    assert heard[-1].n_settled < heard[-1].n_factuals
    assert len(result.frame)
    assert (score(result.frame) >= 0.9).all()
    assert (result.missing["reason"] == STOPPED).any()
    assert set(result.people["status"]) == {"answered", "already desired", "no answer"}


def test_progress_never_goes_backwards_also_where_nobody_has_an_answer():
    heard = []
    explainer = fitted(Recorder(), Search("sparse", max_samples=40), constraints=RULES["tight"])
    explainer.set_params(desired=(1.3, 99.0)).fit(table(300))

    result = explain(explainer, asking(12), callback=heard.append)

    assert len(result.missing)
    for counts in zip(*((one.n_settled, one.n_evaluated) for one in heard), strict=True):
        assert list(counts) == sorted(counts)
    assert len(heard) > 1


def test_further_answers_that_were_found_stay_when_the_search_is_stopped():
    explainer = fitted(Recorder(), "balanced", n_counterfactuals=4)
    calls = []
    explain(explainer, asking(8), callback=calls.append)

    last = iter(range(1, 10_000))
    result = explain(explainer, asking(8), callback=lambda _: next(last) == len(calls))

    assert len(result.frame) > result.frame.index.get_level_values(0).nunique()


def test_time_that_is_up_stops_the_search():
    for search in ("paper", "balanced"):
        explainer = fitted(Recorder(), search, max_seconds=1e-9)
        result = explain(explainer, asking(30))

        assert result.stopped
        assert (result.missing["reason"] == STOPPED).any()
    assert not explain(altered(explainer, max_seconds=1000), asking(5)).stopped


def test_everybody_has_n_samples_draws_even_if_max_samples_are_fewer():
    few = fitted(Recorder(), bounded("paper", max_samples=5), n_samples=40)
    same = fitted(Recorder(), "paper", n_samples=40)
    people = asking(20)

    assert_same(explain(few, people), explain(same, people))


def test_people_without_an_answer_get_more_draws_until_the_most():
    people, n_scored = asking(40), []
    for most in (20, 200, 2000):
        search = bounded("paper", max_samples=most, max_distance=0.03)
        result = explain(fitted(Recorder(), search, n_samples=20), people)
        n_scored.append(result.n_evaluated)

    assert len(result.missing)
    assert n_scored[0] < n_scored[1] / 2 < n_scored[2] / 4


class Hungry:
    """A generator that runs out of memory."""

    capabilities = Capabilities()

    def fit(self, rows, is_desired, *, seed, n_jobs, verbose):
        return self

    def sample(self, request):
        raise MemoryError


def wide_people():
    return pd.DataFrame(np.arange(20 * 90).reshape(20, 90) % 17).add_prefix("x")


@pytest.mark.parametrize(
    "settings",
    [{"n_samples": MOST}, {"search": Search(max_samples=MOST)}],
    ids=["n_samples", "max_samples"],
)
def test_draws_that_no_memory_holds_are_refused_before_a_row_is_scored(settings):
    calls, name = [], "n_samples" if "n_samples" in settings else "max_samples"

    def counted(frame):
        calls.append(len(frame))
        return frame["x0"]

    explainer = MCCE(counted, (9, 99), random_state=0, **settings).fit(wide_people())
    calls.clear()

    with pytest.raises(ParameterError, match=rf"{name}=2147483647 .* GiB.*Lower {name}"):
        explainer.explain(wide_people())
    assert not calls


def test_memory_that_runs_out_is_an_error_that_says_what_to_lower():
    explainer = MCCE(lambda f: f["x0"], (9, 99), generator=Hungry(), search="paper")

    with pytest.raises(ParameterError, match=r"n_samples=1000 .* memory=256.0 .* Lower one"):
        explainer.fit(wide_people()).explain(wide_people())


@pytest.mark.parametrize("memory", [5e-324, 1e308], ids=["least", "most"])
def test_any_memory_gives_the_same_answers(memory):
    explainer, people = fitted(Recorder(), "paper", n_samples=50), asking(10)

    assert_same(explain(altered(explainer, memory=memory), people), explain(explainer, people))


@pytest.mark.parametrize("search", ["paper", "balanced", "exact"])
def test_any_number_of_counterfactuals_gives_as_many_as_there_are(search):
    chance = np.random.default_rng(0)
    train = pd.DataFrame({"a": chance.integers(0, 5, 60), "b": chance.normal(size=60)})
    explainer = MCCE(lambda f: 1.0 * (f["b"] > 0), (0.5, 1), search=search, random_state=0)
    explainer.set_params(n_counterfactuals=MOST).fit(train)

    result = explain(explainer, train[train["b"] < 0].head(2))

    # Beyond the paper, one answer for each thing to ask for.
    assert len(result.frame) > 2 or search == "balanced"
    assert result.missing.empty


def test_nothing_is_said_of_stopping_where_everybody_has_an_answer():
    explainer = fitted(Recorder(), "paper", n_counterfactuals=3)
    person = asking(60)
    person = person[score(person) < 0.9].head(1)

    result = explainer.explain(person, callback=lambda progress: True)

    assert result.people["status"].tolist() == ["answered"]
    assert result.frame.index.get_level_values("rank").tolist() == [1, 2, 3]


def test_people_without_an_answer_are_warned_about():
    explainer = fitted(Recorder(refusing), "paper", n_samples=20)

    with pytest.warns(McceWarning, match=r"\d+ of 30 people have no counterfactual"):
        explainer.explain(asking(30))


@pytest.mark.parametrize("search", ["paper", "sparse", "exact", *slow(*BEYOND[1:])])
def test_no_row_of_somebody_who_is_answered_is_scored_twice(search):
    scored = []

    def watched(frame):
        scored.append(frame)
        return score(frame)

    explainer = MCCE(watched, (0.9, 99.0), immutable=["sex"], search=search, random_state=0)
    explainer.set_params(ignore_relations=True).fit(bank(300))
    people, n_answered = bank(8, seed=2), 0
    for at in range(len(people)):
        scored.clear()
        result = explain(explainer, people.iloc[[at]])
        if len(result.frame):
            # The first call is about the person, the last one confirms the answer.
            rows = pd.concat(scored[1:-1]).astype(str)
            assert len(rows) == result.n_evaluated
            assert not rows.duplicated().any()
            n_answered += 1

    assert n_answered >= 3


def reason_seekers():
    """People whose valid draws all change too much, and how many rows were scored for them."""
    recorder, people = Recorder(), asking(30)
    explainer = fitted(recorder, bounded(max_sparsity=0))
    return explainer, people[score(people) < 0.9], recorder.n_rows


def test_the_papers_search_can_be_stopped_while_it_looks_for_reasons():
    explainer, people, n_rows = reason_seekers()
    whole = explain(explainer, people)
    n_all = n_rows.total()
    n_rows.clear()

    stopped = explain(explainer, people, callback=lambda progress: progress.n_evaluated > 0)

    assert stopped.stopped
    assert n_rows.total() < n_all / 2
    same = stopped.people["reason"] == whole.people["reason"]
    assert (stopped.people["reason"][~same] == STOPPED).all()
    assert 0 < same.sum() < len(people)


def test_the_papers_search_keeps_to_its_seconds_while_it_looks_for_reasons(monkeypatch):
    explainer, people, n_rows = reason_seekers()
    # Each scored row takes a second.
    monkeypatch.setattr(time, "monotonic", lambda: float(n_rows.total()))

    result = explain(explainer.set_params(max_seconds=2_000), people)

    assert result.stopped
    assert n_rows.total() <= 2 * 2_000
    assert (result.missing["reason"] == STOPPED).any()
    assert (result.missing["reason"] != STOPPED).any()


def test_excluded_draws_of_somebody_who_gets_an_answer_with_more_draws_are_not_scored():
    scored, recorder = [], Recorder()
    recorder.function = lambda frame: scored.append(frame) or score(frame)
    search = bounded(max_samples=800, max_sparsity=2)
    explainer, people = fitted(recorder, search, n_samples=20), asking(30)
    scored.clear()

    result = explain(explainer, people)

    answered = result.frame["person"]
    rows = pd.concat(scored).set_index("person").astype(object)
    rows = rows[rows.index.isin(answered)]
    own = people.set_index("person").astype(object).loc[rows.index]
    changed = (rows != own) & ~(rows.isna() & own.isna())
    assert len(answered)
    assert (changed.sum(axis=1) <= 2).all()


class Fickle(Recorder):
    """A predictor that refuses some rows, or all, the second time that it sees them."""

    def __init__(self, refused=()):
        super().__init__()
        self.refused, self.refuses_all, self.seen = set(refused), False, set()

    def __call__(self, frame):
        self.n_rows.update(frame["person"].tolist())
        rows = texts(frame)
        again = [row in self.seen and (self.refuses_all or row in self.refused) for row in rows]
        self.seen.update(rows)
        return np.where(again, 0.0, score(frame))


def with_one_taken_back(search, rank, callback=None, n_counterfactuals=3):
    """Answers of a predictor that keeps its word, and of one that takes those of a rank back."""
    predictor, people = Fickle(), asking(20)
    explainer = fitted(predictor, search, n_counterfactuals=n_counterfactuals)
    stable = explain(explainer, people)
    predictor.refused = set(texts(stable.frame[stable.frame.index.get_level_values(1) == rank]))
    predictor.seen.clear()
    result = explain(explainer, people, callback=callback)
    assert predictor.refused.isdisjoint(texts(result.frame))
    assert result.n_unstable > 0
    return stable.frame["person"].value_counts(), result


@pytest.mark.parametrize("most", [3, 5, 12])
@pytest.mark.parametrize("rank", [1, 2])
def test_an_answer_taken_back_costs_nobody_the_others(most, rank):
    search = Search("sparse", max_evaluations=most)

    before, result = with_one_taken_back(search, rank)

    after = result.frame["person"].value_counts().reindex(before.index, fill_value=0)
    assert (after >= before - (before >= rank)).all()
    ranks = result.frame.index.get_level_values(1)
    assert (result.frame.groupby("person").cumcount() + 1 == ranks).all()
    lost = result.people["reason"][(after[after == 0]).index - 1000]
    assert lost.str.contains("in the final c").all()


@pytest.mark.parametrize("name", ["balanced", "plausible"])
def test_a_search_after_an_answer_was_taken_back_remembers_what_was_scored(name):
    search = Search(name, max_evaluations=6)

    before, result = with_one_taken_back(search, 1, n_counterfactuals=1)

    assert result.frame["person"].tolist() == sorted(before.index)


def test_a_stop_costs_nobody_the_answers_that_were_confirmed():
    stop = lambda progress: progress.n_settled == progress.n_factuals

    before, result = with_one_taken_back("paper", 2, callback=stop)

    after = result.frame["person"].value_counts().reindex(before.index, fill_value=0)
    assert result.stopped
    assert (after >= before - (before >= 2)).all()


@pytest.mark.parametrize("search", ["paper", "sparse", "exact"])
def test_a_predictor_that_refuses_everything_the_second_time_ends_the_search(search):
    predictor = Fickle()
    explainer = fitted(predictor, search, n_counterfactuals=3)
    predictor.refuses_all, reports = True, []
    predictor.seen.clear()
    people = asking(5)

    result = explain(explainer, people, callback=reports.append)

    assert result.frame.empty
    assert result.missing["reason"].str.contains("in the final c").all()
    assert predictor.n_rows.total() < 5 * 5_000
    assert len(reports) < 1_000


STAGES = {
    "paper": {"search": bounded(max_samples=400, max_sparsity=2), "n_samples": 20},
    "near": {"search": Search("near", max_distance=0.05)},
    "exact": {"search": "exact", "max_seconds": 1e6},
}


@pytest.mark.parametrize("stages", STAGES)
def test_progress_counts_the_rows_of_all_stages(stages):
    heard, predictor, people = [], Fickle(), asking(12)
    explainer = fitted(predictor, **STAGES[stages])
    predictor.refuses_all = True
    predictor.seen.clear()

    result = explain(explainer, people, callback=heard.append)

    assert heard[-1].n_evaluated == result.n_evaluated


@pytest.mark.parametrize("stages", STAGES)
def test_nobody_who_said_stop_is_called_again(stages):
    n_calls = []

    def stop_at_once(progress):
        n_calls.append(progress)
        return True

    result = explain(fitted(Recorder(), **STAGES[stages]), asking(12), callback=stop_at_once)

    assert result.stopped
    assert len(n_calls) == 1
