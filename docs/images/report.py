"""Take the picture of a report: one person of German Credit, in a real browser.

Run it from the root of the repository: ``python docs/images/report.py CHROMIUM``, where CHROMIUM is
the path of the browser. It needs ``pip install ".[browser]"``, and writes
``docs/images/report.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
from playwright.sync_api import sync_playwright

from mcce import MCCE
from mcce.datasets import load_german_credit
from mcce.report import Labels, write_report

PERSON, WIDTH = 29, 1080


def main(browser: str) -> None:
    """Write a report on one person, open it, and take a picture of them."""
    with TemporaryDirectory() as folder, sync_playwright() as started:
        path = Path(folder, "report.html")
        write(path)
        opened = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        page = opened.new_page(viewport={"width": WIDTH, "height": 1400})
        page.goto(path.as_uri())
        page.locator("#person-0").scroll_into_view_if_needed()
        page.wait_for_timeout(500)
        page.locator("#person-0").screenshot(path=Path(__file__).with_name("report.png"))
        opened.close()


def write(path: Path) -> None:
    """A report on one declined applicant, as on the page about reports."""
    bank = load_german_credit().features[["Sex", "Duration", "CreditAmount", "Savings"]]
    explainer = MCCE(score, (0.5, np.inf), immutable=["Sex"], search="sparse", random_state=0)
    explainer.set_params(n_counterfactuals=3, diversity=0.5).fit(bank)
    write_report(explainer, explainer.explain(bank.iloc[[PERSON]]), path, Labels.bundled("german"))


def score(rows: pd.DataFrame) -> pd.Series[float]:
    """A bank that likes short terms, small loans and large savings."""
    saved = rows["Savings"] == ">=1000 DM"
    return 1.2 - rows["Duration"] / 40 - rows["CreditAmount"] / 20_000 + saved / 4


if __name__ == "__main__":
    main(sys.argv[1])
