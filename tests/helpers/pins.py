"""What is pinned of an explainer, in words that do not depend on the names of the library.

Pinned answers must outlive renames. So the names of the library are spelled here and nowhere else
in these tests: when one changes, change it on the right-hand side here, and leave the pinned files
alone. ``python tests/golden/repin.py`` writes the golden answers anew, which is right only where
answers are meant to change.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from mcce import MCCE, Counterfactuals
from searches import bounded

# Left what the files say, right the names of today.
PARAMETERS = {
    "fewest": "max_sparsity",
    "nearest": "max_distance",
    "rank_by": "rank_by",
    "draws": "n_samples",
    "most_draws": "max_samples",
    "tolerance": "tolerance",
    "n_answers": "n_counterfactuals",
    "diversity": "diversity",
    "no_copies": "copies",
}
# Parameters that belong to the search.
OF_SEARCH = ("max_sparsity", "max_distance", "rank_by", "max_samples", "tolerance", "copies")
MEASURES = {
    "score": "score",
    "n_changes": "sparsity",
    "gower": "gower",
    "l1": "l1",
    "plausibility": "plausibility",
    "quantile": "knn_distance_quantile",
    "no_peers": "no_reference_group",
    "proven": "proven",
}
# Of the surrogate, and no part of what is pinned.
HOW_SURE = ["margin", "margin_steps", "robust", "margin_word"]
PEOPLE = {
    "status": "status",
    "score": "score",
    "n_answers": "n_counterfactuals",
    "unseen": "unseen_immutable",
    "miss_score": "nearest_score",
    "miss_changes": "nearest_sparsity",
    "miss_gower": "nearest_gower",
}
STATUS = {"answered": "answered", "desired": "already desired", "none": "no answer"}
# By which words a reason is known; the first that fits.
REASONS = {
    "no desired row": "no training row has",
    "proven": "proven",
    "scored excluded": "promising ones are excluded by",
    "excluded": "excluded by",
    "none scored valid": "and accepted none",
    "one scored not valid": "and did not accept it",
    "none scored": "none of them keeps",
    "nothing changes": "nothing to change",
    "stopped": "stopped",
}
ROBUSTNESS = {
    "valid": "valid",
    "margin": "margin",
    "stability": "stability",
    "partial": "partial",
    "minimal": "minimal",
    "n_asked": "n_evaluated",
}
RELAXED = {
    "lifted": "lifted",
    "kind": "kind",
    "answered": "answered",
    "n_changes": "sparsity",
    "gower": "gower",
}
LIFTED = {
    "fewest": "max_sparsity",
    "nearest": "max_distance",
    "plausibility": "min_plausibility",
    "copies": "copies",
}


def build(predictor: Any, desired: Any, search: Any, **settings: Any) -> MCCE:
    """An explainer; settings have the names of the files, or those that MCCE keeps."""
    named = {PARAMETERS.get(name, name): value for name, value in settings.items()}
    if named.pop("copies", False):
        named["copies"] = "never"
    of_search = {name: named.pop(name) for name in OF_SEARCH if name in named}
    if search == "exact":
        of_search.pop("max_samples", None)
    elif search != "paper":
        # The default margin has tests of its own.
        of_search.setdefault("margin", 0.0)
    if of_search:
        search = bounded(search, **of_search)
    return MCCE(predictor, desired, search=search, random_state=2023, **named)


def describe_result(result: Counterfactuals) -> list[dict[str, Any]]:
    """Everything in a result but its wall-clock: first the totals, then person by person."""
    n_features = result.frame.shape[1]
    assert (result.measures[MEASURES["l1"]] == result.measures["gower"] * n_features).all()
    cells: dict[tuple[Any, int], dict[str, Any]] = {}
    for line in result.changes().itertuples():
        cells.setdefault((line.factual, line.rank), {})[line.feature] = plain(line.after)
    answers: dict[Any, list[Any]] = {}
    for (person, rank), measures in zip(
        result.measures.index, _columns(result.measures, MEASURES, {"l1"}), strict=True
    ):
        answers.setdefault(person, []).append(measures | {"to": cells.get((person, rank), {})})
    totals = {"n_evaluated": result.n_evaluated, "n_unstable": result.n_unstable}
    described = [totals | {"stopped": result.stopped}]
    reasons = result.people["reason"]
    for label, reason, person in zip(
        result.people.index, reasons, _columns(result.people, PEOPLE), strict=True
    ):
        person["status"] = _known(STATUS, person["status"])
        person = {"person": plain(label)} | {k: v for k, v in person.items() if v not in (None, "")}
        if reason:
            person["reason"] = describe_reason(reason)
        if label in result.nearest_misses.index:
            miss, own = result.nearest_misses.loc[label], result.factuals.loc[label]
            pairs = {name: (plain(miss[name]), plain(own[name])) for name in miss.index}
            person["miss"] = {name: new for name, (new, old) in pairs.items() if new != old}
        if label in answers:
            person["answers"] = answers[label]
        described.append(person)
    return described


def describe_reason(reason: str) -> list[Any]:
    """The kind of a reason and the numbers in it, by size."""
    kind = next(kind for kind, words in REASONS.items() if words in reason.lower())
    return [kind, *sorted(float(number) for number in re.findall(r"\d+(?:\.\d+)?", reason))]


def describe_robustness(described: pd.DataFrame) -> list[dict[str, Any]]:
    """How firmly answers stand, line by line."""
    lines = _columns(described, ROBUSTNESS)
    return [{"of": list(key)} | line for key, line in zip(described.index, lines, strict=True)]


def describe_relaxed(described: pd.DataFrame) -> list[dict[str, Any]]:
    """What would have to be lifted, line by line."""
    lines = _columns(described, RELAXED)
    for person, line in zip(described["factual"], lines, strict=True):
        line |= {"person": plain(person)}
        if line["lifted"] in LIFTED.values():
            line["lifted"] = _known(LIFTED, line["lifted"])
    return lines


def plain(cell: Any) -> Any:
    """A cell as JSON has it, None if it is missing."""
    if pd.isna(cell):
        return None
    cell = cell.item() if hasattr(cell, "item") else cell
    return cell if isinstance(cell, (bool, int, float, str)) else str(cell)


def written(lines: Iterable[Any]) -> str:
    """One line of JSON each, floats in full."""
    texts = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    return "".join(f"{text}\n" for text in texts)


def write_pins(path: Path, blocks: dict[str, Iterable[Any]]) -> None:
    """Write a file anew, a line with the name of each block before its lines."""
    texts = (written([name, *lines]) for name, lines in blocks.items())
    path.write_text("".join(texts), encoding="utf-8")


def pinned(path: Path, block: str) -> list[Any]:
    """The lines in a file from the one that is the name of a block to the next."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    start = lines.index(block) + 1
    ends = (at for at in range(start, len(lines)) if isinstance(lines[at], str))
    return lines[start : next(ends, len(lines))]


def assert_pinned(lines: Sequence[Any], path: Path, block: str) -> None:
    """Nothing differs from what stands in that block of the file, to the bit."""
    expected = pinned(path, block)
    described = [json.loads(line) for line in written(lines).splitlines()]
    for ours, theirs in zip(described, expected, strict=False):
        assert ours == theirs
    assert len(described) == len(expected)


def _columns(
    table: pd.DataFrame, names: dict[str, str], without: Iterable[str] = ()
) -> list[dict[str, Any]]:
    """The rows of a table by the words of the files; columns that it has."""
    # Nothing is recomputed in what is pinned, so actions are changes.
    assert "n_actions" not in table or (table["n_actions"] == table["sparsity"]).all()
    others = {"reason", "reason_kind", "factual", "n_actions", *HOW_SURE}
    unknown = set(table.columns) - set(names.values()) - others
    assert not unknown, f"columns that nothing pins: {unknown}"
    here = {k: list(table[v]) for k, v in names.items() if v in table and k not in without}
    return [{k: plain(v[row]) for k, v in here.items()} for row in range(len(table))]


def _known(words: dict[str, str], name: str) -> str:
    return next(word for word, today in words.items() if today == name)
