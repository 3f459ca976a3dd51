"""What releases leak, and what an audit costs: ``python benchmarks/privacy.py``.

For each case, search and release the attacks that find most, beside the null, and the CPU seconds
of the attacks alone: without fit and explain. Rows of each case are split as ``split_and_audit``
does. Data are in a folder ``shared`` next to the checkout; cases without data are skipped.
"""

from __future__ import annotations

import sys
import warnings
from functools import partial
from typing import Any

import numpy as np

from cases import load
from mcce import McceWarning, TreeChain, privacy
from mcce.privacy.auditing import release_answers, release_rows
from mcce_lab.experiments.case import Case
from measure import Table, cpu, write

CASES = ("german", "adult", "fico", "gmc")
RELEASES = (("paper", "answers"), ("balanced", "answers"), ("paper", "rows"))
FIGURES = (
    *("copies", "value_copies", "holdout_share", "distance_auc", "calibrated_auc"),
    *("rare_values_auc", "rare_values_tpr_1%"),
)
N_PEOPLE, MAX_ROWS = 1_000, 30_000


def main(names: tuple[str, ...]) -> None:
    """Print the table."""
    warnings.simplefilter("ignore", McceWarning)
    cases = [case for case in map(load, names) if case is not None]
    lines = [_audit(case, *release) for case in cases for release in RELEASES]
    headings = ["case", "search", "release", "rows", *FIGURES, "attacks, s"]
    table = Table("Privacy audits", headings, lines)
    print(table.markdown())
    write([table], "privacy")


def _audit(case: Case, search: str, release: str) -> list[str]:
    people = case.train.sample(frac=1, random_state=0).iloc[:MAX_ROWS]
    n = len(people) * 2 // 5
    training, holdout, reference = people[:n], people[n : 2 * n], people[2 * n :]
    explainer = case.explainer().set_params(search=search, n_samples=None, random_state=0)
    explainer.set_params(generator=TreeChain(decisions=(False, True))).fit(training)
    options: dict[str, Any] = {"immutable": case.immutable}
    if release == "answers":
        made, options["factuals"] = release_answers(explainer, reference.iloc[:N_PEOPLE])
    else:
        made = release_rows(explainer, reference, n)
    attack = partial(
        privacy.audit_rows, made, training, holdout, reference, **options, random_state=0
    )
    seconds, found = cpu(attack)
    cells = [_cell(found[name]) for name in FIGURES]
    return [case.name, search, release, str(len(made)), *cells, f"{seconds:.1f}"]


def _cell(figure: privacy.Figure) -> str:
    mark = {"leak": "!", "reversed": "!", "hint": "?"}.get(figure.finding, "")
    return "-" if np.isnan(figure.value) else f"{figure.value:.3f} ({figure.null:.3f}){mark}"


if __name__ == "__main__":
    main(tuple(sys.argv[1:]) or CASES)
