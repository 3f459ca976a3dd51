"""``mcce inspect``: what a saved explainer holds, and what of it is personal data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..protocols import is_private
from ..saving.document import Inspection, inspect
from .arguments import InspectArguments
from .inputs import read_key
from .terminal import printable, show, show_json, table

# Settings of the machine, and what is shown elsewhere.
LEFT_OUT = ("constraints", "immutable", "mutable", "kinds", "verbose", "n_jobs", "memory", "roles")


def run(arguments: InspectArguments) -> None:
    """Show what a saved explainer holds."""
    path, key = arguments.explainer.path, read_key(arguments.run.key_file)
    content = _content(path, inspect(path, key))
    if arguments.run.as_json:
        show_json(content)
    else:
        _show(content)


def _content(path: str, found: Inspection) -> dict[str, Any]:
    """Everything that is shown, as plain values."""
    rules = found.parameters["constraints"] or []
    return {
        "file": path,
        "bytes": Path(path).stat().st_size,
        "format_version": found.about["version"],
        "written_by": found.about["written_by"],
        "signed": found.about["signed"],
        "columns": [
            {
                "name": str(feature.name),
                "kind": feature.kind,
                "dtype": _dtype(feature.table.dtype),
                "immutable": feature.immutable,
                "n_values": feature.n_codes - feature.has_missing,
                "missing": feature.has_missing,
            }
            for feature in found.schema.features
        ],
        "rules": [repr(rule) for rule in rules],
        "relations": list(found.relations),
        "decision": dict(found.decision),
        "settings": {
            name: value if isinstance(value, (bool, int, float, str)) else _shown(value)
            for name, value in {**found.parameters, "seed": found.seed}.items()
            if name not in LEFT_OUT and value is not None
        },
        "n_desired": found.n_desired,
        "private": is_private(found.parameters["generator"]),
        "personal_data": _personal_data(found),
    }


def _shown(value: Any) -> str:
    """A setting; of a private generator not its domains, which fill pages."""
    if not is_private(value):
        return repr(value)
    return f"{type(value).__name__}, epsilon {value.epsilon:g}"


def _personal_data(found: Inspection) -> list[str]:
    """The personal data in the file, each kind as a sentence."""
    if is_private(found.parameters["generator"]):
        return [
            "no training values: columns and probe rows are made of declared domains",
            "trees with noise, by differential privacy with epsilon "
            f"{found.parameters['generator'].epsilon:g}",
        ]
    n_values = sum(feature.n_codes for feature in found.schema.features)
    held = [
        f"{n_values:,} distinct training values, by column",
        "the training values of one column in every leaf of the trees, with their frequencies",
        f"{found.n_probes} probe rows made of training values, with their scores",
    ]
    if found.n_shares:
        held.append(f"the share of desired decisions of {found.n_shares:,} values and ranges")
    held += [f"{n:,} {what}, as whole rows" for what, n in found.whole_rows.items() if n]
    if not any(found.whole_rows.values()):
        held.append("no whole training rows")
    return held


def _dtype(dtype: Any) -> str:
    """A dtype without its levels."""
    levels = getattr(dtype, "categories", None)
    if levels is None:
        return str(dtype)
    return "ordered category" if dtype.ordered else "category"


def _called(decision: dict[str, Any]) -> str:
    """How the predictor is called, in a few words."""
    columns = ", ".join(map(str, decision["columns"]))
    return f"{decision['method']}{f' (column {columns})' if columns else ''}"


def _show(content: dict[str, Any]) -> None:
    wrote = ", ".join(f"{name} {version}" for name, version in content["written_by"].items())
    signed = "signed" if content["signed"] else "not signed"
    show(f"{printable(content['file'])}: {content['bytes']:,} bytes, {signed}")
    show(f"format {content['format_version']}, written by {printable(wrote)}")
    show("\nColumns")
    rows = [
        [
            column["name"],
            column["kind"],
            column["dtype"],
            "immutable" if column["immutable"] else "",
            f"{column['n_values']:,}{' and missing' if column['missing'] else ''}",
        ]
        for column in content["columns"]
    ]
    show(table(["name", "kind", "dtype", "", "values"], rows))
    for title, name in (("Rules", "rules"), ("Relations that answers keep", "relations")):
        show(f"\n{title}")
        for line in content[name] or ["none"]:
            show(f"  {printable(line)}")
    if content["settings"].get("search") == "paper":
        show("  The paper's search keeps relations between columns only where rules say so.")
    show("\nSettings")
    settings = {**content["settings"], "predictor": _called(content["decision"])}
    show(table(["name", "value"], [[name, value] for name, value in settings.items()]))
    about = "about " if content["private"] else ""
    known = f"{about}{content['n_desired']:,} training rows"
    show(f"\nPersonal data ({known} had the desired decision)")
    for line in content["personal_data"]:
        show(f"  {line}")
    if not content["private"]:
        show("  Protect the file like the training data.")
