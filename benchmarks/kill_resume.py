"""Kill ``mcce explain`` at random moments, resume, and compare with an uninterrupted run.

``python benchmarks/kill_resume.py --rows 200000 --kills 20 --search paper``. Every trial starts a
run of its own, ends it with SIGKILL at a moment drawn from the duration of the uninterrupted run,
resumes it to the end and compares the output byte by byte.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from people_files import PREDICTOR, write_files

MCCE = [sys.executable, "-m", "mcce"]


def main() -> None:
    """Run the trials and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--search", default="paper")
    parser.add_argument("--block-rows", type=int, default=5000)
    parser.add_argument("--suffix", default=".parquet")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        write_files(Path(name), options.rows, options.search)
        whole = Path(f"whole{options.suffix}")
        began = time.monotonic()
        subprocess.run(command(whole, options.block_rows), check=True)
        seconds = time.monotonic() - began
        print(f"{options.search}: {options.rows} people, uninterrupted {seconds:.1f} s", flush=True)
        chance = random.Random(options.seed)
        equal: list[bool] = []
        while len(equal) < options.kills:
            moment = chance.uniform(0, seconds)
            equal += trial(len(equal), moment, whole, options.block_rows)
    print(f"{options.search}: {sum(equal)} of {len(equal)} equal to the uninterrupted run")
    sys.exit(not all(equal))


def command(output: Path, block_rows: int, *more: str) -> list[str]:
    """The command that explains the people."""
    files = ["explain", "bank.mcce", "people.csv", "--predictor", PREDICTOR, "-o", str(output)]
    return [*MCCE, *files, "--block-rows", str(block_rows), "--quiet", *more]


def trial(number: int, moment: float, whole: Path, block_rows: int) -> list[bool]:
    """Whether a run that is killed and resumed gives the same bytes; [] if it ended before."""
    output = Path(f"trial{number}{whole.suffix}")
    process = subprocess.Popen(command(output, block_rows))
    try:
        process.wait(moment)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    else:
        output.unlink()
        return []
    folder = output.with_name(f"{output.name}.parts")
    n_parts = len(list(folder.glob("_part-*.json"))) if folder.is_dir() else 0
    state = "joined" if output.exists() else f"{n_parts} parts"
    subprocess.run(command(output, block_rows, "--resume"), check=True)
    equal = filecmp.cmp(whole, output, shallow=False) and not folder.exists()
    said = "equal" if equal else "DIFFERENT"
    print(f"  {number:2d}: killed at {moment:6.1f} s, {state}: {said}", flush=True)
    output.unlink()
    return [equal]


if __name__ == "__main__":
    main()
