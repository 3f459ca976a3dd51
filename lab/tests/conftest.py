"""Settings and data that the tests of the lab share."""

import shutil
from pathlib import Path

import pytest

import profiles  # noqa: F401  (loads a profile of hypothesis)

BESIDE = Path(__file__).resolve().parents[3] / "shared"


@pytest.fixture(scope="session")
def reference_folder() -> Path:
    """Answers of the paper's authors, if they lie beside the checkout."""
    folder = BESIDE / "reference"
    if not folder.is_dir():
        pytest.skip("the authors' answers are not beside the checkout")
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The paper's data sets, if they lie beside the checkout."""
    folder = BESIDE / "data"
    if not folder.is_dir():
        pytest.skip("the paper's data sets are not beside the checkout")
    return folder


@pytest.fixture(scope="session")
def kept_networks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of black boxes that holds the networks of German Credit: no torch is needed."""
    folder = tmp_path_factory.mktemp("cache")
    return Path(shutil.copytree(Path(__file__).parent / "data/networks", folder / "networks"))


@pytest.fixture
def bench_cache(kept_networks: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That cache, in use."""
    monkeypatch.setenv("MCCE_CACHE", str(kept_networks))
    return kept_networks
