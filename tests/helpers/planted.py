"""Training rows and people whose cells, levels and labels cannot be mistaken."""

from __future__ import annotations

import logging
import traceback
import warnings
from typing import Any

import numpy as np
import pandas as pd

from mcce import MCCE

WORD, NUMBER, DAY = "Qvortrup", 918273.625, "1987-06-05"
# Parts of what is planted, as any repr would show them.
TRACES = (WORD, WORD.upper(), WORD.lower(), "918273", "9.18273", DAY, "1987, 6, 5", "5498496")
LEVELS = [f"{WORD} clerk", f"{WORD} pilot", f"{WORD} judge"]
N_TRAIN = 60


def training() -> pd.DataFrame:
    """Numbers, levels and dates, all planted; the labels of the rows are, too."""
    rng = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": rng.integers(20, 60, N_TRAIN),
            "wage": NUMBER + rng.integers(0, 9, N_TRAIN) / 8,
            "job": rng.choice(LEVELS, N_TRAIN),
            "rank": pd.Categorical(rng.choice(LEVELS, N_TRAIN), LEVELS, ordered=True),
            "since": pd.to_datetime(DAY) + pd.to_timedelta(rng.integers(0, 3, N_TRAIN), unit="h"),
        },
        index=[f"{WORD} {row}" for row in range(N_TRAIN)],
    )


def people() -> pd.DataFrame:
    """Two of them who are declined."""
    frame = training()
    return frame[predictor(frame) < 0.5].head(2)


def predictor(frame: pd.DataFrame) -> np.ndarray:
    """Accepts everybody of 40 or more."""
    return np.asarray(frame["age"], dtype=float) / 80


def explainer(f: Any = predictor, desired: Any = (0.5, 1.0), **settings: Any) -> MCCE:
    return MCCE(f, desired, **{"random_state": 0, "n_samples": 20} | settings)


def fitted(**settings: Any) -> MCCE:
    return explainer(**settings).fit(training())


def told_by(call: Any, caplog: Any) -> str:
    """All that a call tells by an exception, with its whole chain, by warnings and by logs."""
    texts = []
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            call()
        except Exception as error:
            texts += ["".join(traceback.format_exception(error)), str(error), repr(error)]
            texts += [str(getattr(error, "__notes__", ""))]
    texts += [str(warning.message) for warning in caught]
    assert texts, "the call neither raised nor warned"
    return "\n".join([*texts, caplog.text])


def traces_in(text: str) -> list[str]:
    """What of the planted data a text shows, with the lines that do, less quoted source code."""
    lines = [line for line in text.splitlines() if not line.startswith("    ")]
    return [line for line in lines if any(trace in line for trace in TRACES)]
