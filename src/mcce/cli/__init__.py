"""The command ``mcce``: fit, explain and inspect over files, a demo, and the paper's experiments.

``app`` has the commands' names, and each module of a command's name its options and work;
``options`` reads what users write, ``failures`` turns errors into a paragraph and an exit code,
``terminal`` prints, ``predictors`` loads black boxes.

Always true: ``mcce --help`` and ``mcce --version`` load typer and nothing heavier.
"""

from .command import main

__all__ = ["main"]
