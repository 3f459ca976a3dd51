"""The page of the baselines: every parameter with its default, and no other."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from mcce.baselines import FACE, NICE, GrowingSpheres, NearestUnlike

PAGE = Path(__file__).resolve().parents[2] / "docs" / "user_guide" / "baselines.md"
SHARED = {"predictor", "desired", "immutable", "kinds"}


@pytest.mark.parametrize("kind", [NearestUnlike, NICE, FACE, GrowingSpheres])
def test_the_page_lists_every_parameter_with_its_default_and_no_other(kind):
    text = PAGE.read_text(encoding="utf-8")

    section = text.split(f"### `{kind.__name__}`\n")[1].split("\n#")[0]
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \|", section, flags=re.MULTILINE)

    parameters = inspect.signature(kind).parameters
    assert set(parameters) >= SHARED
    defaults = {name: p.default for name, p in parameters.items() if name not in SHARED}
    assert {name: ast.literal_eval(cell) for name, cell in rows} == defaults
