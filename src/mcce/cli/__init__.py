"""The command ``mcce``: fit, explain, report, inspect, verify, audit and serve, and a demo.

``commands`` lists the commands and ``arguments`` declares their options; the module of a command
does its work. ``inputs`` has what several of them share, ``predictors`` loads black boxes, and
``terminal`` prints and turns errors into a paragraph and an exit code.

Always true: ``mcce --help`` and ``mcce --version`` load typer and nothing heavier.
"""

from .entry import main

__all__ = ["main"]
