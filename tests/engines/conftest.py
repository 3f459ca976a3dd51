"""What clusters of engines need, and a folder in which commands run."""

from __future__ import annotations

import os
import shutil
import sys

import pytest

from bank_files import entered, fit_bank


@pytest.fixture(scope="session", autouse=True)
def importable():
    """Workers that engines start run the same Python with the same modules as this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        yield


@pytest.fixture(scope="session")
def fitted_bank(tmp_path_factory):
    return fit_bank(tmp_path_factory.mktemp("bank"))


@pytest.fixture
def here(fitted_bank, tmp_path):
    """A folder with data, predictors and a fitted explainer, as the current one."""
    shutil.copytree(fitted_bank, tmp_path, dirs_exist_ok=True)
    with entered(tmp_path):
        yield tmp_path
