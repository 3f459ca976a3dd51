"""Where ``mcce explain`` writes answers: a file, a folder of parts, or standard output.

Always true: existing output is never lost unless the user wants that; a file appears whole and
under its name at the end alone, and until then its parts are in a folder beside it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ParameterError, shorten
from ..files.answer_tables import join_parts
from ..files.parts_folder import Number, PartRecord, PartsFolder, read_manifest
from ..files.sources import STANDARD, Format, find_format, reading, require_pyarrow
from ..runtime.files import replacing, writing
from .arguments import ExplainArguments
from .terminal import notify, printable


@dataclass(frozen=True)
class Destination:
    """Where the output goes; standard output has no file and no folder."""

    name: str
    format: Format
    file: Path | None = None
    folder: Path | None = None
    resume: bool = False
    overwrite: bool = False

    @classmethod
    def find(cls, arguments: ExplainArguments) -> Destination:
        """The destination that the user named."""
        output = arguments.output
        if arguments.resume and arguments.overwrite:
            raise ParameterError(
                "--resume goes on with an unfinished run, and --overwrite begins anew. Leave out "
                "one of them."
            )
        if output.lower().endswith(".gz"):
            raise ParameterError(
                f"Output is not compressed, got -o {shorten(output, 200)}. Leave out .gz, or write "
                "to standard output and send that through gzip."
            )
        is_folder = output.endswith(("/", "\\")) or Path(output).is_dir()
        is_folder = is_folder and output != STANDARD
        name = "answers.parquet" if is_folder else output
        found = find_format(name, arguments.output_format, option="--output-format")
        if found in ("parquet", "arrow"):
            require_pyarrow(output)
        if output == STANDARD:
            if arguments.resume:
                raise ParameterError("Standard output cannot be resumed. Name a file with -o.")
            return cls(output, found)
        # Beside the file that a link leads to: files move only within a file system.
        file = None if is_folder else Path(os.path.realpath(output))
        folder = Path(output) if file is None else file.with_name(f"{file.name}.parts")
        return cls(output, found, file, folder, arguments.resume, arguments.overwrite)

    def is_complete(self) -> bool:
        """Whether nothing is left to resume; raises if output would be lost."""
        if self.folder is None or self.overwrite:
            return False
        with reading(str(self.folder)):
            manifest = read_manifest(self.folder)
            if self.file is None:
                ended = manifest is not None and manifest.n_parts is not None
            else:
                ended = manifest is None and self.file.exists()
        if self.resume:
            if ended:
                notify(f"{printable(self.name)} is there; no run is left to resume.")
            return ended
        if ended:
            raise ParameterError(
                f"{shorten(self.name, 200)} exists already. Replace it with --overwrite, or "
                "name another output."
            )
        if manifest is not None:
            raise ParameterError(
                f"There is an unfinished run in {shorten(self.folder, 200)}. Go on with --resume, "
                "or begin anew with --overwrite."
            )
        return False

    def open_folder(
        self, run_key: Mapping[str, Any], wanted: int | None, usual: int
    ) -> tuple[PartsFolder, int]:
        """The folder of parts, a new one or that of an unfinished run, and people per block.

        People per block are as the user wants, as in the unfinished run, or as usual.
        """
        assert self.folder is not None
        if self.overwrite:
            PartsFolder(self.folder, "").clear()
        manifest = read_manifest(self.folder)
        found = None if manifest is None else manifest.run_key.get("block_rows")
        known = found if isinstance(found, int) and found > 0 else usual
        block_rows = known if wanted is None else wanted
        key = {**run_key, "block_rows": block_rows, "format": self.format}
        # Workers may have another current folder.
        return PartsFolder.open(self.folder.resolve(), key, f".{self.format}"), block_rows

    def finish(self, folder: PartsFolder, records: Mapping[Number, PartRecord]) -> None:
        """End a run: the parts stay as a folder, or become the file that is wanted."""
        parts = folder.finish(records)
        if self.file is not None:
            with writing(self.file), replacing(self.file, folder.path) as stream:
                join_parts(parts, self.format, stream)
            folder.remove()
