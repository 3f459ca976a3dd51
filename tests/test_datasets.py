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


def test_german_credit_has_the_paper_s_form():
    german = load_german_credit()

    assert german.features.shape[1] == 20
    assert german.features.select_dtypes("number").shape[1] == 7
    assert set(german.immutable) <= set(german.features.columns)
    assert german.desired in set(german.target)


def test_the_card_names_source_licence_and_cautions():
    card = load_german_credit().card

    assert "10.24432/C5NC77" in card["attribution"]
    assert card["licence"] == "CC BY 4.0"
    assert "wrong" in card["caution"]
