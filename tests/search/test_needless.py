"""No search but the paper's returns a change that could be undone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from bank import bank, score
from every_row import drawable
from mcce import MCCE, Search, TreeChain
from mcce import constraints as c
from mcce.constraints.collection import Constraints
from mcce.search.config import find_search
from mcce.tables.schema import OWN
from searches import explain

TRAIN, PEOPLE = bank(300, seed=3), bank(25, seed=4)
RULES = [
    c.only_up("salary"),
    c.change("age", at_most=5),
    c.max_changes(3),
    c.together("salary", "years"),
    c.relation("works from 16 on", "years <= age - 16"),
    c.step("salary", 7),
]


def undone(codes, constraints):
    """Rows with one change less; what must change together is undone together."""
    names = [constraints.schema.names[at] for at in constraints.schema.mutable]
    linked = [{*rule.features} for rule in constraints.of_rows if rule.kind == "together"]
    for at in np.flatnonzero(codes != OWN):
        unit = next((some for some in linked if names[at] in some), {names[at]})
        fewer = np.where(np.isin(names, [*unit]), OWN, codes)
        if (fewer != OWN).any():
            yield fewer


def good(explainer, rows, person, codes, constraints):
    """Whether a row has the decision, obeys the rules, and is as plausible as required."""
    search = find_search(explainer.search)
    frame = rows.compose(np.array([person]), codes[:, None], rows.tables)
    if score(frame)[0] < 0.9:
        return False
    if any(broken[0] for broken in constraints.broken(rows, np.array([person]), frame).values()):
        return False
    encoded = explainer.schema_.encode(frame)
    if search.copies != "allow" and not (encoded.exact < 0).any():
        known = explainer.schema_.encode(TRAIN).exact
        if (known == encoded.exact).all(axis=0).any():
            return False
    if not isinstance(search, Search):
        # What this search requires is that the model could draw the row.
        return bool(drawable(explainer, rows, person, codes[:, None])[0])
    if not search.min_plausibility:
        return True
    model = explainer.plausibility_
    both = [model.assess(r.descent, r.all_numbers) for r in (encoded, rows)]
    p_value, strangeness = both[0].p_value[0], both[0].strangeness[0]
    return p_value >= search.min_plausibility or strangeness <= both[1].strangeness[person]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sparse", "near", "balanced", "plausible", "fast", "exact"])
@given(
    st.lists(st.sampled_from(RULES), max_size=3, unique_by=lambda rule: rule.kind),
    st.integers(1, 3),
    st.integers(0, 10**6),
)
@settings(max_examples=6, phases=[Phase.explicit, Phase.generate])
def test_undoing_a_change_loses_the_decision_a_rule_or_plausibility(name, rules, n_wanted, seed):
    people = PEOPLE.copy()
    people["salary"] += 0.25 * (seed % 3)  # numbers that training never held
    explainer = MCCE(
        score,
        (0.9, 9),
        immutable=["sex"],
        constraints=rules or None,
        search=name,
        ignore_relations=True,
        n_counterfactuals=n_wanted,
        generator=TreeChain(min_samples_leaf=1 + seed % 4),
        random_state=seed % 7,
    ).fit(TRAIN)
    result = explain(explainer, people)

    rows = explainer.schema_.encode(people)
    constraints = Constraints.bind(rules, explainer.schema_)
    cells = result.frame.set_axis(range(len(result.frame)))
    for at, person in enumerate(result.owner):
        own, answer = people.iloc[[person]], cells.iloc[[at]]
        codes = changes_of(explainer.schema_, own, answer)
        for fewer in undone(codes, constraints):
            assert not good(explainer, rows, person, fewer, constraints)


def changes_of(schema, own, answer):
    """The codes of an answer, those that are the person's own marked as such."""
    encoded = schema.encode(pd.concat([own, answer], ignore_index=True))
    mine, new = encoded.frame.iloc[0], encoded.frame.iloc[1]
    codes = encoded.exact[schema.mutable, 1]
    names = [schema.names[at] for at in schema.mutable]
    same = [
        mine[name] == new[name] or (pd.isna(mine[name]) and pd.isna(new[name])) for name in names
    ]
    return np.where(same, np.int32(OWN), codes)


def test_guided_draws_change_no_more_than_needed_in_a_table_of_many_numbers():
    """Leaves of a few rows seldom hold an own number, so most draws change nearly everything."""
    chance = np.random.default_rng(0)
    table = pd.DataFrame(chance.normal(size=(600, 12)).round(2)).add_prefix("x")

    def box(frame):
        return frame["x0"] + frame["x1"]

    explainer = MCCE(box, (1.5, 99), search="fast", random_state=0).fit(table)
    people = pd.DataFrame(chance.normal(size=(20, 12)).round(3)).add_prefix("x")

    result = explain(explainer, people)

    assert len(result.frame)
    assert result.measures["sparsity"].max() <= 2
