"""The page of searches lists the constants as they are in the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import mcce

PAGE = Path(__file__).resolve().parents[2] / "docs/search_methods.md"


def constants():
    """The names in capitals in the modules of searches, with their values."""
    found = {}
    for path in (Path(mcce.__file__).parent / "search").glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(node, ast.Assign):
                continue
            (target,), value = node.targets, node.value
            several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple)
            pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]
            for name, given in pairs:
                if isinstance(name, ast.Name) and name.id.isupper():
                    found[name.id] = ast.unparse(given)
    return found


def test_constants_on_the_page_are_those_of_the_code():
    code = constants()
    rows = re.findall(r"^\| `([A-Z_]+)` \| ([^|]+?) \|", PAGE.read_text(encoding="utf-8"), re.M)

    shown = dict(rows)

    assert len(shown) > 25
    assert shown == {name: code.get(name, "not in the code") for name in shown}
