"""The page of parameters: every parameter with its default, and no other."""

import ast
import inspect
import re
from pathlib import Path

import pytest

from mcce import MCCE, ExactSearch, Search, TreeChain
from mcce.search.config import PRESETS

GUIDE = Path(__file__).resolve().parents[1] / "docs" / "user_guide"
PAGE = GUIDE / "parameters.md"
REQUIRED = "required"


def sections(text):
    """The text below each heading of the second level, by heading."""
    _, *parts = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)
    return dict(zip(parts[::2], parts[1::2], strict=True))


def listed(section):
    """The default of each parameter in the tables of a section, by name."""
    rows = re.findall(r"^\| `(\w+)` \| (.+?) \|", section, flags=re.MULTILINE)
    assert len(rows) == len(dict(rows)), "a parameter is listed twice"
    return {name: cell if cell == REQUIRED else literal(cell) for name, cell in rows}


def literal(cell):
    return ast.literal_eval(cell.removeprefix("`").removesuffix("`"))


def defaults(kind):
    """The default of each parameter in a signature, by name."""
    parameters = inspect.signature(kind).parameters.values()
    return {
        parameter.name: REQUIRED if parameter.default is parameter.empty else parameter.default
        for parameter in parameters
    }


@pytest.mark.parametrize("kind", [MCCE, Search, ExactSearch, TreeChain])
def test_the_page_lists_every_parameter_with_its_default_and_no_other(kind):
    section = sections(PAGE.read_text(encoding="utf-8"))[kind.__name__]

    assert listed(section) == defaults(kind)


def test_the_page_describes_nothing_else():
    names = {kind.__name__ for kind in (MCCE, Search, ExactSearch, TreeChain)}

    assert sections(PAGE.read_text(encoding="utf-8")).keys() == names


def test_a_wrong_default_is_noticed():
    section = "| `n_samples` | `7` | draws | never |\n"

    assert listed(section) == {"n_samples": 7} != {"n_samples": defaults(Search)["n_samples"]}


def test_the_page_of_searches_says_which_plausibility_each_requires():
    text = (GUIDE / "searches.md").read_text(encoding="utf-8")

    rows = re.findall(r'^\| [^|]+ \| `"(\w+)"`[^|]* \| (none|\.\d+) \|', text, flags=re.MULTILINE)

    required = {name: getattr(search, "min_plausibility", 0) for name, search in PRESETS.items()}
    assert {name: 0 if cell == "none" else float(cell) for name, cell in rows} == required
