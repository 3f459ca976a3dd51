"""Settings and small data that many tests share."""

import os
import shutil
import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, Phase, settings

# Who starts tests in the background of a script has them ignore Ctrl-C, which some are about.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "ci",
    deadline=None,
    derandomize=True,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("quick", parent=settings.get_profile("ci"), max_examples=30)
settings.register_profile("brief", parent=settings.get_profile("ci"), max_examples=10)
settings.register_profile("long", parent=settings.get_profile("ci"), max_examples=2000)
# For planted bugs: that an example fails is enough, the smallest one is not looked for.
settings.register_profile(
    "mutants", parent=settings.get_profile("quick"), phases=(Phase.explicit, Phase.generate)
)
# New examples each time, for `make fuzz`.
settings.register_profile(
    "fuzz",
    parent=settings.get_profile("ci"),
    derandomize=False,
    max_examples=int(os.environ.get("MCCE_FUZZ_EXAMPLES", "300")),
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


@pytest.fixture(scope="session")
def reference_folder() -> Path:
    """Answers of the paper's authors, if they lie beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("the authors' answers are not beside the checkout")
    return folder


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The paper's data sets, if they lie beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("the paper's data sets are not beside the checkout")
    return folder


@pytest.fixture
def bank() -> pd.DataFrame:
    """Customers of a bank, as in the introduction of the paper."""
    chance = np.random.default_rng(7)
    n_train = 1000
    age = chance.integers(20, 70, n_train)
    return pd.DataFrame(
        {
            "age": age,
            "sex": chance.choice(["female", "male"], n_train),
            "salary": 4000 * (7 + age // 8 + chance.integers(0, 12, n_train)),
            "defaulted_last_year": chance.random(n_train) < 0.2,
        }
    )


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
