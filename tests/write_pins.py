"""Write the golden answers of every search anew: ``python tests/write_pins.py``.

Right only where answers are meant to change. ``--saved`` writes saved explainers too, which is for
a new version of the file format: those of old versions must stay as they were written.
"""

from __future__ import annotations

import sys

import test_golden_searches
import test_saved_versions

if __name__ == "__main__":
    test_golden_searches.write()
    if "--saved" in sys.argv[1:]:
        test_saved_versions.write()
