"""From blocks of people to tables and parts: one way for a command, a worker and a service.

Always true: everybody in a block is in its table; memory holds one block; a part of an earlier run
is kept only if it answers the same rows, and the predictor scores its first person as it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import BinaryIO

import numpy as np
import pandas as pd

from ..counterfactuals.result import Counterfactuals
from ..errors import PredictorError, shorten
from ..kernels import FloatArray
from .answer_tables import Layout, count_status, stream_tables
from .parts_folder import Number, PartRecord, PartsFolder
from .people_reader import PeopleReader
from .sources import Format, RawBlock

# Counterfactuals that were withdrawn, beside the people by status.
UNSTABLE = "unstable"


@dataclass(frozen=True)
class Done:
    """A part that is complete; ``reused`` if an earlier run wrote it."""

    number: Number
    record: PartRecord
    reused: bool = False


@dataclass(frozen=True)
class Run:
    """How people are read, explained and written; ``score`` is what the predictor says of them."""

    reader: PeopleReader
    layout: Layout
    explain: Callable[[pd.DataFrame], Counterfactuals[pd.DataFrame]]
    score: Callable[[pd.DataFrame], FloatArray]
    tolerance: float = 1e-9

    def answer(self, block: RawBlock) -> tuple[pd.DataFrame, Counter[str]]:
        """The table of answers to a block of people, and how many have which status."""
        people = self.reader.read(block)
        results = [(at, self.explain(rows)) for at, rows in people.groups]
        table = self.layout.table(people, results)
        counts = count_status(table, self.layout.prefix) if block.n_rows else Counter()
        counts[UNSTABLE] += sum(result.n_unstable for _, result in results)
        return table, counts

    def tables(self, blocks: Iterable[RawBlock], counts: Counter[str]) -> Iterator[pd.DataFrame]:
        """Tables of answers, at least one, as blocks come; people are added to the counts."""
        for block in self._at_least_one(blocks):
            table, more = self.answer(block)
            counts += more
            yield table

    def write_parts(
        self, blocks: Iterable[RawBlock], folder: PartsFolder, file: int, format_: Format
    ) -> Iterator[Done]:
        """Write a part for each block of a file, at least one, but for those that are complete."""
        for block in self._at_least_one(blocks):
            # The same texts are other numbers with another decimal mark.
            number, fingerprint = (file, block.first), self.reader.decimal + block.fingerprint()
            record = folder.complete(number, fingerprint)
            if record is None:
                fill = partial(self._fill, block, fingerprint, format_)
                yield Done(number, folder.write(number, fill))
            else:
                self._check_score(block, record)
                yield Done(number, record, reused=True)

    def _fill(
        self, block: RawBlock, fingerprint: str, format_: Format, stream: BinaryIO
    ) -> PartRecord:
        """Write the answers to a block, and say what was written."""
        table, counts = self.answer(block)
        stream_tables([table], format_, stream)
        scores = table[f"{self.layout.prefix}score_before"].tolist()
        return PartRecord(block.n_rows, fingerprint, dict(counts), *scores[:1])

    def _at_least_one(self, blocks: Iterable[RawBlock]) -> Iterator[RawBlock]:
        """The blocks; one empty block if there are none."""
        found = iter(blocks)
        yield next(found, RawBlock(0, {name: [] for name in self.reader.columns}))
        yield from found

    def _check_score(self, block: RawBlock, record: PartRecord) -> None:
        """Raise if another predictor wrote a part, although all settings are the same."""
        for _, person in self.reader.read(block.head()).groups:
            then = np.nan if record.score is None else record.score
            if not np.allclose(self.score(person), then, self.tolerance, 1e-12, equal_nan=True):
                raise PredictorError(
                    f"The unfinished run had another predictor: it scored row {block.first + 1} of "
                    f"{shorten(self.reader.path, 200)} otherwise. Begin anew with --overwrite, or "
                    "go on with the predictor of that run."
                )
