"""The pages of generators list every parameter with its default, the API page every part."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import mcce
from mcce import (
    CTGAN,
    MADE,
    ForestChain,
    GaussianCopula,
    InferenceTreeChain,
    PrivateTrees,
    TreeChain,
    privacy,
)
from mcce.distances.registry import DISTANCES
from mcce.model.registry import GENERATORS

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "user_guide"
SECTIONS = {
    ("generators.md", "Trees"): TreeChain,
    ("generators.md", "Random forests"): ForestChain,
    ("generators.md", "Conditional inference trees"): InferenceTreeChain,
    ("generators.md", "Gaussian copula"): GaussianCopula,
    ("generators.md", "Masked autoregressive network"): MADE,
    ("generators.md", "Conditional GAN"): CTGAN,
    ("private.md", "Parameters"): PrivateTrees,
}


@pytest.mark.parametrize(("page", "title"), SECTIONS)
def test_a_page_lists_every_parameter_of_a_generator_with_its_default(page, title):
    text = (GUIDE / page).read_text(encoding="utf-8")
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    section = dict(zip(parts[::2], parts[1::2], strict=True))[title]

    listed = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", section, flags=re.MULTILINE))

    parameters = inspect.signature(SECTIONS[page, title]).parameters.values()
    expected = {parameter.name: parameter.default for parameter in parameters}
    assert {name: ast.literal_eval(cell) for name, cell in listed.items()} == expected


def test_the_api_page_names_every_generator_distance_and_audit():
    text = (GUIDE.parent / "api" / "index.md").read_text(encoding="utf-8")

    named = {name.rpartition(".")[2] for name in re.findall(r"`([\w.]+)`", text)}

    parts = [*GENERATORS.values(), *DISTANCES.values()]
    expected = {part.__name__ for part in parts} | set(privacy.__all__)
    assert expected <= named
    assert {part.__name__ for part in parts} <= set(mcce.__all__)
