"""``mcce compare-models``: whether answers of an old model hold under the new one.

Always true: people and answers are read by the columns of the old explainer.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import typer

from ..comparison import ModelComparison, compare_models
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, ReadError, shorten
from ..explainer import MCCE
from ..report.comparison_page import ComparisonSection, write_comparison
from ..report.labels import Labels
from ..report.words import Words
from ..runtime.progress import without_prints, without_warnings
from .arguments import CompareArguments, ExplainerArguments, inputs_of
from .inputs import check_page, load_explainer, read_all, read_kept, read_labels, split_names
from .terminal import REFUSED, conclude, notify, printable, show, table

# Columns of a file of answers that say whose they are.
WHOSE = ["factual", "rank"]
# The heads of tables on a terminal, which is narrower than a page.
HEADS = (
    ["", "people", "lose", "gain", "answers", "refused", "95 %", "changes", "new"],
    ["feature", "in plans, old", "new", "change, old", "new"],
)


def run(arguments: CompareArguments) -> None:
    """Compare two models."""
    output, most = arguments.output, arguments.fail_above
    if most is not None and not 0 <= most <= 1:
        raise ParameterError(f"--fail-above must be from 0 to 1, got {most!r}.")
    if output is not None:
        check_page("The page", output, inputs_of(arguments), overwrite=arguments.overwrite)
    labels = read_labels(arguments.labels, arguments.language)
    old, new = _load(arguments)
    people = read_all(arguments.people, old.schema_, arguments.table)
    answers = None if arguments.answers is None else _answers(arguments, old, people)
    known = list(map(str, old.schema_.names))
    groups = split_names("--groups", arguments.groups, known) or []
    names = {str(name): name for name in old.schema_.names}
    with without_prints(), without_warnings():
        found = compare_models(
            old, new, people, answers=answers, groups=[names[name] for name in groups]
        )
    if output is not None:
        write_comparison(found, output, labels)
    _show(arguments, found)
    if most is not None and found.broken > most:
        if not arguments.run.quiet and not arguments.run.as_json:
            notify(f"more answers are refused than --fail-above {most:g}.")
        raise typer.Exit(REFUSED)


def _load(arguments: CompareArguments) -> tuple[MCCE, MCCE]:
    """Both explainers, none of whose files are the output."""
    of_new = arguments.predictor
    of_old = replace(of_new, name=arguments.old_predictor, retrained=arguments.old_retrained)
    both = ((arguments.old, of_old), (arguments.new, of_new))
    old, new = (
        load_explainer(
            ExplainerArguments(path, tolerance=arguments.tolerance),
            predictor,
            arguments.run,
            arguments.output,
        )
        for path, predictor in both
    )
    return old, new


def _answers(
    arguments: CompareArguments, old: MCCE, people: pd.DataFrame
) -> Counterfactuals[pd.DataFrame]:
    """The first answers that a file of ``mcce explain`` holds."""
    path, schema = str(arguments.answers), old.schema_
    rows, kept = read_kept(path, schema, arguments.table, WHOSE)
    factual, rank = (pd.to_numeric(pd.Series(kept[name]), errors="coerce") for name in WHOSE)
    first = (rank == 1).to_numpy(dtype=bool, na_value=False)
    owner = factual[first].to_numpy(dtype=np.float64, na_value=-1)
    frame = rows[first].reset_index(drop=True)
    fits = bool(np.isin(owner, np.arange(len(people))).all())
    places = owner.astype(np.int64)
    if fits:
        pair = (schema.encode(some).codes for some in (frame, people.iloc[places]))
        given, own = (codes[schema.immutable] for codes in pair)
        fits = bool((given == own).all())
    if not fits:
        raise ReadError(
            f"{shorten(path, 200)} has answers to other people than those in "
            f"{shorten(arguments.people, 200)}: rows or columns that cannot change differ. Name "
            "the people whom mcce explain answered."
        )
    return Counterfactuals.from_frame(
        people, frame, schema=schema, decision=old.decision_, owner=places
    )


def _show(arguments: CompareArguments, found: ModelComparison) -> None:
    """The figures on standard output, and the outcome on standard error."""
    tables = {name: getattr(found, name).astype(object) for name in ("groups", "features")}
    plain = {name: of.where(of.notna(), None).to_dict("records") for name, of in tables.items()}
    row, people = plain["groups"][0], found.people.reset_index(drop=True)
    refused = ~people["holds"].fillna(True).astype(bool)
    lost = people["old_desired"] & ~people["new_desired"]
    gained = ~people["old_desired"] & people["new_desired"]
    rows = {"refused": refused, "lost": lost, "gained": gained}
    content = {
        "broken": row["broken"],
        **plain,
        **{f"rows_{name}": np.flatnonzero(some).tolist() for name, some in rows.items()},
        **({} if arguments.output is None else {"output": arguments.output}),
    }
    if not arguments.run.as_json:
        section = ComparisonSection(found, Words(Labels.make({})))
        for names, (of, _) in zip(HEADS, section.tables, strict=True):
            show(f"{of.caption}\n{table(names, of.rows)}\n")
    known = "" if row["broken"] is None else f", {row['broken']:.1%}"
    page = "" if arguments.output is None else f" Page: {arguments.output}"
    text = (
        f"{row['n']:,} people: {row['n_gained']:,} gain and {row['n_lost']:,} lose the desired "
        f"decision; {int(refused.sum()):,} of {row['n_answered']:,} answers are "
        f"refused{known}.{page}"
    )
    conclude(arguments.run, content, printable(text))
