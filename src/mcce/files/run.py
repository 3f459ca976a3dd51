"""Explain the people of a file, block by block, into parts or a stream.

The same function serves one process that takes block after block and many that share them: a block
is answered by itself, and its part is the same whoever writes it.

Always true: a part is written once all its people are answered; a part that is complete and fits
its input is not computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pandas as pd

from ..counterfactuals import Counterfactuals
from ..execution.manifest import Receipt
from ..execution.parts import PartsFolder
from .answers import Layout, count_status
from .formats import Format
from .people import PeopleReader
from .sources import RawBlock
from .writing import write_table

# Counterfactuals that were withdrawn, beside the people by status.
UNSTABLE = "unstable"


@dataclass(frozen=True)
class Done:
    """A block that is answered.

    Parameters
    ----------
    n_rows
        How many people it has.
    counts
        How many of them have which status.
    reused
        Whether an earlier run had written it.
    """

    n_rows: int
    counts: dict[str, int]
    reused: bool = False


@dataclass(frozen=True)
class BlockRun:
    """How blocks of people become tables of answers.

    Parameters
    ----------
    explain
        From the rows of people to their answers.
    reader
        How people are read.
    layout
        The columns of the table.
    """

    explain: Callable[[pd.DataFrame], Counterfactuals[pd.DataFrame]]
    reader: PeopleReader
    layout: Layout

    def answer(self, block: RawBlock) -> tuple[pd.DataFrame, dict[str, int]]:
        """The table of answers to a block, and what is to be counted.

        Raises
        ------
        ReadError
            If a cell does not fit its column.
        """
        people = self.reader.read(block)
        results = [(at, self.explain(frame)) for at, frame in people.groups]
        table = self.layout.table(people, results)
        counts = count_status(table, self.layout.prefix)
        return table, counts | {UNSTABLE: sum(result.n_unstable for _, result in results)}

    def write_parts(
        self, blocks: Iterable[RawBlock], folder: PartsFolder, format_: Format
    ) -> Iterator[Done]:
        """Write one part per block, but for those that are complete.

        Parameters
        ----------
        blocks
            The people; always all blocks of the file, also when a run goes on.
        folder
            Where the parts are.
        format_
            Their format.

        Yields
        ------
        Done
            What became of each block, in order; an empty file has one block of nobody.
        """
        number = -1
        for number, block in enumerate(blocks):
            fingerprint = block.fingerprint()
            receipt = folder.complete(number, fingerprint)
            if receipt is not None:
                yield Done(receipt.n_rows, dict(receipt.counts), reused=True)
                continue
            table, counts = self.answer(block)
            yield self._write(folder, number, block, fingerprint, table, counts, format_)
        if number < 0:
            nobody, table = self.nobody()
            yield self._write(folder, 0, nobody, nobody.fingerprint(), table, {}, format_)

    def nobody(self) -> tuple[RawBlock, pd.DataFrame]:
        """A block of no people, and the table of answers to them."""
        block = RawBlock(0, {name: [] for name in self.reader.columns})
        return block, self.layout.table(self.reader.read(block), [])

    def _write(
        self,
        folder: PartsFolder,
        number: int,
        block: RawBlock,
        fingerprint: str,
        table: pd.DataFrame,
        counts: dict[str, int],
        format_: Format,
    ) -> Done:
        receipt = Receipt(block.first, block.n_rows, fingerprint, "", counts)
        folder.write(number, receipt, lambda stream: write_table(table, format_, stream))
        return Done(block.n_rows, counts)
