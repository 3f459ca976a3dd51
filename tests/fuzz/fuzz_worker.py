"""The process in which cases run: one after the other, until the parent has no more.

A line of JSON comes in for each case and a line goes out when it is over. If the process dies or
hangs in between, the parent knows whose fault it was.
"""

from __future__ import annotations

import faulthandler
import json
import os
import signal
import sys
import traceback
import warnings
from importlib import import_module
from typing import Any

from fuzz_report import Report


def serve() -> None:
    """Run the cases that are requested on standard input."""
    faulthandler.enable()
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    # Replies have a pipe of their own: nothing that is printed can get among them.
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        report = run_case(request["kind"], request["seed"], request["options"])
        print(json.dumps(report.to_json()), file=replies, flush=True)


def run_case(kind: str, seed: int, options: dict[str, Any]) -> Report:
    """Run one case in this process."""
    report = Report()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import_module(f"kind_{kind}").run(seed, options, report)
    except Exception as error:
        lines = traceback.format_exception(error)
        report.broken.append(f"{type(error).__name__}: {str(error)[:500]}\n{''.join(lines[-6:])}")
    report.counts["cases"] += 1
    return report
