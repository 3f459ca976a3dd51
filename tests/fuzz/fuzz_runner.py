"""Run cases in worker processes, and tell which one crashed, hung or broke a promise."""

from __future__ import annotations

import itertools
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzz_report import Report

FOLDER = Path(__file__).parent
# Seconds by the wall clock after which a case counts as hung, with sanitizers and a busy machine.
HANGS_AFTER = 240.0
# A crash of one worker costs a second or two, so a build that always crashes is soon given up.
MOST_FINDINGS = 20
# Seconds between two lines that say how far a long run is.
REPORTS_EVERY = 60.0


class CrashError(Exception):
    """The worker died or was killed."""


class Worker:
    """A process that runs cases, started again after a crash."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._errors: Any = None

    def run(self, kind: str, seed: int, options: dict[str, Any]) -> Report:
        """The report of a case; a crash or a hang is a finding like any other."""
        process = self._process or self._start()
        request = {"kind": kind, "seed": seed, "options": options}
        try:
            assert process.stdin is not None
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return Report.from_json(json.loads(self._reply(process, options)))
        except (CrashError, BrokenPipeError) as crash:
            report = Report()
            report.counts["cases"] += 1
            report.broken.append(f"{crash}\n{self._last_words()}")
            self.close()
            return report

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout, self._errors):
                stream.close()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 (open as long as the worker runs)
        self._process = subprocess.Popen(
            [sys.executable, str(FOLDER), "--worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            encoding="utf-8",
        )
        return self._process

    def _reply(self, process: subprocess.Popen[str], options: dict[str, Any]) -> str:
        assert process.stdout is not None
        limit = HANGS_AFTER + options.get("span", 0)
        ready, _, _ = select.select([process.stdout], [], [], limit)
        if not ready:
            if hasattr(signal, "SIGUSR1"):
                process.send_signal(signal.SIGUSR1)
                time.sleep(1.0)
            raise CrashError(f"no end after {limit:.0f} s")
        line = process.stdout.readline()
        if not line:
            raise CrashError(f"the process died with status {process.wait()}")
        return line

    def _last_words(self) -> str:
        self._errors.seek(0)
        lines = self._errors.read().decode(errors="replace").splitlines()
        first = next((at for at, line in enumerate(lines) if _is_report(line)), len(lines) - 25)
        return "\n".join(lines[max(first, 0) :][:40])


def _is_report(line: str) -> bool:
    return any(word in line for word in ("Sanitizer", "runtime error:", "Fatal Python error"))


@dataclass
class Campaign:
    """Cases of one kind until time, cases or answers are used up."""

    kind: str
    seeds: Iterator[int]
    options: dict[str, Any]
    ends: Callable[[Report], bool]
    on_finding: Callable[[str, int, str], None]
    on_progress: Callable[[str, Report], None]
    total: Report = field(default_factory=Report)

    def run(self, n_jobs: int) -> Report:
        lock = threading.Lock()

        def work() -> None:
            worker = Worker()
            try:
                while True:
                    with lock:
                        seed = None if self._is_over() else next(self.seeds, None)
                    if seed is None:
                        return
                    report = worker.run(self.kind, seed, self.options)
                    with lock:
                        self.total.add(report)
                        for message in report.broken:
                            self.on_finding(self.kind, seed, message)
            finally:
                worker.close()

        threads = [threading.Thread(target=work) for _ in range(n_jobs)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(REPORTS_EVERY)
            while thread.is_alive():
                self.on_progress(self.kind, self.total)
                thread.join(REPORTS_EVERY)
        return self.total

    def _is_over(self) -> bool:
        return self.ends(self.total) or len(self.total.broken) >= MOST_FINDINGS


def cases_for(seconds: float) -> Callable[[Report], bool]:
    """The end of a campaign that may take so long."""
    deadline = time.monotonic() + seconds
    return lambda total: time.monotonic() >= deadline


def seeds_from(start: int, count: int | None) -> Iterator[int]:
    return itertools.count(start) if count is None else iter(range(start, start + count))


def fresh_start() -> int:
    """A first seed that hardly any run had before."""
    return int.from_bytes(os.urandom(4), "big") * 1000
