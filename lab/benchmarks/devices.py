"""Wall-clock seconds of the methods with networks on each device that torch sees.

``PYTHONPATH=benchmarks python lab/benchmarks/devices.py`` fits and explains one cell of the
comparison (its first network and draw, 100 people) on every data set in the paper's form, on the
CPU with one thread and on a GPU if there is one, and writes ``out/bench/devices.csv``. Part of a
run: ``--datasets german``, ``--devices cuda``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import McceWarning
from mcce_lab import baselines
from mcce_lab.experiments import Options
from mcce_lab.experiments.compare_cases import ComparisonCell, DrawnCell, draw_cell
from measure import OUT, log

METHODS = ("CCHVAE", "Wachter", "REViSE", "CLUE", "CRUDS", "CEM")
DATASETS = ("german", "fico", "adult", "gmc")


def main() -> None:
    """Measure, print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--datasets", nargs="+", default=DATASETS)
    parser.add_argument("--devices", nargs="+", default=_devices())
    given = parser.parse_args()
    warnings.simplefilter("ignore", McceWarning)
    options = Options(("german",), given.data, 1, OUT, quick=False)
    lines = []
    with threadpool_limits(1):
        for name in given.datasets:
            draw = draw_cell(ComparisonCell(name, "network", 0, 0), options)
            for line in _measure(name, draw, given.devices):
                log(
                    " ".join(
                        f"{value:.2f}" if isinstance(value, float) else str(value)
                        for value in line.values()
                    )
                )
                lines.append(line)
    OUT.mkdir(parents=True, exist_ok=True)
    pd.DataFrame(lines).to_csv(OUT / "devices.csv", index=False, float_format="%.2f")


def _devices() -> list[str]:
    import torch

    return ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


def _measure(name: str, draw: DrawnCell, devices: list[str]) -> Iterator[dict[str, Any]]:
    """Seconds of every method on every device, after a first small fit that wakes the device up."""
    case = draw.case
    for device in devices:
        for method in METHODS:
            make = getattr(baselines, method)
            explainer = make(case.predictor, case.desired, immutable=case.immutable, device=device)
            explainer.fit(draw.train.iloc[::50]).explain(draw.people.head(2))
            started = time.perf_counter()
            explainer.fit(draw.train)
            fitted = time.perf_counter()
            result = explainer.explain(draw.people)
            yield {
                "dataset": name,
                "method": method,
                "device": device,
                "fit_seconds": fitted - started,
                "search_seconds": time.perf_counter() - fitted,
                "answered": int((result.people["status"] == "answered").sum()),
                "people": len(draw.people),
            }


if __name__ == "__main__":
    main()
