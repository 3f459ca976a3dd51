"""Mutated files with good checksums are refused, or load and explain; ``make fuzz`` tries many."""

from __future__ import annotations

import pytest

from mutate_files import run_file, write_mutated
from saved_explainers import write_saved

N_PARTS = 4


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return write_saved(tmp_path_factory.mktemp("saved"))


def outcomes(saved, folder, seeds) -> dict[int, str]:
    names = sorted(saved)
    result = {}
    for seed in seeds:
        one, path = saved[names[seed % len(names)]], folder / "mutated.mcce"
        write_mutated(one.path, path, seed)
        result[seed] = run_file(path, one.predictor, one.people)
    return result


def test_a_mutated_file_is_refused_or_explains(saved, tmp_path):
    found = outcomes(saved, tmp_path, range(20))

    assert {seed: what for seed, what in found.items() if what.startswith("broken")} == {}
    assert {"refused", "explained"} <= set(found.values())


@pytest.mark.slow
@pytest.mark.parametrize("part", range(N_PARTS))
def test_many_mutated_files_are_refused_or_explain(saved, tmp_path, part):
    found = outcomes(saved, tmp_path, range(100 + part, 500, N_PARTS))

    assert {seed: what for seed, what in found.items() if what.startswith("broken")} == {}
    assert list(found.values()).count("explained") > len(found) / 10


def test_files_that_were_not_mutated_explain(saved):
    for name, one in saved.items():
        assert run_file(one.path, one.predictor, one.people) == "explained", name
