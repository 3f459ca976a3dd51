"""The command ``mcce``: fit, explain, report, serve and inspect over files, and a demo.

``app`` has the names of the commands. The module of a command has its options, and does the work;
that of explain is in ``running``, that of report in ``reporting``, that of privacy-audit in
``auditing``. ``options`` reads what users write, ``failures`` turns errors into a paragraph and an
exit code, ``terminal`` prints, and ``predictors`` loads black boxes.

Always true: ``mcce --help`` and ``mcce --version`` load typer and nothing heavier.
"""

from .command import main

__all__ = ["main"]
