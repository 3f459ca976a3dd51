"""Steps that several commands share: load explainers, read people and names, check outputs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from ..constraints.files import read_constraints
from ..counterfactuals.result import Counterfactuals
from ..errors import ParameterError, ReadError, did_you_mean, shorten
from ..execution.workers import AnswerSettings
from ..explainer import MCCE, load
from ..files.people_reader import PeopleReader
from ..files.sources import Dialect, Source, find_format, open_source, reading
from ..report.labels import Labels
from ..runtime.files import checksum
from ..runtime.progress import Progress, ProgressBar, without_prints
from ..tables.schema import Schema
from .arguments import ExplainerArguments, PredictorArguments, RunArguments, TableArguments
from .predictors import load_predictor, load_retrained, predictor_files
from .terminal import notify, printable

BLOCK_ROWS = 5000


def load_explainer(
    explainer: ExplainerArguments,
    predictor: PredictorArguments,
    run: RunArguments,
    output: str | None = None,
) -> MCCE:
    """An explainer with its predictor, none of whose files are the output."""
    key = read_key(run.key_file)
    with without_prints():
        loaded = load(
            explainer.path,
            load_predictor(predictor),
            retrained=load_retrained(predictor),
            tolerance=explainer.tolerance,
            key=key,
        )
    if output is not None:
        check_output_path(output, map(str, predictor_files(predictor)))
    if explainer.n_counterfactuals is not None:
        loaded.set_params(n_counterfactuals=explainer.n_counterfactuals)
    # A limit of time per block would make answers depend on blocks and the machine.
    return loaded.set_params(n_jobs=run.jobs, max_seconds=None, verbose=False)


def dialect_of(table: TableArguments) -> Dialect:
    """How CSV files are written, as far as the user says it."""
    return Dialect(table.delimiter, table.decimal, table.encoding)


def show_dialect(source: Source, table: TableArguments, *, quiet: bool = False) -> None:
    """Show how a CSV file is read, if that is unusual and was found out."""
    found = source.dialect
    if not quiet and found is not None and found.unusual and found != dialect_of(table):
        notify(f"{printable(source.path)} is read with {printable(found.unusual)}.")


@contextmanager
def open_people(
    path: str,
    schema: Schema,
    table: TableArguments,
    keep: Callable[[list[str]], Sequence[str]] = lambda names: (),
) -> Iterator[tuple[Source, PeopleReader]]:
    """The people of a file, and how they are read; ``keep`` chooses columns to copy among all."""
    dtypes = read_dtypes(table.dtypes)
    with open_source(path, find_format(path, table.format), dialect_of(table)) as source:
        show_dialect(source, table)
        kept = keep(source.names)
        yield source, PeopleReader.plan(path, source, schema, keep=kept, dtypes=dtypes)


def read_all(path: str, schema: Schema, table: TableArguments) -> pd.DataFrame:
    """All people of a file."""
    return read_kept(path, schema, table, ())[0]


def read_kept(
    path: str, schema: Schema, table: TableArguments, keep: Sequence[str]
) -> tuple[pd.DataFrame, dict[str, list[Any]]]:
    """All people of a file, and the cells of columns to copy."""
    parts, kept = list[pd.DataFrame](), {name: list[Any]() for name in keep}
    with open_people(path, schema, table, lambda names: keep) as (source, reader):
        for block in reader.blocks(source, BLOCK_ROWS):
            parts += [rows.set_axis(at + block.first) for at, rows in block.groups]
            for name in keep:
                kept[name] += block.kept[name]
    if not parts:
        raise ReadError(f"{shorten(path, 200)} has no rows. Name a file with some.")
    return pd.concat(parts).sort_index(), kept


def explain_people(
    explainer: MCCE, settings: AnswerSettings, bar: ProgressBar, rows: pd.DataFrame
) -> Counterfactuals[pd.DataFrame]:
    """The answers to people, with progress."""

    def show(progress: Progress) -> None:
        # People who need no answer are settled at once.
        bar.show(bar.n_done + len(rows) - progress.n_factuals + progress.n_settled)

    with without_prints():
        result = settings.answer(explainer, rows, show)
    bar.n_done += len(rows)
    bar.show(bar.n_done)
    return result


def read_labels(path: str | None, language: str | None) -> Labels:
    """The labels in a file, or those of a language."""
    if path is None:
        return Labels.make({} if language is None else {"language": language})
    if language is not None:
        raise ParameterError(
            "--labels and --language do not go together: a labels file says its language itself."
        )
    return Labels.read(path)


def read_rounding(path: str | None, schema: Schema) -> dict[Hashable, float]:
    """To what the numbers of answers are rounded by the labels in a file."""
    return {} if path is None else Labels.read(path).rounding(schema)


def read_rules_file(path: str | None) -> Any:
    """The further constraints in a file; None without one."""
    return None if path is None else read_constraints(path)


def read_key(path: str | None) -> bytes | None:
    """The secret in a file; None without one."""
    if path is None:
        return None
    with reading(path):
        return Path(path).read_bytes().strip()


def read_checksum(path: str) -> str:
    """The checksum of a file that the user named; errors are ReadErrors."""
    with reading(path):
        return checksum(path)


def split_names(
    option: str, texts: Sequence[str] | None, known: Collection[str]
) -> list[str] | None:
    """Names of columns, separated by commas; a name that has commas itself stands alone.

    Examples
    --------
    >>> split_names("--keep", ["Age,Sex", "Income, net"], ["Age", "Sex", "Income, net"])
    ['Age', 'Sex', 'Income, net']
    """
    if not texts:
        return None
    names: list[str] = []
    for text in texts:
        names += [text] if text in known else [name.strip() for name in text.split(",")]
    # No column is known if no file can be read, which is another error.
    unknown = [name for name in names if name and name not in known] if known else []
    if unknown:
        raise ParameterError(
            f"{option} names columns that are not in the data: {shorten(unknown, 200)}."
            f"{did_you_mean(unknown[0], known)} The columns are {shorten(list(known), 500)}."
        )
    return list(dict.fromkeys(name for name in names if name))


def read_dtypes(texts: Sequence[str] | None) -> dict[str, str]:
    """Dtypes by column name; a name may hold equal signs.

    Examples
    --------
    >>> read_dtypes(["Job=category", "a=b=str"])
    {'Job': 'category', 'a=b': 'str'}
    """
    dtypes = {}
    for text in texts or ():
        name, sign, dtype = text.rpartition("=")
        if not (name and sign and dtype):
            raise ParameterError(
                f"--dtype must be NAME=DTYPE, e.g. Job=category, got {shorten(text)}."
            )
        dtypes[name] = dtype
    return dtypes


def check_page(what: str, output: str, inputs: Iterable[str], *, overwrite: bool) -> None:
    """Raise unless the output is an HTML file that may be written."""
    if Path(output).suffix.lower() not in (".html", ".htm"):
        raise ParameterError(
            f"{what} is written to a file, got -o {shorten(output, 200)}. Name one that ends in "
            ".html."
        )
    check_output_path(output, inputs)
    if Path(output).exists() and not overwrite:
        raise ParameterError(
            f"{shorten(output, 200)} exists already. Replace it with --overwrite, or name another "
            "output."
        )


def check_output_path(output: str, inputs: Iterable[str]) -> None:
    """Raise if the output would take the place of a file that is read."""
    destination = Path(output).resolve()
    for name in inputs:
        if Path(name).is_file() and _is_same(destination, Path(name).resolve()):
            raise ParameterError(
                f"The output {shorten(output, 200)} would take the place of {shorten(name, 200)}, "
                "which is read. Name another output."
            )


def _is_same(destination: Path, file: Path) -> bool:
    if destination.is_dir():
        return destination == file.parent
    return destination == file or (destination.exists() and destination.samefile(file))
