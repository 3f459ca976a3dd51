"""German Credit, the data set of the package."""

from __future__ import annotations

import hashlib
from importlib.resources import files

from mcce.datasets import load_german_credit


def test_german_credit_is_the_file_its_card_describes():
    german = load_german_credit()
    content = files("mcce.datasets").joinpath("german_credit.csv.gz").read_bytes()

    assert hashlib.sha256(content).hexdigest() == german.card["sha256"]
    assert len(german.features) == len(german.target) == german.card["rows"]
    assert german.target.value_counts().to_dict() == german.card["target_counts"]
    assert german.features.shape[1] == 20
    assert german.features.select_dtypes("number").shape[1] == 7
    assert set(german.immutable) <= set(german.features.columns)
    assert german.desired in set(german.target)


def test_categories_have_the_declared_levels_in_their_order():
    german = load_german_credit()
    features = german.features

    declared = {c["name"]: c["levels"] for c in german.card["columns"] if "levels" in c}
    for name in features.select_dtypes("category"):
        assert features[name].cat.categories.tolist() == declared[name] == sorted(declared[name])
        assert not features[name].cat.ordered
    assert features.select_dtypes(exclude=["category", "int64"]).empty
