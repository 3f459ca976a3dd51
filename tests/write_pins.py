"""Write the golden answers of every search anew: ``python tests/write_pins.py``.

Right only where answers are meant to change. ``--saved`` writes saved explainers too, which is for
a new version of the file format: those of old versions must stay as they were written.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

TESTS = Path(__file__).parent

if __name__ == "__main__":
    sys.path.insert(0, str(TESTS / "helpers"))
    runpy.run_path(str(TESTS / "test_golden_searches.py"))["write"]()
    if "--saved" in sys.argv[1:]:
        runpy.run_path(str(TESTS / "saving" / "test_versions.py"))["write"]()
