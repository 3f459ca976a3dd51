"""Tables of many columns, of which the predictor looks at few."""

import numpy as np
import pandas as pd
import pytest

from mcce import MCCE
from mcce.candidates import Lookup
from mcce.plausibility.changed import ChangedRows
from mcce.search.replies import Led, Replies
from mcce.search.visited import WalkSettings, leading_units
from mcce.tables.schema import OWN

P, N_TRAIN, IMMUTABLE = 60, 700, ["x03", "x17"]


def wide_table(n_rows):
    """Columns that six hidden factors explain: numbers, some missing, and levels."""
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(6, n_rows))
    columns = {}
    for at in range(P):
        hidden = factors[at % 6] + 0.6 * rng.normal(size=n_rows)
        if at % 7 == 3:
            columns[f"x{at:02d}"] = pd.Categorical(
                np.array(list("abcd"))[np.digitize(hidden, [-1, 0, 1])]
            )
        elif at % 7 == 5:
            columns[f"x{at:02d}"] = np.where(rng.random(n_rows) < 0.1, np.nan, hidden.round(1))
        else:
            columns[f"x{at:02d}"] = hidden.round(1)
    return pd.DataFrame(columns)


def score(rows):
    total = rows["x02"] + rows["x07"] - rows["x13"] + 0.8 * (rows["x10"] == "d") - 0.8
    return 1 / (1 + np.exp(-total.to_numpy(np.float64)))


@pytest.fixture(scope="module", params=["balanced", "sparse"])
def explained(request):
    rows = wide_table(N_TRAIN + 200)
    train, others = rows.head(N_TRAIN), rows.iloc[N_TRAIN:]
    people = others[score(others) < 0.4].head(20).reset_index(drop=True)
    explainer = MCCE(
        score, (0.5, 1), immutable=IMMUTABLE, search=request.param, random_state=0
    ).fit(train)
    return explainer, people, explainer.explain(people)


def test_few_rows_are_scored_and_answers_are_valid(explained):
    _, people, result = explained

    assert (result.people["status"] == "answered").all()
    assert (score(result.frame) >= 0.5).all()
    assert result.n_evaluated <= 15 * len(people)
    assert result.measures["sparsity"].mean() <= 2.5
    own = people.iloc[result.owner].reset_index(drop=True)
    assert result.frame[IMMUTABLE].reset_index(drop=True).equals(own[IMMUTABLE])


def test_answers_do_not_depend_on_who_else_is_explained(explained):
    explainer, people, result = explained

    alone = explainer.explain(people.iloc[[3]])
    reverse = explainer.explain(people.iloc[::-1])

    expected = result.frame[result.owner == 3]
    assert alone.frame.reset_index(drop=True).equals(expected.reset_index(drop=True))
    rows = [reverse.frame[reverse.owner == at] for at in range(len(people))[::-1]]
    assert pd.concat(rows).reset_index(drop=True).equals(result.frame.reset_index(drop=True))


def test_what_leads_is_what_the_surrogate_looks_at(explained):
    explainer, _, _ = explained
    schema, surrogate = explainer.fitted_.schema, explainer.fitted_.surrogate
    units = np.eye(schema.mutable.size, dtype=bool)

    led = Led(surrogate, Replies(*np.zeros((2, 0), dtype=np.int64)))
    leading = leading_units(WalkSettings(None, (), None, units, 0, led=led), schema)
    names = {schema.names[at] for at in schema.mutable[leading]}

    assert {"x02", "x07", "x13"} <= names
    assert len(names) <= 32
    assert leading_units(WalkSettings(None, (), None, units, 0), schema).all()


def test_plausibility_of_changed_rows_is_that_of_whole_rows(explained):
    explainer, people, _ = explained
    rows, model = explainer.fitted_.schema.encode(people), explainer.fitted_.plausibility
    rng, n = np.random.default_rng(1), 300
    owner, mutable = rng.integers(len(people), size=n), rows.schema.mutable
    n_codes = np.array([[rows.schema.features[at].n_codes] for at in mutable])
    codes = rng.integers(n_codes, size=(mutable.size, n)).astype(np.int32)
    codes[rng.random(codes.shape) > rng.choice([0.02, 0.3], n)] = OWN
    lookup, known = Lookup(rows, rows.tables), ChangedRows(model, rows)
    given = lookup.descent(owner, codes), lookup.numbers(owner, codes)

    expected = model.assess(*given)
    for some in (slice(0, 100), slice(100, 300)):
        part = given[0][:, some], given[1][:, some]
        found = known.assess(owner[some], codes[:, some] != OWN, *part)
        assert np.array_equal(found.p_value, expected.p_value[some])
        assert np.array_equal(found.strangeness, expected.strangeness[some])
