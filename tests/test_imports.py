"""Importing the package is light and pulls in no optional library."""

from __future__ import annotations

import re
import subprocess
import sys

# The required libraries, and what they bring along themselves.
REQUIRED = {"numpy", "pandas", "sklearn"}
THEIRS = {"scipy", "joblib", "threadpoolctl", "narwhals", "dateutil", "six", "pytz", "tzdata"}
THEIRS |= {"pyarrow", "numexpr", "bottleneck"}  # pandas takes these where they are installed


def imported_by(statement):
    """Module by module, the microseconds that importing it took by itself."""
    command = [sys.executable, "-X", "importtime", "-c", statement]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    lines = re.findall(r"import time: +(\d+) \| +\d+ \| +(\S+)", told)
    return {module: int(own) for own, module in lines}


def own_time(imported):
    return sum(spent for module, spent in imported.items() if module.partition(".")[0] == "mcce")


def test_the_import_loads_nothing_but_the_required_libraries_and_takes_no_time_of_its_own():
    before = imported_by("import numpy, pandas, sklearn.base, sklearn.utils")
    after = imported_by("import mcce")

    loaded = {module.partition(".")[0] for module in set(after) - set(before)}
    strangers = loaded - REQUIRED - THEIRS - set(sys.stdlib_module_names) - {"mcce"}
    assert not {module for module in strangers if not module.startswith("_")}
    # A tenth of a second where it was measured; of several, so that a busy machine does no harm.
    assert min(own_time(after), *(own_time(imported_by("import mcce")) for _ in range(3))) < 500_000


def test_public_names_are_sorted_and_there():
    import mcce

    plain = [name for name in mcce.__all__ if not name.startswith("_")]
    assert plain == sorted(plain, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(mcce, name) for name in mcce.__all__)
