"""Explain the people of a file, block by block, into parts or a stream.

The same function serves one process that takes block after block and many that share them: a block
is answered by itself, and its part is the same whoever writes it.

Always true: a part is written once all its people are answered; a part that is complete and fits
its input is not computed again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

import pandas as pd

from ..counterfactuals import Counterfactuals
from .answers import Layout, count_status
from .formats import Format
from .manifest import Receipt
from .parts import Number, PartsFolder
from .people import PeopleReader
from .sources import RawBlock
from .writing import stream_tables

# Counterfactuals that were withdrawn, beside the people by status.
UNSTABLE = "unstable"


@dataclass(frozen=True)
class Done:
    """A block that is answered."""

    receipt: Receipt
    reused: bool = False


@dataclass(frozen=True)
class BlockRun:
    """How blocks of people become tables of answers."""

    explain: Callable[[pd.DataFrame], Counterfactuals[pd.DataFrame]]
    reader: PeopleReader
    layout: Layout

    def answer(self, block: RawBlock) -> tuple[pd.DataFrame, dict[str, int]]:
        """The table of answers to a block, and what is to be counted."""
        people = self.reader.read(block)
        results = [(at, self.explain(frame)) for at, frame in people.groups]
        table = self.layout.table(people, results)
        counts = count_status(table, self.layout.prefix)
        return table, counts | {UNSTABLE: sum(result.n_unstable for _, result in results)}

    def write_parts(
        self, blocks: Iterable[RawBlock], folder: PartsFolder, format_: Format
    ) -> Iterator[Done]:
        """Write one part per block, but for those that are complete."""
        number = -1
        for number, block in enumerate(blocks):
            yield self.write_part([block], folder, number, block.fingerprint(), format_)
        if number < 0:
            nobody, _ = self.nobody()
            yield self.write_part([], folder, 0, nobody.fingerprint(), format_)

    def write_part(
        self,
        blocks: Iterable[RawBlock],
        folder: PartsFolder,
        number: Number,
        fingerprint: str,
        format_: Format,
    ) -> Done:
        """Write one part, unless it is complete; memory holds one block."""
        receipt = folder.complete(number, fingerprint)
        if receipt is not None:
            return Done(receipt, reused=True)

        def fill(stream: BinaryIO) -> Receipt:
            answered = Answered(self, blocks)
            stream_tables(answered, format_, stream)
            return Receipt(answered.first, answered.n_rows, fingerprint, "", dict(answered.counts))

        return Done(folder.write(number, fill))

    def nobody(self) -> tuple[RawBlock, pd.DataFrame]:
        """A block of no people, and the table of answers to them."""
        block = RawBlock(0, {name: [] for name in self.reader.columns})
        return block, self.layout.table(self.reader.read(block), [])


class Answered:
    """Tables of answers, one per block or one of nobody, and what they are about so far."""

    def __init__(self, work: BlockRun, blocks: Iterable[RawBlock]) -> None:
        self._work, self._blocks = work, blocks
        self.first, self.n_rows = 0, 0
        self.counts: Counter[str] = Counter()

    def __iter__(self) -> Iterator[pd.DataFrame]:
        place = -1
        for place, block in enumerate(self._blocks):
            table, counts = self._work.answer(block)
            self.first = self.first if place else block.first
            self.n_rows += block.n_rows
            self.counts.update(counts)
            yield table
        if place < 0:
            yield self._work.nobody()[1]
