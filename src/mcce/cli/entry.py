"""The function behind the command ``mcce``."""

from __future__ import annotations

import sys
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        Arguments; by default those of the process.

    Returns
    -------
    int
        Exit status: 0 on success; see :mod:`mcce.cli.terminal` for the others.

    Examples
    --------
    >>> main(["--version"])  # doctest: +ELLIPSIS
    mcce ...
    0
    """
    try:
        import typer  # noqa: F401
    except ImportError:
        from ..errors import missing_extra

        sys.stderr.write(f"mcce: {missing_extra('typer', 'cli', 'the command')}\n")
        return 2
    from .commands import app

    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        app(args=given, prog_name="mcce")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0
