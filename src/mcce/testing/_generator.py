"""Whether an object keeps the promises of :class:`mcce.protocols.Generator`."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..constraints.of_features import only_up
from ..errors import ParameterError
from ..generate import features_of
from ..kernels import (
    Codes,
    DrawLimits,
    IntArray,
    Person,
    WordArray,
    person_keys,
)
from ..model.registry import encode_training, find_generator
from ..protocols import DrawRequest, Draws, Generator, is_private
from ..saving.archive import read, write
from ..saving.document import pack_fitted, unpack_fitted
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from ._cases import DESIRED, IMMUTABLE, Case, demand, demand_itself, make_frame, pickled, score

N_GROUPS, N_DRAWS, SEED = 15, 40, 7


def check_generator(generator: Generator) -> None:
    """Check a generator.

    It declares its capabilities and has their methods; ``fit`` returns the generator and takes all
    its randomness from the seed, but for the noise of a private one, which nobody may know.
    ``sample`` gives codes of mutable features alone, in the range of their tables. A draw depends
    on nothing but its group's immutable codes, its key and its draw number: not on other groups,
    their order, or how many draws there are. Fitted generators can be pickled. Every declared
    capability is tried.

    Parameters
    ----------
    generator
        The generator, unfitted. It is copied and stays unfitted.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from mcce import TreeChain
    >>> check_generator(TreeChain())
    """
    _GeneratorCase(generator).run()


class _GeneratorCase(Case):
    """A fitted generator, and groups of people for it to draw for."""

    def __init__(self, generator: Generator) -> None:
        self.generator = generator
        self.frame = make_frame()
        self.rows: EncodedRows = encode_training(self.new(), self.frame, immutable=IMMUTABLE)
        self.is_desired = score(self.frame) >= DESIRED[0]
        self.blank = self.new()
        self.fitted = self.fit(self.blank)
        self.people: EncodedRows = self.schema.encode(make_frame(N_GROUPS, seed=1))
        self.given: Codes = self.people.tree_codes
        self.keys: WordArray = person_keys(SEED, self.given[self.schema.immutable].T)
        self.draws: IntArray = np.arange(N_DRAWS)

    def run(self) -> None:
        """Run all checks, and those of the capabilities that the generator declares."""
        super().run()
        for name, declared in asdict(self.fitted.capabilities).items():
            if declared:
                getattr(self, f"try_{name}")()

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.rows.schema

    @property
    def features(self) -> Sequence[Feature]:
        """The features with the tables that limits refer to."""
        return features_of(self.fitted, self.people)

    def new(self) -> Any:
        """An unfitted copy, as MCCE makes one."""
        try:
            return find_generator(self.generator)
        except ParameterError as error:
            raise AssertionError(f"The generator must be usable by MCCE: {error}") from error

    def fit(self, generator: Any) -> Any:
        """Fit a generator as MCCE does."""
        return generator.fit(self.rows, self.is_desired, seed=SEED, n_jobs=1, verbose=False)

    def sample(self, groups: IntArray | None = None, draws: IntArray | None = None) -> np.ndarray:
        """Values drawn for some groups, shape (n_mutable, n_groups, n_draws)."""
        at = np.arange(N_GROUPS) if groups is None else groups
        numbers = self.draws if draws is None else draws
        request = DrawRequest(self.given[:, at], self.keys[at], numbers)
        return self.values(self.fitted.sample(request))

    def request(self, **wishes: Any) -> DrawRequest:
        """All draws of all groups."""
        return DrawRequest(self.given, self.keys, self.draws, **wishes)

    def values(self, drawn: Draws) -> np.ndarray:
        """The values of codes as strings, so that a missing one equals itself."""
        tables = self.tables(drawn)
        pairs = zip(tables, drawn.codes, strict=True)
        return np.array([np.array([repr(v) for v in table])[codes] for table, codes in pairs])

    def tables(self, drawn: Draws) -> list[pd.Series[Any]]:
        """The value of each code of each mutable feature."""
        if drawn.tables is not None:
            return list(drawn.tables)
        return [self.schema.features[position].table for position in self.schema.mutable]

    def check_fit_returns_the_generator(self) -> None:
        demand_itself(self.fitted, self.blank, "generator")

    def check_training_rows_stay_as_they_are(self) -> None:
        codes = self.schema.encode(self.frame).codes
        same = np.array_equal(codes, self.rows.codes)
        demand(same, "Fitting", "training rows that stay as they are", "changed codes")

    def check_draws_are_codes_of_the_mutable_features(self) -> None:
        check = "What sample returns"
        drawn = self.fitted.sample(self.request())
        demand(isinstance(drawn, Draws), check, "a mcce.protocols.Draws", type(drawn).__name__)
        shape = self.schema.mutable.size, N_GROUPS, N_DRAWS
        got = drawn.codes.shape
        demand(got == shape, check, f"codes of shape (n_mutable, n_groups, n_draws) {shape}", got)
        demand(drawn.codes.dtype == np.int32, check, "codes of dtype int32", drawn.codes.dtype)
        n_tables = len(self.tables(drawn))
        demand(n_tables == shape[0], check, f"{shape[0]} tables, one per mutable feature", n_tables)
        for position, table, codes in zip(
            self.schema.mutable, self.tables(drawn), drawn.codes, strict=True
        ):
            demand(
                bool((codes >= 0).all() and (codes < len(table)).all()),
                f"Codes of {self.schema.names[position]!r}",
                f"0 to {len(table) - 1}, the codes of its table",
                f"{codes.min()} to {codes.max()}",
            )

    def check_draws_ignore_mutable_codes(self) -> None:
        other = self.given.copy()
        other[self.schema.mutable] = 0
        drawn = self.values(self.fitted.sample(replace(self.request(), given=other)))
        self.demand_same(drawn, "Draws for people with other mutable values")

    def check_other_groups_change_nothing(self) -> None:
        alone = [self.sample(np.array([group])) for group in range(N_GROUPS)]
        self.demand_same(np.concatenate(alone, axis=1), "A group's draws without other groups")

    def check_the_order_of_groups_changes_nothing(self) -> None:
        order = np.arange(N_GROUPS)[::-1].copy()
        self.demand_same(self.sample(order)[:, order], "Draws with the groups in another order")

    def check_fewer_draws_are_the_first_of_more(self) -> None:
        whole, numbers = self.sample(), np.array([3, 0, 17])
        fewer = np.array_equal(self.sample(draws=np.arange(5)), whole[:, :, :5])
        demand(fewer, "The draws 0 to 4 alone", "the first five of more draws", "other draws")
        some = np.array_equal(self.sample(draws=numbers), whole[:, :, numbers])
        demand(some, "The draws 3, 0 and 17 alone", "those of all draws", "other draws")

    def check_a_second_fit_draws_the_same(self) -> None:
        if is_private(self.blank):
            return
        for check, fitted in (
            ("A new generator fitted with the same seed", self.fit(self.new())),
            ("A generator fitted a second time", self.fit(self.fit(self.new()))),
        ):
            drawn = self.values(fitted.sample(self.request()))
            self.demand_same(drawn, check)

    def check_it_can_be_pickled(self) -> None:
        check = "Pickling the fitted generator"
        copy = pickled(self.fitted, check)
        self.demand_same(self.values(copy.sample(self.request())), check)

    def try_privacy(self) -> None:
        """It spends its budget, and no more."""
        spent, epsilon = float(self.fitted.ledger_["epsilon"].sum()), self.fitted.epsilon
        demand(0 < spent <= epsilon * (1 + 1e-9), "The ledger", f"at most {epsilon}", str(spent))

    def try_limits(self) -> None:
        """Draws within limits stay within them."""
        limits = self.only_up()
        drawn = self.fitted.sample(self.request(limits=limits))
        held = limits.apply(self.schema.mutable, drawn.codes)
        n_outside = int((held != drawn.codes).sum())
        demand(
            not n_outside,
            "The capability limits, request.limits",
            "codes inside the limits of their group",
            f"{n_outside} outside",
        )

    def try_back_off(self) -> None:
        """Draws from more rows stay within limits, and are the same each time."""
        limits, check = self.only_up(), "The capability back_off, draws from 10**6 rows"
        request = self.request(limits=limits, least=np.full(self.draws.size, 10**6))
        wide, again = self.fitted.sample(request), self.fitted.sample(request)
        n_outside = int((limits.apply(self.schema.mutable, wide.codes) != wide.codes).sum())
        demand(
            not n_outside, check, "codes inside the limits of their group", f"{n_outside} outside"
        )
        demand(np.array_equal(wide.codes, again.codes), check, "the same each time", "others")

    def try_enumeration(self) -> None:
        """Rows are listed by cost, with the requested number of changes."""
        person = self.first_person()
        own = person.own[self.schema.mutable]
        for n_changes in (1, 2):
            check = f"The capability enumeration, rows with {n_changes} changes"
            listed = self.fitted.enumerate_rows(
                person, n_changes=n_changes, n_best=50, max_nodes=10**6, after=None
            )
            changes = (listed.codes != own[:, None]).sum(axis=0)
            demand(bool((changes == n_changes).all()), check, f"{n_changes} each", changes.tolist())
            rising = bool((np.diff(listed.totals) >= 0).all())
            demand(rising, check, "the cheapest first", listed.totals.tolist())

    def try_density(self) -> None:
        """What can be drawn has a finite log-likelihood, and nothing has NaN."""
        check = "The capability density, log_likelihood"
        values = np.asarray(self.fitted.log_likelihood(self.people, decision=True))
        shape = (len(self.people),)
        demand(values.shape == shape, check, f"one number per row, shape {shape}", values.shape)
        demand(not np.isnan(values).any(), check, "no NaN", values.tolist())
        drawn = self.fitted.sample(replace(self.request(), draws=self.draws[:1]))
        if drawn.tables is not None:
            return
        codes = self.people.tree_codes.copy()
        codes[self.schema.mutable] = drawn.codes[:, :, 0]
        rows = EncodedRows.from_codes(self.schema, codes)
        likely = np.asarray(self.fitted.log_likelihood(rows))
        demand(bool(np.isfinite(likely).all()), f"{check} of draws", "finite", likely.tolist())

    def try_visit_order(self) -> None:
        """The visit order names every mutable feature once."""
        order, mutable = np.asarray(self.fitted.visit_order_), self.schema.mutable
        demand(
            sorted(order.tolist()) == mutable.tolist(),
            "The capability visit_order, visit_order_",
            f"every mutable position once, {mutable.tolist()!r}",
            order.tolist(),
        )

    def try_saving(self) -> None:
        """What goes through a file draws the same."""
        check = "The capability saving, from_arrays(to_arrays())"
        try:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "generator.mcce")
                write(path, {"model": pack_fitted(self.fitted)})
                document, _ = read(path)
            copy = unpack_fitted(document["model"], self.new(), self.schema)
        except Exception as error:
            raise AssertionError(f"{check}: expected a fitted copy, got {error!r}.") from error
        drawn = copy.sample(self.request())
        self.demand_same(self.values(drawn), check)

    def try_value_tables(self) -> None:
        """All draws come with the tables that the generator has."""
        check = "The capability value_tables, the tables of draws"
        drawn = self.fitted.sample(self.request())
        tables = list(self.fitted.tables_)
        same = drawn.tables is not None and len(tables) == len(drawn.tables)
        same = same and all(a.equals(b) for a, b in zip(tables, drawn.tables or [], strict=True))
        demand(same, check, "those of tables_", "others")

    def only_up(self) -> DrawLimits:
        constraints = Constraints.bind([only_up("years")], self.schema)
        groups = np.arange(len(self.people))
        limits = FactualLimits(constraints, self.people).limits(groups, self.features)
        if limits is None:  # a constraint on a mutable feature always limits it
            raise RuntimeError("The case for limits has none.")
        return limits

    def first_person(self) -> Person:
        """The first person, for whom every change costs the same."""
        features = self.schema.features
        sizes = np.array([0 if feature.immutable else feature.n_codes for feature in features])
        return Person(
            given=self.people.tree_codes[:, 0],
            own=self.people.codes[:, 0],
            stays=self.people.codes[:, 0],
            limits=None,
            costs=np.ones(int(sizes.sum())),
            offsets=np.cumsum(sizes) - sizes,
        )

    def demand_same(self, drawn: np.ndarray, check: str) -> None:
        """Raise unless values drawn are those of the case."""
        expected = self.sample()
        n_other = int((drawn != expected).sum()) if drawn.shape == expected.shape else drawn.size
        demand(not n_other, check, "the same draws", f"{n_other} of {expected.size} other values")
