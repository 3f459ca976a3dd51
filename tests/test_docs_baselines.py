"""The page of methods with networks: every parameter with its default and the paper's value."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from mcce import baselines

PAGE = Path(__file__).resolve().parents[1] / "docs" / "user_guide" / "baselines_deep.md"
SECTIONS = re.split(r"^### (\w+)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
TABLES = dict(zip(SECTIONS[::2], SECTIONS[1::2], strict=True))
ELSEWHERE = {"predictor", "desired", "immutable", "kinds", "random_state", "device"}
HALVES = "1, ½, ¼, … (10 values)"


def literal(cell):
    if cell == HALVES:
        return tuple(2.0**-power for power in range(10))
    return ast.literal_eval(cell.strip("`"))


@pytest.mark.parametrize("method", ["Wachter", "CEM", "CCHVAE", "REViSE", "CLUE", "CRUDS"])
def test_a_table_lists_every_parameter_with_its_default_and_the_paper_s_value(method):
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \| (.+?) \|", TABLES[method], flags=re.MULTILINE)
    kind = getattr(baselines, method)

    parameters = inspect.signature(kind).parameters
    defaults = {n: parameters[n].default for n in parameters if n not in ELSEWHERE}
    assert {name: literal(default) for name, default, _ in rows} == defaults
    assert {name: literal(paper) for name, _, paper in rows} == kind.PAPER


def test_the_page_describes_the_six_methods():
    assert sorted(TABLES) == ["CCHVAE", "CEM", "CLUE", "CRUDS", "REViSE", "Wachter"]
