"""Random tables, black boxes, rules and searches: every answer keeps every promise.

A table, a rule or a search may be refused with an error of ours. Whatever is answered is checked by
code of the tests' own, and a part is explained again in other company.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import mcce
from fuzz_child import examples, few_or_many
from fuzz_tables import (
    as_pandas,
    cells_of,
    changed,
    exact,
    is_missing,
    meaning,
    number,
    take,
    wide_cases,
)
from mcce import McceError


def table(result_table):
    """A table about a result in pandas, with its labels as columns."""
    frame = as_pandas(result_table)
    return frame.reset_index() if isinstance(result_table, pd.DataFrame) else frame


def check_people(case, result):
    """Nobody is lost: one row each, with an answer, the decision already, or a reason."""
    people = table(result.people)
    status, reason = people["status"].to_numpy(), people["reason"].to_numpy()
    n_answers = np.bincount(result.owner, minlength=len(people))
    assert len(people) == len(case.people)
    assert set(status) <= {"answered", "already desired", "no answer"}
    assert np.array_equal(status == "already desired", case.box.accepts(case.given_people))
    assert np.array_equal(status == "answered", n_answers > 0)
    assert people["n_counterfactuals"].tolist() == n_answers.tolist()
    assert [bool(text) for text in reason] == (status == "no answer").tolist()
    assert n_answers.max(initial=0) <= case.settings["n_counterfactuals"]
    assert (np.diff(result.owner) >= 0).all()
    ranks = table(result.measures)["rank"].tolist()
    assert ranks == [rank for n in n_answers for rank in range(1, n + 1)]


def check_answers(case, result):
    """Each answer is valid, allowed, new, and its measures are right."""
    before = [cells_of(case.people)[owner] for owner in result.owner]
    after = cells_of(as_pandas(result.frame))
    measures, names = table(result.measures), list(case.train.columns)
    known = [
        {meaning(cell) for cell in column} for column in zip(*cells_of(case.train), strict=True)
    ]
    rows = result.frame.to_numpy() if isinstance(case.given_train, np.ndarray) else result.frame
    assert case.box.accepts(rows).all()
    if case.box.kind == "score":
        assert measures["score"].tolist() == case.box.score(rows).tolist()
    spreads = [spread(case, at) for at in range(len(names))]
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        moved = [changed(old, new, at) for at in range(len(names))]
        for at, name in enumerate(names):
            assert moved[at] or exact(old[at]) == exact(new[at])
            assert not moved[at] or name not in case.immutable
            assert not moved[at] or meaning(new[at]) in known[at]
        for rule in case.rules:
            assert rule.holds(old, new), rule.constraint
        gaps = [gap(*pair) for pair in zip(old, new, moved, spreads, strict=True)]
        assert measures["sparsity"][place] == sum(moved)
        assert np.isclose(measures["gower"][place], np.mean(gaps), rtol=1e-9, atol=1e-12)
    own = {(owner, *map(meaning, new)) for owner, new in zip(result.owner, after, strict=True)}
    assert len(own) == len(after)
    search = case.settings["search"]
    assert (measures["sparsity"] <= (search.max_sparsity or np.inf)).all()
    assert (measures["gower"] <= (search.max_distance or np.inf)).all()
    if search.copies == "never":
        copies = {tuple(map(meaning, row)) for row in cells_of(case.train)}
        assert not copies & {tuple(map(meaning, new)) for new in after}


def spread(case, at):
    """The range of a column of numbers in training; 0 if it has none."""
    known = [number(cell) for cell in case.train.iloc[:, at].astype(object)]
    known = [float(value) for value in known if value is not None]
    return max(known) - min(known) if case.numeric[at] and known else 0.0


def gap(old, new, moved, spread):
    """Gower's gap between two cells."""
    if spread == 0 or is_missing(old) or is_missing(new):
        return float(moved)
    return abs(float(number(new)) - float(number(old))) / spread


def check_shape(case, result):
    """Kind of frame, columns, dtypes and labels are the people's own."""
    model = case.people if isinstance(case.given_people, np.ndarray) else case.given_people
    assert type(result.frame) is type(model)
    if isinstance(model, pd.DataFrame):
        assert result.frame.dtypes.tolist() == model.dtypes.tolist()
        assert list(result.frame.columns) == list(model.columns)
        labels = model.index.to_flat_index()
        assert result.people.index.tolist() == labels.tolist()
        factual = result.frame.index.get_level_values("factual").tolist()
        assert factual == labels.take(result.owner).tolist()
    else:
        assert result.frame.schema == model.schema


def fates(result, places):
    """What became of the people at these places."""
    people, cells = table(result.people), cells_of(as_pandas(result.frame))
    measures = table(result.measures).drop(columns="factual", errors="ignore")
    measures = measures.drop(columns=[n for n in measures if str(n).startswith("level_")])
    shown = people[["status", "reason", "score"]].to_numpy(object).tolist()
    rows = [repr((cells[at], measures.iloc[at].tolist())) for at in range(len(cells))]
    mine = [np.flatnonzero(result.owner == place) for place in places]
    return [repr(shown[p]) + "".join(rows[i] for i in m) for p, m in zip(places, mine, strict=True)]


def check_company(case, explainer, result, chance, folder):
    """The same answers in another order, alone, in blocks, in threads, refitted and loaded."""
    everybody = range(len(case.people))
    order = chance.permutation(len(case.people))[:10].tolist()
    expected = fates(result, order)
    assert fates(explainer.explain(take(case.given_people, order)), range(len(order))) == expected
    assert fates(explainer.explain(take(case.given_people, order[:1])), [0]) == expected[:1]
    how = chance.integers(3)
    if how == 0:
        explainer.set_params(n_jobs=2, memory=0.01)
    elif how == 1:
        order = chance.permutation(len(case.train)).tolist()
        explainer = case.explainer(n_jobs=2).fit(take(case.given_train, order))
    elif not any(callable(getattr(rule.constraint, "holds", None)) for rule in case.rules):
        try:
            explainer.save(folder / "explainer.mcce")
            explainer = mcce.load(folder / "explainer.mcce", case.box.predictor)
        except McceError:
            return
    assert fates(explainer.explain(case.given_people), everybody) == fates(result, everybody)


@few_or_many
@pytest.mark.filterwarnings("ignore")
def test_every_answer_about_any_table_keeps_every_promise(share, tmp_path):
    outcomes = []

    @examples(share, 0.6)
    @given(wide_cases(), st.integers(0, 2**32 - 1))
    def check(case, seed):
        inputs = repr((cells_of(case.train), cells_of(case.people)))
        said = None
        try:
            explainer = case.explainer().fit(case.given_train)
            result = explainer.explain(case.given_people)
        except McceError as error:
            said = str(error)
        if said is not None:
            outcomes.append(said)
            assert 15 < len(said) < 4000
            return
        check_people(case, result)
        check_shape(case, result)
        check_answers(case, result)
        check_company(case, explainer, result, np.random.default_rng(seed), tmp_path)
        assert repr((cells_of(case.train), cells_of(case.people))) == inputs
        outcomes.append(len(result.owner))

    check()

    answered = [n for n in outcomes if isinstance(n, int) and n > 0]
    assert share == "few" or len(answered) > len(outcomes) / 4, outcomes
