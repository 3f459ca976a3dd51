"""Labels files, read by the readers of rule files and within the same bounds."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..constraints.constraint import quote_name
from ..constraints.files import read_text
from ..constraints.toml_rules import parse_toml
from ..constraints.yaml_rules import compose_yaml
from ..errors import ConstraintError, LabelsError, shorten

ENDINGS = (".toml", ".yaml", ".yml")


def read_labels(path: str | os.PathLike[str]) -> tuple[Any, str]:
    """What a labels file holds, and its name for errors."""
    file = Path(path)
    if file.suffix.lower() not in ENDINGS:
        raise LabelsError(
            f"A labels file must be called .toml, .yaml or .yml, got {shorten(file)}."
        )
    try:
        return parse_labels(read_text(file, "labels"), file.name), quote_name(file.name)
    except ConstraintError as error:
        raise LabelsError(str(error)) from None


def parse_labels(text: str, name: str) -> Any:
    """What the text of a labels file holds, by the ending of its name."""
    if name.lower().endswith(".toml"):
        return parse_toml(text, quote_name(name))
    return compose_yaml(text, quote_name(name)).content
