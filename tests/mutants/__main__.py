"""Plant each bug in a copy of the project and see which tests notice: ``python tests/mutants``.

Every ``*.patch`` beside this file is a mutant: its first line says what is wrong, the rest is the
change. The copy is made of the files that git knows, as they are now; a mutant of compiled code is
built there. Prints one row of a Markdown table per mutant; exit status 1 says that one survived.

    python tests/mutants                                every mutant, the tests of ``make test``
    python tests/mutants stale-score label-swapped      these two
    python tests/mutants control                        nothing is planted: all tests must pass
    python tests/mutants --maxfail 5 -- tests/golden    further words are for pytest
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
MUTANTS = {path.stem: path for path in sorted(FOLDER.glob("*.patch"))}
# Lets the copy win over an editable install, also in the processes that tests start.
SITECUSTOMIZE = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "ScikitBuild" not in type(f).__name__]
"""


def main() -> int:
    arguments = parse()
    print("| mutant | what is wrong | tests that fail |\n|---|---|---|")
    if arguments.mutants == ["control"]:
        return 1 if is_caught("control", arguments) else 0
    survivors = [name for name in arguments.mutants if not is_caught(name, arguments)]
    caught = len(arguments.mutants) - len(survivors)
    print(f"\n{caught} of {len(arguments.mutants)} caught; survivors: {survivors}", flush=True)
    return 1 if survivors else 0


def is_caught(name: str, arguments: argparse.Namespace) -> bool:
    """Run the tests on a mutant and print its row."""
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy = Path(folder)
        plant(MUTANTS.get(name), arguments.root, copy)
        words = ["-n", str(arguments.jobs), "-q", "--tb=no", "-rfE", "-p", "no:cacheprovider"]
        words += [f"--maxfail={arguments.maxfail}"] if arguments.maxfail else []
        # A planted bug cannot be planted again, which a test here would notice.
        words += ["--ignore=tests/mutants", *(arguments.pytest or ["-m", "not slow"])]
        environment = {
            "PYTHONPATH": os.pathsep.join([f"{copy}/site", f"{copy}/src", f"{copy}/lab"])
        }
        environment = {"HYPOTHESIS_PROFILE": "mutants"} | os.environ | environment
        command = [sys.executable, "-m", "pytest", *words]
        done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True)
    # 2 says that a file could not even be collected.
    if done.returncode not in (0, 1, 2):
        sys.exit(f"{name}: pytest ended with {done.returncode}\n{done.stdout[-2000:]}{done.stderr}")
    failed = re.findall(r"^(?:FAILED|ERROR) ([^\s\[]+)", done.stdout, re.MULTILINE)
    what = MUTANTS[name].read_text().splitlines()[0] if name in MUTANTS else "Nothing."
    print(f"| {name} | {what} | {listed(failed)} |", flush=True)
    return bool(failed)


def plant(patch: Path | None, root: Path, copy: Path) -> None:
    """Copy the project and change it as the patch says, compiled code included."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, check=True)
    for name in filter(None, names.stdout.decode().split("\0")):
        if (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name)
    if patch is not None:
        subprocess.run(["git", "apply", str(patch)], cwd=copy, check=True)
    (copy / "site").mkdir()
    (copy / "site" / "sitecustomize.py").write_text(SITECUSTOMIZE)
    kernels = copy / "src/mcce/kernels"
    if patch is None or "+++ b/native/" not in patch.read_text():
        from mcce.kernels import _native

        shutil.copy2(_native.__file__, kernels)
        return
    build = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", f"{copy}/wheel", copy]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (copy / "wheel").glob("*.whl")
    with zipfile.ZipFile(wheel) as members:
        (native,) = [n for n in members.namelist() if "/_native." in n and not n.endswith(".pyi")]
        (kernels / Path(native).name).write_bytes(members.read(native))


def listed(failed: list[str]) -> str:
    """Failed tests by folder of tests, with an example each."""
    if not failed:
        return "**none**"
    places = Counter(re.sub(r"^(tests/\w+|src)\b.*", r"\1", test) for test in failed)
    return f"{len(failed)}: " + ", ".join(f"{at} {n}" for at, n in places.most_common())


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mutants", nargs="*", help="names of patches; all unless given")
    parser.add_argument("--jobs", type=int, default=2, help="pytest's workers")
    parser.add_argument("--maxfail", type=int, default=0, help="stop after so many failed tests")
    parser.add_argument("--root", type=Path, default=FOLDER.parents[1], help="another checkout")
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    arguments = parser.parse_args(words[:cut])
    arguments.pytest = words[cut + 1 :]
    arguments.mutants = arguments.mutants or list(MUTANTS)
    if "control" in arguments.mutants[1:]:
        parser.error("control goes alone")
    unknown = [name for name in arguments.mutants if name not in {*MUTANTS, "control"}]
    if unknown:
        parser.error(f"there is no mutant {unknown[0]!r}; there are {', '.join(MUTANTS)}")
    return arguments


sys.exit(main())
