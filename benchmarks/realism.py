"""What a rule on one feature costs in realism: implausible and contradictory answers.

``python benchmarks/realism.py [--people 60] [--rows 3000] [names of tables]``: people are explained
without a rule, and with one rule on one number each: a range, a largest change, the number frozen,
or immutable. Searches see one half of the rows. Their answers are judged by a model of the other
half, fitted without rules: a search would always pass its own. An answer is implausible if fewer
than 1 % of the accepted rows there are as strange as it is, and the person's own row is not; it is
broken if a relation that holds in all rows of that half holds in the person's row but not in the
answer. A rule should raise the share of implausible answers by one point at most.

The last columns are of the same search without back-off: how many people have an answer, and how
many of 1,000 draws are distinct, with and without it.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier

from cases import DATA
from mcce import MCCE, McceWarning, Search
from mcce.candidates import CandidateRows, pair_rows
from mcce.constraints import Constraint, between, change, frozen
from mcce.constraints.limits import FactualLimits
from mcce.generate import Block, generate
from mcce.postprocess.filters import IsPlausible, KeepsRelation
from mcce_lab import datasets
from mcce_lab.datasets import DatasetError
from measure import Table, log

SEARCHES = ("paper", "sparse", "balanced", "plausible", "near", "fast")
MIN_PLAUSIBILITY = 0.01
N_DRAWS = 1_000


@dataclass(frozen=True, eq=False)
class Case:
    """A table with a predictor, the people to explain, and the number that rules are about.

    ``unseen`` are rows that searches do not get; the judge is fitted on them.
    """

    name: str
    train: pd.DataFrame
    unseen: pd.DataFrame
    people: pd.DataFrame
    immutable: list[str]
    predictor: Any
    number: str


def main() -> None:
    """Print one table per case."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--people", type=int, default=60)
    parser.add_argument("--rows", type=int, default=6_000, help="half of them for the judge")
    parser.add_argument("names", nargs="*", default=[])
    given = parser.parse_args()
    for name in given.names or ("services", *NUMBERS):
        try:
            case = load(name, given.rows, given.people)
        except (FileNotFoundError, DatasetError) as error:
            log(f"{name} is skipped: {error} (data are expected in ../shared)")
            continue
        print(measure(case).markdown(), flush=True)


# The number of each data set that rules are about.
NUMBERS = {
    "german": "CreditAmount",
    "adult": "education-num",
    "gmc": "MonthlyIncome",
    "fico": "NumTotalTrades",
}


def load(name: str, n_rows: int, n_people: int) -> Case:
    """A table by name, with a boosted predictor that was trained on it."""
    if name == "services":
        frame, target = services(np.random.default_rng(0), n_rows)
        immutable, number = ["senior"], "price"
    else:
        data = datasets.load(cast("Any", name), folder=DATA)
        chosen = np.sort(np.random.default_rng(0).permutation(len(data.features))[:n_rows])
        texts = data.features.select_dtypes(exclude="number").columns
        frame = data.features.astype(dict.fromkeys(texts, "category")).iloc[chosen]
        frame = frame.reset_index(drop=True)
        target = (data.target == data.desired).to_numpy()[chosen]
        immutable, number = data.immutable, NUMBERS[name]
    model = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=60, random_state=0
    ).fit(frame, target)
    train, unseen = frame.iloc[::2], frame.iloc[1::2]
    people = train[model.predict_proba(train)[:, 1] < 0.5].head(n_people)
    return Case(name, train, unseen, people.reset_index(drop=True), immutable, model, number)


def services(rng: np.random.Generator, n_rows: int) -> tuple[pd.DataFrame, Any]:
    """Customers of a telephone company: a price list, and what they have paid so far."""
    internet = rng.choice(["none", "dsl", "fiber"], n_rows, p=[0.2, 0.35, 0.45])
    streaming = np.where(internet == "none", "no internet", rng.choice(["no", "yes"], n_rows))
    support = np.where(internet == "none", "no internet", rng.choice(["no", "yes"], n_rows))
    contract = rng.choice(["month", "year", "two years"], n_rows, p=[0.55, 0.2, 0.25])
    longest = np.where(contract == "month", 40, 72)
    tenure = np.minimum(1 + rng.exponential(longest / 2).astype(int), 72)
    price = 20.0 + 25.0 * (internet == "dsl") + 50.0 * (internet == "fiber")
    price += 10.0 * (streaming == "yes") + 5.0 * (support == "yes")
    total = (tenure * price * (1 + 0.02 * rng.standard_normal(n_rows))).round(2)
    stays = 0.06 * tenure - 0.03 * price + 1.5 * (contract != "month") + 1.0 * (support == "yes")
    frame = pd.DataFrame(
        {
            "senior": rng.choice(["no", "yes"], n_rows, p=[0.8, 0.2]),
            "internet": internet,
            "streaming": streaming,
            "support": support,
            "contract": contract,
            "tenure": tenure,
            "price": price,
            "total": total,
        }
    )
    texts = frame.select_dtypes(exclude="number").columns
    noise = rng.logistic(size=n_rows)
    return frame.astype(dict.fromkeys(texts, "category")), stays + noise > 0.3


def rules_on(case: Case) -> dict[str, tuple[list[Constraint], list[str]]]:
    """No rule, and each rule on the number: constraints, and further immutable columns."""
    column = case.train[case.number]
    low, high = np.nanquantile(column, [0.1, 0.9], method="nearest")
    most = float(column.std()) / 2
    return {
        "no rule": ([], []),
        "between": ([between(case.number, low, high)], []),
        "change": ([change(case.number, at_most=most)], []),
        "frozen": ([frozen(case.number)], []),
        "immutable": ([], [case.number]),
    }


def measure(case: Case) -> Table:
    """The table of a case."""
    judge, usual = fit(case, [], case.unseen), fit(case, [], case.train)
    lines = []
    for rule, (constraints, immutable) in rules_on(case).items():
        explainer = fit(case, immutable, case.train) if immutable else usual
        drawn = [str(n_distinct(explainer, case, constraints, off)) for off in (False, True)]
        for name in SEARCHES:
            log(f"{case.name}, {rule}, {name}")
            search = Search.preset(cast("Any", name))
            answers, owner = answers_of(explainer, case, constraints, search)
            plain, _ = answers_of(explainer, case, constraints, replace(search, back_off=False))
            shares = judged(judge, case, answers, owner)
            cells = [f"{100 * share:.1f}" for share in shares]
            lines.append([rule, name, *cells, str(len(answers)), str(len(plain)), *drawn])
    headings = ["rule", "search", "implausible, %", "broken, %", "answered"]
    headings += ["without back-off", "distinct draws", "without back-off"]
    note = f"{len(case.people)} people, {len(case.train)} training rows; rules on {case.number}."
    return Table(case.name, headings, lines, note)


def fit(case: Case, immutable: Sequence[str], rows: pd.DataFrame) -> MCCE:
    """An explainer that has learned from some rows what every search needs."""
    columns = sorted({*case.immutable, *immutable})
    explainer = MCCE(
        case.predictor, (0.5, 1.0), immutable=columns, search="balanced", random_state=0
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        return explainer.fit(rows)


def answers_of(
    explainer: MCCE, case: Case, constraints: list[Constraint], search: Search
) -> tuple[pd.DataFrame, Any]:
    """Answers of a search, and whose they are."""
    explainer.set_params(search=search, constraints=constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(case.people)
    factual = result.frame.index.get_level_values("factual")
    return result.frame, case.people.index.get_indexer(factual)


def judged(judge: MCCE, case: Case, answers: pd.DataFrame, owner: Any) -> tuple[float, float]:
    """Shares of answers that are implausible, and that break a relation."""
    if not len(answers) or judge.plausibility_ is None:
        return 0.0, 0.0
    rows = judge.schema_.encode(case.people)
    paired = pair_rows(rows, owner, answers[case.train.columns].reset_index(drop=True), 1)
    who = np.arange(owner.size)
    selected: CandidateRows = paired.select(who, np.zeros_like(who))
    strange = ~IsPlausible(judge.plausibility_, MIN_PLAUSIBILITY).keeps(selected)
    broken = np.zeros(len(answers), dtype=bool)
    for found in judge.fitted_.relations or ():
        if found.enforced:
            broken |= ~KeepsRelation(found.relation).keeps(selected)
    return float(strange.mean()), float(broken.mean())


def n_distinct(explainer: MCCE, case: Case, constraints: list[Constraint], off: bool) -> int:
    """Distinct draws of a person among 1,000, on average, with back-off or without it."""
    explainer.set_params(constraints=constraints)
    bound = explainer._bind(None, explainer.fitted_)
    personal = FactualLimits(bound, explainer.schema_.encode(case.people))
    everybody = np.argsort(personal.group, kind="stable")
    candidates = generate(
        explainer.fitted_.generator,
        personal,
        Block(everybody, personal.group[everybody]),
        np.arange(N_DRAWS),
        explainer.fitted_.seed,
        n_from_leaves=None if off else 100,
    )
    return round(float(candidates.distinct[candidates.group].sum(axis=1).mean()))


if __name__ == "__main__":
    main()
