"""The speed benchmark: ``make bench``.

CPU seconds of one thread in one process, ours and the baseline's alternating, the fastest of at
least three runs; also memory, growth and predictor rows. Prints one Markdown table per block and
writes all of them to ``out/bench/speed.md`` and ``speed.json`` after every block. "At least" and
"at most" are requirements of the project. Data are in a folder ``shared`` next to the checkout;
cases without data are skipped.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

import baseline
from cases import LOADERS, gaussian, load, with_distinct_ages
from mcce import McceWarning, Schema, TreeChain
from mcce.protocols import DrawRequest
from mcce_lab.experiments.case import Case
from measure import Seconds, Table, cpu, interleave, log, machine, times, write
from scaling import Scope, growth_block, memory_block, threads_block

FOUR = ("adult", "gmc", "fico", "german")
FIT_AT_LEAST = {"adult": 9.0, "gmc": 5.0, "fico": 6.0, "german": 3.5, "adult-all-levels": 4.5}
TOTAL_AT_LEAST = {"adult": 15.0, "gmc": 10.0, "fico": 15.0, "german": 6.0}
ROWS_AT_MOST = {"adult": 2.2, "german": 6.5, "adult-forest": 10.0, "fico": 7.0, "gmc": 1.4}
GENERATE_AT_LEAST = 4.0


def main() -> None:
    """Run the selected blocks."""
    options = _options()
    repeats = 1 if options.quick else options.repeats
    scope = Scope(options.only, options.quick, repeats, options.million)
    chosen = [*options.blocks, *(["threads"] if options.threads else [])]
    tables: list[Table] = []
    print(", ".join(f"{name} {value}" for name, value in machine().items()), end="\n\n")
    warnings.simplefilter("ignore", McceWarning)
    # BLAS threads spin while they wait, which would count as CPU time.
    with threadpool_limits(1):
        for name in chosen:
            for table in BLOCKS[name](scope):
                if table.rows:
                    print(table.markdown(), flush=True)
                    tables.append(table)
                    write(tables)


def fit_block(scope: Scope) -> Iterator[Table]:
    """Growing the trees, compared with scikit-learn on the same matrix of codes."""
    lines = []
    for case in _load(scope, FIT_AT_LEAST):
        best = interleave(f"trees of {case.name}", _fit_contenders(case), scope.repeats)
        theirs, ours, both = (run["trees"] for run in best.values())
        bound = f"{FIT_AT_LEAST[case.name]:g}x"
        shape = f"{len(case.train)} x {case.train.shape[1]}"
        numbers = [f"{theirs:.3f}", f"{ours:.3f}", times(theirs, ours), bound]
        lines.append([case.name, shape, *numbers, f"{both:.3f}", times(theirs, both)])
    headings = ["trees", "rows x features", "scikit-learn s", "ours s", "ratio", "at least"]
    headings += ["unreachable branch grown s", "ratio then"]
    yield Table("Fit: trees on the same matrix of codes", headings, lines)


def _fit_contenders(case: Case) -> dict[str, Callable[[], Seconds]]:
    schema = Schema.learn(case.train, immutable=case.immutable)
    rows = schema.encode(case.train)
    decision = case.decide(case.train)
    order = [*schema.immutable, *schema.mutable]
    matrix = np.asfortranarray(np.vstack([decision, rows.tree_codes[order]]).T, dtype=np.float32)
    responses, by_level = [], []
    for position in schema.mutable:
        numbers = rows.numbers(int(position))
        by_level.append(numbers is None)
        responses.append(rows.tree_codes[position].astype(float) if numbers is None else numbers)

    def ours(decisions: tuple[bool, ...]) -> TreeChain:
        return TreeChain(decisions=decisions).fit(rows, decision, n_jobs=1, verbose=False)

    def clock(work: Callable[[], Any]) -> Seconds:
        return {"trees": cpu(work)[0]}

    return {
        "scikit-learn": partial(clock, partial(baseline.grow, matrix, responses, by_level)),
        "ours": partial(clock, partial(ours, (True,))),
        "ours, both branches": partial(clock, partial(ours, (False, True))),
    }


def total_block(scope: Scope) -> Iterator[Table]:
    """Fit and explain, compared with the baseline."""
    lines, steps = [], {}
    for case in _load(scope, FOUR):
        duel = Duel(case)
        best = duel.run(scope.repeats)
        bound = f"{TOTAL_AT_LEAST[case.name]:g}x"
        predictor = f"{cpu(partial(case.predictor, case.train))[0]:.3f}"
        lines.append([case.name, *duel.compare(best), bound, predictor, *duel.quality()])
        steps[case.name] = duel.steps
    headings = ["fit + explain", *DUEL_HEADINGS, "at least", "predictor on training rows s"]
    headings += ["sparsity baseline / ours", "l1 baseline / ours"]
    note = "Both sides score the training rows; these seconds are included in both."
    yield Table("Fit and explain", headings, lines, note)
    names = list(dict.fromkeys(step for run in steps.values() for step in run))
    seconds = [
        [name, *(f"{run.get(step, 0):.3f}" for step in names)] for name, run in steps.items()
    ]
    yield Table("Where our time goes: wall-clock seconds by step", ["set", *names], seconds)


DUEL_HEADINGS = ["baseline fit / generate / post s", "ours fit / explain s", "ratio"]


class Duel:
    """Fit and explain of a case, by the baseline and by us."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.costs: dict[str, tuple[float, float]] = {}
        self.steps: dict[str, float] = {}
        self.fastest = float("inf")

    def run(self, repeats: int) -> dict[str, Seconds]:
        """The fastest run of each."""
        sides = {"baseline": self.baseline, "ours": self.ours}
        return interleave(f"fit + explain of {self.case.name}", sides, repeats)

    def baseline(self) -> Seconds:
        """CPU seconds of the baseline, by step."""
        model = baseline.fit(self.case)
        seconds, result = cpu(partial(baseline.explain, model, self.case.factuals))
        assert self.case.decide(result.frame).all(), "a counterfactual of the baseline is not valid"
        self.costs["baseline"] = float(result.sparsity.mean()), float(result.l1.mean())
        generate = result.seconds["generate"]
        return {"fit": model.seconds, "generate": generate, "post": seconds - generate}

    def ours(self) -> Seconds:
        """Our CPU seconds, by method."""
        explainer = self.case.explainer()
        fit, _ = cpu(partial(explainer.fit, self.case.train))
        seconds, result = cpu(partial(explainer.explain, self.case.factuals))
        measures = result.measures
        self.costs["ours"] = float(measures["sparsity"].mean()), float(measures["l1"].mean())
        if fit + seconds < self.fastest:
            self.fastest = fit + seconds
            parts = {"fit": explainer.timings_, "people": result.timings}
            self.steps = {
                f"{part}: {step}": spent
                for part, steps in parts.items()
                for step, spent in steps.items()
                if step != "total"
            }
        return {"fit": fit, "explain": seconds}

    def compare(self, best: dict[str, Seconds]) -> list[str]:
        """Seconds of both by step, and their ratio."""
        seconds = [" / ".join(f"{spent:.3f}" for spent in run.values()) for run in best.values()]
        totals = [sum(run.values()) for run in best.values()]
        return [*seconds, times(*totals)]

    def quality(self) -> list[str]:
        """Mean sparsity and l1 of both: the draws differ, the method does not."""
        (few, near), (our_few, our_near) = self.costs["baseline"], self.costs["ours"]
        return [f"{few:.2f} / {our_few:.2f}", f"{near:.3f} / {our_near:.3f}"]


def generate_block(scope: Scope) -> Iterator[Table]:
    """Step 2 alone without shared candidates, compared with the baseline."""
    lines = []
    for adult in _load(scope, ("adult",)):
        case = with_distinct_ages(adult, adult.factuals)
        best = interleave("generate alone", _generate_contenders(case), scope.repeats)
        theirs, ours = (run["generate"] for run in best.values())
        n_draws = len(case.factuals) * case.n_samples * len(case.mutable)
        each = [f"{spent / n_draws * 1e9:.0f}" for spent in (theirs, ours)]
        bound = f"{GENERATE_AT_LEAST:g}x"
        lines.append(
            [
                case.name,
                f"{theirs:.3f}",
                f"{ours:.3f}",
                times(theirs, ours),
                bound,
                " / ".join(each),
            ]
        )
    headings = ["every person alone", "baseline s", "ours s", "ratio", "at least"]
    headings += ["ns per draw of a feature, baseline / ours"]
    yield Table("Generate alone, without sharing", headings, lines)


def _generate_contenders(case: Case) -> dict[str, Callable[[], Seconds]]:
    model = baseline.fit(case)
    own = baseline.encode(model.columns, case.factuals)
    explainer = case.explainer().fit(case.train)
    given = explainer.schema_.encode(case.factuals).tree_codes
    rng = np.random.default_rng(0)
    keys = rng.integers(2**63, size=len(case.factuals), dtype=np.uint64)
    request = DrawRequest(given, keys, np.arange(case.n_samples, dtype=np.int64))

    def theirs() -> Seconds:
        rng = np.random.default_rng(0)
        blocks = list(baseline.blocks(model, own))
        spent = [cpu(partial(baseline.generate, model, block, rng))[0] for block in blocks]
        return {"generate": sum(spent)}

    def ours() -> Seconds:
        return {"generate": cpu(lambda: explainer.generator_.sample(request))[0]}

    return {"baseline": theirs, "ours": ours}


def rows_block(scope: Scope) -> Iterator[Table]:
    """Rows that the predictor scores in the search, per person."""
    lines = []
    for case in _load(scope, ROWS_AT_MOST):
        explainer = case.explainer().fit(case.train)
        result = explainer.explain(case.factuals)
        answered = case.factuals.drop(index=result.missing.index)
        rows = result.n_evaluated / len(case.factuals)
        theirs = explainer.explain(answered).n_evaluated / len(answered)
        log(f"predictor rows of {case.name}: {rows:.2f} per person")
        people = f"{len(case.factuals)} / {len(result.missing)}"
        bound = f"{ROWS_AT_MOST[case.name]:g}"
        lines.append([case.name, people, f"{rows:.2f}", bound, f"{theirs:.2f}"])
    headings = ["set", "people / unexplained", "rows per person", "at most"]
    headings += ["for explained people"]
    note = "For a person without a counterfactual all candidates are scored, to report the nearest."
    yield Table("Predictor rows per person in the search", headings, lines, note)


def grid_block(scope: Scope) -> Iterator[Table]:
    """The paper's simulated grid, fit and explain, compared with the baseline."""
    lines = []
    n_tests, n_samples = ((1,), (1_000, 10_000)) if scope.quick else ((1, 50), (10_000, 100_000))
    for n_test, n_train, p, k in product(n_tests, (1_000, 10_000), (5, 30), n_samples):
        duel = Duel(gaussian(p, n_train, n_test, k))
        best = duel.run(scope.repeats)
        shape = [str(n_test), str(n_train), str(p), str(k)]
        lines.append([*shape, *duel.compare(best), *duel.quality()])
    headings = ["n_test", "n_train", "p", "K", *DUEL_HEADINGS]
    headings += ["sparsity baseline / ours", "l1 baseline / ours"]
    note = "Nothing is immutable here, so all people share one set of candidates in our code."
    yield Table("The paper's simulated grid, fit + explain", headings, lines, note)


def _load(scope: Scope, names: Sequence[str] | dict[str, float]) -> Iterator[Case]:
    """The selected cases among these whose data are available."""
    for name in names:
        case = load(name) if scope.wants(name) else None
        if case is not None:
            yield case


BLOCKS: dict[str, Callable[[Scope], Iterator[Table]]] = {
    "fit": fit_block,
    "total": total_block,
    "generate": generate_block,
    "rows": rows_block,
    "memory": memory_block,
    "growth": growth_block,
    "grid": grid_block,
    "threads": threads_block,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = [name for name in BLOCKS if name != "threads"]
    parser.add_argument("--only", nargs="+", choices=[*LOADERS], help="data sets (default: all)")
    parser.add_argument("--blocks", nargs="*", choices=[*BLOCKS], default=usual)
    parser.add_argument(
        "--repeats", type=int, default=3, help="minimum number of runs of each side"
    )
    parser.add_argument("--quick", action="store_true", help="one run each, small sizes")
    parser.add_argument("--million", action="store_true", help="memory for 1,000,000 people too")
    parser.add_argument("--threads", action="store_true", help="wall-clock by n_jobs too")
    return parser.parse_args()


if __name__ == "__main__":
    main()
