"""Look for inputs that break mcce: ``python tests/fuzz``, or ``make fuzz``.

Every case has a kind and a seed, which give the same case again: ``python tests/fuzz files
--seed 17``. Anything but success or an error of ours is a finding: crashes, hangs, sanitizer
reports, other exceptions and broken promises. Exit status 1 says that there was one.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
sys.path[:0] = [str(FOLDER), str(FOLDER.parent / "helpers")]

from fuzz_kinds import KINDS  # noqa: E402
from fuzz_report import Report  # noqa: E402
from fuzz_runner import Campaign, cases_for, fresh_start, seeds_from  # noqa: E402
from fuzz_worker import serve  # noqa: E402


def main() -> int:
    arguments = parse()
    if arguments.worker:
        serve()
        return 0
    kinds = arguments.kinds or list(KINDS)
    seconds = arguments.seconds / sum(KINDS[kind].share for kind in kinds)
    n_findings = 0
    for kind in kinds:
        total = run(kind, seconds * KINDS[kind].share, arguments)
        report_progress(kind, total)
        n_findings += len(total.broken)
    print(f"{n_findings} findings")
    return 1 if n_findings else 0


def run(kind: str, seconds: float, arguments: argparse.Namespace) -> Report:
    """All cases of a kind."""
    one = arguments.seed is not None
    start = arguments.seed if one else arguments.start
    seeds = seeds_from(start, 1 if one else arguments.count)
    endless = one or arguments.count is not None or arguments.answers is not None
    ends = (lambda total: False) if endless else cases_for(seconds)
    if arguments.answers is not None:
        ends = lambda total: total.counts["answers"] >= arguments.answers
    options: dict[str, Any] = {"threads": arguments.threads}
    if arguments.span is not None:
        options["span"] = arguments.span
    print(f"{kind}: {KINDS[kind].about}; from seed {start}", flush=True)
    n_jobs = arguments.jobs if KINDS[kind].parallel else 1
    return Campaign(kind, seeds, options, ends, report_finding, report_progress).run(n_jobs)


def report_finding(kind: str, seed: int, message: str) -> None:
    print(f"FOUND {kind} {seed}: {message}\n  again: make fuzz KIND={kind} SEED={seed}", flush=True)


def report_progress(kind: str, total: Report) -> None:
    print(f"{kind}: {total.summary()}", flush=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)}; or all")
    parser.add_argument("--seconds", type=float, default=180.0, help="for all kinds together")
    parser.add_argument("--seed", type=int, help="run this case alone")
    parser.add_argument("--start", type=int, default=fresh_start(), help="the first seed")
    parser.add_argument("--count", type=int, help="so many cases, however long they take")
    parser.add_argument("--answers", type=int, help="frames: until so many answers are checked")
    parser.add_argument("--jobs", type=int, default=2, help="worker processes")
    parser.add_argument("--threads", type=int, default=4, help="threads: so many that explain")
    parser.add_argument("--span", type=float, help="threads: seconds of one case")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    unknown = [kind for kind in arguments.kinds if kind not in KINDS]
    if unknown:
        parser.error(f"there is no kind {unknown[0]!r}; the kinds are {', '.join(KINDS)}")
    return arguments


sys.exit(main())
