"""What to tell a declined applicant: the whole of ``make demo``.

A gradient-boosting classifier learns on German Credit who is a good risk and declines some of the
held-out applicants. ``mcce`` looks for changes that would turn each refusal into an acceptance, and
that the applicant can make: the rules that come with the data say what is possible. Prints what a
case handler would read; writes the full result to ``out/german_credit/``.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from mcce import MCCE, Counterfactuals, McceWarning, TreeChain
from mcce.datasets import load_german_credit

OUT = Path("out", "german_credit")
SEED = 2023
N_SHOWN = 6

IMMUTABLE = ["Age", "Sex", "ForeignWorker"]
WORDS = {
    "CreditAmount": "borrow {after:,} DM instead of {before:,} DM",
    "Duration": "repay within {after} months instead of {before}",
    "CheckingStatus": "keep {after} in the checking account (now {before})",
    "Savings": "have {after} in savings (now {before})",
    "EmploymentSince": "apply once employed for {after} (now {before})",
    "OtherDebtors": "bring a {after}",
    "OtherInstallmentPlans": "pay off the other installment plan ({before})",
    "ExistingCredits": "pay off all but {after} of {before} credits at this bank",
}


def main() -> None:
    """Train, decline, explain, show, save."""
    german = load_german_credit()
    train, test, y_train, _ = train_test_split(
        german.features, german.target, test_size=0.25, stratify=german.target, random_state=SEED
    )
    predictor = HistGradientBoostingClassifier(
        categorical_features="from_dtype", max_iter=60, random_state=SEED
    ).fit(train, y_train)
    declined = test[predictor.predict(test) == "bad"]
    print(f"\n{german.card['name']}: {len(declined)} of {len(test)} applicants are declined.")
    print(f"Caution: {str(german.card['caution']).rsplit('. ', 1)[-1]}")
    explainer = MCCE(
        predictor,
        desired="good",
        immutable=IMMUTABLE,
        constraints=german.rules,
        # Rules leave few values to draw: larger leaves offer more of them.
        generator=TreeChain(min_samples_leaf=20),
        n_counterfactuals=3,
        diversity=0.5,
        random_state=SEED,
    ).fit(train)
    with warnings.catch_warnings():
        # The warning says that some have no answer; the output below says who and why.
        warnings.simplefilter("ignore", McceWarning)
        result = explainer.explain(declined)
        show(result)
        # Which rules stand in the way is a yes or no, so one answer each will do.
        explainer.set_params(search="sparse", n_counterfactuals=1, diversity=None)
        show_unanswered(result, explainer.relax(declined.loc[result.missing.index]))
    save(result)


def show(result: Counterfactuals[pd.DataFrame]) -> None:
    """The first few applicants, each with one line per way to a yes."""
    answered = result.frame.index.unique("factual")
    print(f"\n{len(answered)} have an answer. The first {N_SHOWN}:")
    for label in answered[:N_SHOWN]:
        person, score = result.factuals.loc[label], result.people.loc[label, "score"]
        loan = f"{person['CreditAmount']:,} DM over {person['Duration']} months"
        print(f"\nApplicant {label} ({person['Sex']}, {person['Age']}; {loan}; score {score:.2f})")
        answers = result.frame.loc[label]
        for _, answer in answers.iterrows():
            print(f"  - {', and '.join(describe(person, answer).values())}")


def describe(person: pd.Series, answer: pd.Series) -> dict[str, str]:
    """What an answer asks a person to do, in words, by feature."""
    return {
        name: sentence.format(before=words(person[name]), after=words(answer[name]))
        for name, sentence in WORDS.items()
        if person[name] != answer[name]
    }


def words(value: Any) -> Any:
    """A level without its symbols; numbers as they are."""
    symbols = {"<0 DM": "overdrawn", ">=": "at least ", "<": "under "}
    for symbol, word in symbols.items() if isinstance(value, str) else ():
        value = value.replace(symbol, word)
    return value


def show_unanswered(result: Counterfactuals[pd.DataFrame], relaxed: pd.DataFrame) -> None:
    """Who has no answer, why, and which rule alone stands in the way."""
    if not len(result.missing):
        return
    print(f"\nNo answer was found for {len(result.missing)}:")
    for label, reason in result.missing["reason"].items():
        lifted = relaxed.loc[(relaxed["factual"] == label) & relaxed["answered"], "lifted"]
        print(f"\nApplicant {label}: {reason}")
        print(f"  Lifting one of these rules alone would help: {'; '.join(lifted) or 'none'}.")


def save(result: Counterfactuals[pd.DataFrame]) -> None:
    """The full result as CSV files."""
    OUT.mkdir(parents=True, exist_ok=True)
    for name in ("frame", "measures", "people"):
        getattr(result, name).to_csv(OUT / f"{name}.csv")
    print(f"\nEverybody's answers and measures: {OUT.as_posix()}/\n")


if __name__ == "__main__":
    # With so few rows, threads on a busy machine would mostly wait for each other.
    with threadpool_limits(limits=1):
        main()
