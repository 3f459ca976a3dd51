"""Whether an object keeps the promises of :class:`mcce.protocols.Generator`."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..protocols import Draws, Generator
from ._capabilities import CAPABILITY_CHECKS
from ._cases import demand
from ._generator_case import N_DRAWS, N_GROUPS, GeneratorCase, demand_same


def check_generator(generator: Generator) -> None:
    """Check a generator.

    It declares its capabilities and has their methods; ``fit`` returns the generator and takes all
    its randomness from the seed. ``sample`` gives codes of mutable features alone, in the range of
    their tables. A draw depends on nothing but its group's immutable codes, its key and its draw
    number: not on other groups, their order, or how many draws there are. Fitted generators can be
    pickled. Every declared capability is tried.

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
    case = GeneratorCase(generator)
    for check in CHECKS:
        check(case)
    for capability, capability_check in CAPABILITY_CHECKS.items():
        if getattr(case.fitted.capabilities, capability):
            capability_check(case)


def _fit_returns_the_generator(case: GeneratorCase) -> None:
    demand(
        case.fitted is case.blank,
        "fit returns the generator itself",
        "the same object",
        repr(case.fitted),
    )


def _training_rows_stay_as_they_are(case: GeneratorCase) -> None:
    codes = case.schema.encode(case.frame).exact
    same = np.array_equal(codes, case.rows.exact)
    demand(same, "Fitting", "training rows that stay as they are", "changed codes")


def _draws_are_codes_of_the_mutable_features(case: GeneratorCase) -> None:
    check = "What sample returns"
    drawn = case.fitted.sample(case.request())
    demand(isinstance(drawn, Draws), check, "a mcce.protocols.Draws", type(drawn).__name__)
    shape = case.schema.mutable.size, N_GROUPS, N_DRAWS
    got = drawn.codes.shape
    demand(got == shape, check, f"codes of shape (n_mutable, n_groups, n_draws) {shape}", got)
    demand(drawn.codes.dtype == np.int32, check, "codes of dtype int32", drawn.codes.dtype)
    n_tables = len(case.tables(drawn))
    demand(n_tables == shape[0], check, f"{shape[0]} tables, one per mutable feature", n_tables)
    for position, table, codes in zip(
        case.schema.mutable, case.tables(drawn), drawn.codes, strict=True
    ):
        demand(
            bool((codes >= 0).all() and (codes < len(table)).all()),
            f"Codes of {case.schema.names[position]!r}",
            f"0 to {len(table) - 1}, the codes of its table",
            f"{codes.min()} to {codes.max()}",
        )


def _draws_ignore_mutable_codes(case: GeneratorCase) -> None:
    other = case.given.copy()
    other[case.schema.mutable] = 0
    drawn = case.values(case.fitted.sample(replace(case.request(), given=other)))
    demand_same(case, drawn, "Draws for people with other mutable values")


def _other_groups_change_nothing(case: GeneratorCase) -> None:
    alone = [case.sample(np.array([group])) for group in range(N_GROUPS)]
    demand_same(case, np.concatenate(alone, axis=1), "A group's draws without other groups")


def _the_order_of_groups_changes_nothing(case: GeneratorCase) -> None:
    order = np.arange(N_GROUPS)[::-1].copy()
    demand_same(case, case.sample(order)[:, order], "Draws with the groups in another order")


def _fewer_draws_are_the_first_of_more(case: GeneratorCase) -> None:
    whole, numbers = case.sample(), np.array([3, 0, 17])
    fewer = np.array_equal(case.sample(draws=np.arange(5)), whole[:, :, :5])
    demand(fewer, "The draws 0 to 4 alone", "the first five of more draws", "other draws")
    some = np.array_equal(case.sample(draws=numbers), whole[:, :, numbers])
    demand(some, "The draws 3, 0 and 17 alone", "those of all draws", "other draws")


def _a_second_fit_draws_the_same(case: GeneratorCase) -> None:
    for check, fitted in (
        ("A new generator fitted with the same seed", case.fit(case.new())),
        ("A generator fitted a second time", case.fit(case.fit(case.new()))),
    ):
        drawn = case.values(fitted.sample(case.request()))
        demand_same(case, drawn, check)


def _it_can_be_pickled(case: GeneratorCase) -> None:
    check = "Pickling the fitted generator"
    try:
        copy = pickle.loads(pickle.dumps(case.fitted))
    except Exception as error:
        raise AssertionError(f"{check}: expected a copy, got {error!r}.") from error
    demand_same(case, case.values(copy.sample(case.request())), check)


CHECKS: tuple[Callable[[GeneratorCase], None], ...] = (
    _fit_returns_the_generator,
    _training_rows_stay_as_they_are,
    _draws_are_codes_of_the_mutable_features,
    _draws_ignore_mutable_codes,
    _other_groups_change_nothing,
    _the_order_of_groups_changes_nothing,
    _fewer_draws_are_the_first_of_more,
    _a_second_fit_draws_the_same,
    _it_can_be_pickled,
)
