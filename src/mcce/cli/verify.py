"""``mcce verify``: whether a receipt of the page holds."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import typer

from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE
from ..files.people_reader import PeopleReader
from ..files.sources import KnownColumns, RawBlock, reading
from ..report.receipts import Check, Origin, check_plan, check_receipt
from ..runtime.json_text import NotJsonError, UnusableJsonError, read_json
from .arguments import ExplainerArguments, VerifyArguments
from .inputs import load_explainer, read_checksum, read_key
from .predictors import predictor_checksum
from .terminal import BROKEN, printable, show, show_json


def run(arguments: VerifyArguments) -> None:
    """Check a receipt."""
    if (arguments.explainer is None) != (not arguments.predictor.name):
        raise ParameterError("--explainer and --predictor go together. Give both or neither.")
    checks = _check(arguments)
    if arguments.run.as_json:
        listed = [asdict(check) | ({"found": None} if check.holds else {}) for check in checks]
        show_json({"holds": all(check.holds for check in checks), "checks": listed})
    else:
        _show(checks, whole=arguments.explainer is not None)
    if not all(check.holds for check in checks):
        raise typer.Exit(BROKEN)


def _check(arguments: VerifyArguments) -> list[Check]:
    path = arguments.receipt
    with reading(path):
        try:
            content = read_json(Path(path).read_bytes())
        except NotJsonError:
            raise ReadError(f"{shorten(path, 200)} is no JSON. Name a receipt.") from None
        except UnusableJsonError as error:
            raise ReadError(f"{shorten(path, 200)} is no receipt: it has {error}.") from None
    checks = check_receipt(content, read_key(arguments.run.key_file))
    if arguments.explainer is None:
        return checks
    file = ExplainerArguments(arguments.explainer)
    explainer = load_explainer(file, arguments.predictor, arguments.run)
    person, answer = (_row(path, content[name], explainer) for name in ("person", "answer"))
    origin = Origin(read_checksum(file.path), predictor_checksum(arguments.predictor))
    return checks + check_plan(content, explainer, person, answer, origin)


def _row(path: str, cells: Any, explainer: MCCE) -> pd.DataFrame:
    """A row of the receipt, read as one of a file of JSON lines."""
    if not isinstance(cells, dict):
        raise ReadError(f"{shorten(path, 200)} is no receipt: its rows must be objects.")
    reader = PeopleReader.plan(path, KnownColumns(list(cells)), explainer.schema_)
    block = RawBlock(0, {name: [cells[name]] for name in reader.columns})
    ((_, row),) = reader.read(block).groups
    return row


def _show(checks: list[Check], *, whole: bool) -> None:
    for check in checks:
        found = "" if check.holds else f": {check.found}"
        show(f"{'holds' if check.holds else 'FAILS'}  {check.name}{printable(found)}")
    if not whole:
        show("Only the receipt itself was checked; --explainer and --predictor check its promises.")
