"""Importing the package is light and pulls in no optional library."""

from __future__ import annotations

import subprocess
import sys


def test_no_optional_library_is_loaded_by_the_import():
    code = "import sys, mcce; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    loaded = set(done.stdout.split())

    assert not loaded & {"torch", "tqdm", "matplotlib", "dask", "flask", "fastapi", "polars"}


def test_public_names_are_sorted_and_there():
    import mcce

    plain = [name for name in mcce.__all__ if not name.startswith("_")]
    assert plain == sorted(plain, key=lambda name: (not name.isupper(), name))
    assert all(hasattr(mcce, name) for name in mcce.__all__)
