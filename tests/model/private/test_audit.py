"""Differential privacy, measured: 100,000 runs on two data sets that differ by one person.

Every event must have nearly the same probability for both, by the budget and three standard errors.
A build with half the noise must not pass.
"""

import pytest

from audits import audit_approximate, audit_pure, halve_the_noise, neighbours, outcomes
from mcce.model.private.ledger import Budget, allocate, rho_of

N_RUNS = 100_000
RELATIONS = ("add_remove", "replace")
EPSILON, DELTA = 1.0, 1e-3


def observed(budget, relation):
    # Random splits are the same for both, as nothing of the rows decides on them.
    seeds = (11, 12) if budget.level else (11, 11)
    return [
        outcomes(bins, budget, relation, N_RUNS, seed)
        for bins, seed in zip(neighbours(relation), seeds, strict=True)
    ]


def broken_by_pure(structure, relation):
    budget = allocate(Budget(EPSILON, "geometric", relation), structure, 2)
    return audit_pure(*observed(budget, relation), EPSILON)


def broken_by_gaussian(structure, relation):
    rho = rho_of(2 * EPSILON, DELTA)
    budget = allocate(Budget(rho, "gaussian", relation), structure, 2)
    return audit_approximate(*observed(budget, relation), 2 * EPSILON, DELTA)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_no_event_tells_more_of_a_person_than_epsilon(structure, relation):
    assert not broken_by_pure(structure, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_half_the_noise_is_noticed(structure, relation, monkeypatch):
    halve_the_noise(monkeypatch)

    assert broken_by_pure(structure, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_gaussian_noise_tells_no_more_than_epsilon_and_delta(structure, relation):
    assert not broken_by_gaussian(structure, relation)


@pytest.mark.parametrize("relation", RELATIONS)
@pytest.mark.parametrize("structure", ["random", "expmech"])
def test_half_the_gaussian_noise_is_noticed(structure, relation, monkeypatch):
    halve_the_noise(monkeypatch)

    assert broken_by_gaussian(structure, relation)
