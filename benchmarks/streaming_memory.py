"""Peak memory of ``mcce explain`` over few and over many people.

``python benchmarks/streaming_memory.py --rows 20000 2000000``: the last peak should be that of the
first, give or take what the allocator keeps.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from people_files import PREDICTOR, write_files


def main() -> None:
    """Print the peak of each run, and the largest difference from the first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[20_000, 2_000_000])
    parser.add_argument("--search", default="paper")
    parser.add_argument("--desired", default="0.5:")
    parser.add_argument("--suffix", default=".parquet")
    options = parser.parse_args()
    peaks = []
    for n_people in options.rows:
        with tempfile.TemporaryDirectory() as name:
            os.chdir(name)
            write_files(Path(name), n_people, options.search, options.desired)
            began = time.monotonic()
            peaks.append(peak(Path(f"answers{options.suffix}")))
        seconds = time.monotonic() - began
        print(f"{n_people:>9} people: peak {peaks[-1]:6.0f} MB, {seconds:6.1f} s", flush=True)
    print(f"difference: {max(peaks) - peaks[0]:.0f} MB")


def peak(output: Path) -> float:
    """Megabytes of the largest resident set of one run."""
    command = [sys.executable, "-m", "mcce", "explain", "bank.mcce", "people.csv", "--quiet"]
    process = subprocess.Popen([*command, "--predictor", PREDICTOR, "-o", str(output)])
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(f"mcce explain ended with {process.returncode}")
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return float(used.ru_maxrss) / unit


if __name__ == "__main__":
    main()
