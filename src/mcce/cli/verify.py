"""``mcce verify``: whether a receipt of the page holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from .options import (
    AsJson,
    Classes,
    Debug,
    KeyFile,
    PredictorKind,
    PredictorOutput,
    Trust,
    read_key,
)
from .terminal import BROKEN, printable, reported, show, show_json

if TYPE_CHECKING:
    import pandas as pd

    from ..explainer import MCCE
    from ..report.receipts import Check
    from .running import ExplainerFile

HELP = """Check a receipt: is it unaltered, and does what it promises still hold?

With --explainer and --predictor the person and the answer are put to the predictor and the rules
again. Without them only the receipt itself is checked. The exit code is 0 if everything holds, and
6 if something does not."""
EPILOG = """\
\b
Examples:
  mcce verify receipt.json
  mcce verify receipt.json --explainer bank.mcce --predictor scoring:score
"""


def verify(
    receipt: Annotated[str, typer.Argument(metavar="RECEIPT", help="File that the page saved.")],
    explainer: Annotated[
        str | None, typer.Option("--explainer", metavar="FILE", help="File of mcce fit.")
    ] = None,
    predictor: Annotated[
        str | None,
        typer.Option("--predictor", metavar="FILE|MODULE:NAME|URL", help="The black box."),
    ] = None,
    predictor_kind: PredictorKind = None,
    trust: Trust = False,
    classes: Classes = None,
    output_is: PredictorOutput = None,
    key_file: KeyFile = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Check a receipt."""
    with reported(debug=debug, as_json=as_json):
        from ..errors import ParameterError
        from .predictors import PredictorChoice
        from .running import ExplainerFile

        if (explainer is None) != (predictor is None):
            raise ParameterError("--explainer and --predictor go together. Give both or neither.")
        file = None
        if explainer is not None and predictor is not None:
            chosen = PredictorChoice(predictor, predictor_kind, trust, classes, output_is)
            file = ExplainerFile(explainer, chosen, key_file=key_file)
        checks = _check(receipt, file, key_file)
        if as_json:
            show_json({"holds": all(check.holds for check in checks), "checks": _plain(checks)})
        else:
            _show(checks, whole=file is not None)
        if not all(check.holds for check in checks):
            raise typer.Exit(BROKEN)


def _check(path: str, file: ExplainerFile | None, key_file: str | None) -> list[Check]:
    import json
    from pathlib import Path

    from ..errors import ReadError, shorten
    from ..files.sources import reading
    from ..report.receipts import Origin, check_plan, check_receipt
    from .running import read_checksum

    with reading(path):
        try:
            content = json.loads(Path(path).read_bytes())
        except (ValueError, RecursionError):
            raise ReadError(f"{shorten(path, 200)} is no JSON. Name a receipt.") from None
    checks = check_receipt(content, read_key(key_file))
    if file is None:
        return checks
    explainer = file.load()
    person, answer = (_row(path, content[name], explainer) for name in ("person", "answer"))
    origin = Origin(read_checksum(file.path), file.predictor.fingerprint())
    return checks + check_plan(content, explainer, person, answer, origin)


def _row(path: str, cells: Any, explainer: MCCE) -> pd.DataFrame:
    """A row of the receipt, read as one of a file of JSON lines."""
    import json
    from io import BytesIO

    from ..files.people import PeopleReader
    from ..files.sources import JsonSource, iterate

    source = JsonSource.open(path, BytesIO(json.dumps(cells).encode()))
    reader = PeopleReader.plan(path, source, explainer.schema_)
    (block,) = iterate(path, source, reader.columns, 1)
    ((_, row),) = reader.read(block).groups
    return row


def _plain(checks: list[Check]) -> list[dict[str, Any]]:
    return [
        {
            "name": check.name,
            "holds": check.holds,
            "found": None if check.holds else check.found,
        }
        for check in checks
    ]


def _show(checks: list[Check], *, whole: bool) -> None:
    for check in checks:
        found = "" if check.holds else f": {check.found}"
        show(f"{'holds' if check.holds else 'FAILS'}  {check.name}{printable(found)}")
    if not whole:
        show("Only the receipt itself was checked; --explainer and --predictor check its promises.")
