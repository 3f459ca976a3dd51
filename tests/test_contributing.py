"""The examples in CONTRIBUTING.md run."""

from __future__ import annotations

import re
import sys
import types
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[1] / "CONTRIBUTING.md"
SECTIONS = re.findall(
    r"^### (.+?)$(?:(?!^###).)*?^```python\n(.*?)^```$",
    GUIDE.read_text(encoding="utf-8"),
    re.M | re.S,
)


def test_a_generator_a_distance_and_an_explainer_are_shown():
    assert [title for title, _ in SECTIONS] == ["A generator", "A distance", "An explainer"]


@pytest.mark.parametrize("code", [pytest.param(code, id=title) for title, code in SECTIONS])
def test_an_example_of_the_guide_passes_its_own_check(code, monkeypatch):
    module = types.ModuleType("guide")
    monkeypatch.setitem(sys.modules, "guide", module)  # so that its classes can be pickled

    exec(compile(code, "guide", "exec"), vars(module))

    assert any(name.startswith("check_") for name in vars(module))
