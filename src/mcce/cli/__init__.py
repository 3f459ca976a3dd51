"""The command ``mcce``: fit, explain, report, serve and inspect over files, and a demo.

``commands`` names the commands. The module of a command has its options and does the work; that of
explain is in ``running``, that of report in ``reporting``, that of serve in ``serving``, that of
privacy-audit in ``auditing``. ``options`` reads what users write, ``terminal`` prints and turns
errors into a paragraph and an exit code, and ``predictors`` loads black boxes.

Always true: ``mcce --help`` and ``mcce --version`` load typer and nothing heavier.
"""

from .entry import main

__all__ = ["main"]
