from __future__ import annotations

import os
import sys

import pytest


@pytest.fixture(scope="session")
def importable():
    """Workers that engines start run the same Python with the same modules as this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield
