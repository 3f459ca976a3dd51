"""Anonymous answers of ``mcce explain``: who is counted, and which columns are widened."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..errors import ParameterError
from ..files.parts import checksum
from ..files.sources import find_format, reading
from ..files.training import read_training
from .options import read_dtypes, split_names

if TYPE_CHECKING:
    from ..tables.schema import Schema


@dataclass(frozen=True)
class AnonymityChoice:
    """What the user asked for; see the options of ``mcce explain``."""

    k: int | None = None
    names: Sequence[str] | None = None
    training: str | None = None
    min_pureness: float | None = None

    def check(self) -> None:
        """Raise unless the options go together."""
        options = {
            "--quasi-identifiers": self.names,
            "--training": self.training,
            "--min-pureness": self.min_pureness,
        }
        given = [option for option, value in options.items() if value]
        if self.k is None and given:
            raise ParameterError(f"{given[0]} is for anonymous answers: add --anonymity K.")
        if self.k is not None and not (self.names and self.training):
            raise ParameterError(
                "--anonymity needs --quasi-identifiers, the columns by which people can be "
                "recognised, and --training, the file that the explainer was fitted on."
            )

    def arguments(
        self, schema: Schema, delimiter: str, dtypes: Sequence[str] | None
    ) -> dict[str, Any]:
        """Arguments of ``anonymize``; none if answers are not to be anonymous."""
        if self.k is None or self.training is None:
            return {}
        known = [str(name) for name in schema.names]
        read = {name: dtype for name, dtype in read_dtypes(dtypes).items() if name in known}
        kind = find_format(self.training, None)
        rows = read_training(self.training, kind, delimiter=delimiter, dtypes=read)
        pureness = {} if self.min_pureness is None else {"min_pureness": self.min_pureness}
        return {
            "anonymity": self.k,
            "quasi_identifiers": split_names(self.names, known),
            # Such as the outcome, which fit left out.
            "training": rows[[name for name in rows.columns if name in known]],
            **pureness,
        }

    def job(self) -> dict[str, Any]:
        """What decides the output of anonymous answers; nothing for all others."""
        if self.k is None or self.training is None:
            return {}
        with reading(self.training):
            return {
                "anonymity": self.k,
                "quasi_identifiers": list(self.names or ()),
                "training": checksum(self.training),
                "min_pureness": self.min_pureness,
            }
