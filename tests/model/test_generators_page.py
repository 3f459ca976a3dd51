"""The page of generators lists every parameter of each, with its default."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from mcce import CTGAN, MADE, GaussianCopula

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "generators.md"
SECTIONS = {
    "Gaussian copula": GaussianCopula,
    "Masked autoregressive network": MADE,
    "Conditional GAN": CTGAN,
}


@pytest.mark.parametrize("title", SECTIONS)
def test_the_page_lists_every_parameter_with_its_default(title):
    _, *parts = re.split(r"^## (.+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    section = dict(zip(parts[::2], parts[1::2], strict=True))[title]

    listed = dict(re.findall(r"^\| `(\w+)` \| `(.+?)` \|", section, flags=re.MULTILINE))

    parameters = inspect.signature(SECTIONS[title]).parameters.values()
    expected = {parameter.name: parameter.default for parameter in parameters}
    assert {name: ast.literal_eval(cell) for name, cell in listed.items()} == expected
