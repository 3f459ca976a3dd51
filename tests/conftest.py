"""Settings and small data that many tests share."""

import signal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import profiles  # noqa: F401  (loads a profile of hypothesis)

# Who starts tests in the background of a script has them ignore Ctrl-C, which some are about.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def reference_folder() -> Path:
    """Answers of the paper's authors, if they lie beside the checkout."""
    folder = Path(__file__).resolve().parents[2] / "shared" / "reference"
    if not folder.is_dir():
        pytest.skip("the authors' answers are not beside the checkout")
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
