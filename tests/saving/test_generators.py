"""Generators that are not part of mcce in saved files."""

from __future__ import annotations

import pandas as pd
import pytest

from bank import default_risk
from mcce import MCCE, ParameterError, SavedFileError, TreeChain, load
from mcce.protocols import Capabilities


@pytest.fixture
def path(tmp_path):
    return tmp_path / "explainer.mcce"


class Mine(TreeChain):
    """A generator that is not part of mcce but can be saved."""


class Unsavable(TreeChain):
    capabilities = Capabilities()


class Careless(TreeChain):
    def to_arrays(self):
        return {"when": [1, object()]}


@pytest.mark.parametrize(
    ("generator", "named"),
    [
        (Unsavable(), "the generator Unsavable: .* the capability 'saving'"),
        (Careless(), r"Careless\['when'\]\[1\] of to_arrays"),
    ],
)
def test_a_generator_that_cannot_be_saved_is_named_and_nothing_is_written(
    bank, path, generator, named
):
    explainer = MCCE(default_risk, (0, 0.1), generator=generator, random_state=0).fit(bank)

    with pytest.raises(SavedFileError, match="Cannot save " + named):
        explainer.save(path)

    assert list(path.parent.iterdir()) == []


def test_a_generator_of_your_own_is_loaded_into_a_new_instance(bank, path):
    explainer = MCCE(default_risk, (0, 0.1), generator=Mine(max_depth=3), random_state=0).fit(bank)
    explainer.save(path)

    loaded = load(path, default_risk, generator=Mine(max_depth=3))

    assert type(loaded.generator_) is Mine
    people = bank.head(20)
    pd.testing.assert_frame_equal(loaded.explain(people).frame, explainer.explain(people).frame)


@pytest.mark.parametrize("given", [None, TreeChain()])
def test_a_file_with_a_custom_generator_names_the_one_it_needs(bank, path, given):
    MCCE(default_risk, (0, 0.1), generator=Mine(), random_state=0).fit(bank).save(path)

    with pytest.raises(ParameterError, match=r"saved with the generator Mine.*generator=Mine\(\)"):
        load(path, default_risk, generator=given)


def test_a_generator_is_refused_for_a_file_that_needs_none(bank, path):
    MCCE(default_risk, (0, 0.1), random_state=0).fit(bank).save(path)

    with pytest.raises(ParameterError, match=r"Leave generator out"):
        load(path, default_risk, generator=Mine())
