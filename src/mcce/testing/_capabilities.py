"""Whether a generator can do what its :class:`mcce.protocols.Capabilities` declare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..constraints import only_up
from ..constraints.collection import Constraints
from ..constraints.limits import FactualLimits
from ..kernels import Guide, Limits, Person, hold
from ..saving.generators import pack_fitted, unpack_fitted
from ..tables.schema import EncodedRows
from ._cases import demand
from ._generator_case import GeneratorCase, demand_same


def check_limits(case: GeneratorCase) -> None:
    """Draws within limits stay within them."""
    limits = _only_up(case)
    drawn = case.fitted.sample(case.request(limits=limits))
    held = hold(limits, drawn.codes, case.schema.mutable)
    n_outside = int((held != drawn.codes).sum())
    demand(
        not n_outside,
        "The capability limits, request.limits",
        "codes inside the limits of their group",
        f"{n_outside} outside",
    )


def check_guidance(case: GeneratorCase) -> None:
    """Guided draws keep more own values."""
    free = case.fitted.sample(case.request())
    # One column more than features: the decision, which is never drawn.
    frame = case.people.frame
    codes = [f.encode(frame.iloc[:, at])[0] for at, f in enumerate(case.features)]
    own = np.pad(np.stack(codes), ((0, 1), (0, 0)), constant_values=-1)
    guide = Guide(own, own, int(0.9 * 2**32))
    guided = case.fitted.sample(case.request(guide=guide))
    mine = own[case.schema.mutable][:, :, None]
    n_kept, n_before = int((guided.codes == mine).sum()), int((free.codes == mine).sum())
    demand(
        n_kept > n_before,
        "The capability guidance, own values kept with probability 0.9",
        f"more than the {n_before} of draws without a guide",
        n_kept,
    )


def check_back_off(case: GeneratorCase) -> None:
    """Draws from more rows stay within limits, and are the same each time."""
    limits, check = _only_up(case), "The capability back_off, draws from 10**6 rows"
    request = case.request(limits=limits, least=np.full(case.draws.size, 10**6))
    wide, again = case.fitted.sample(request), case.fitted.sample(request)
    n_outside = int((hold(limits, wide.codes, case.schema.mutable) != wide.codes).sum())
    demand(not n_outside, check, "codes inside the limits of their group", f"{n_outside} outside")
    demand(np.array_equal(wide.codes, again.codes), check, "the same each time", "others")


def check_enumeration(case: GeneratorCase) -> None:
    """Rows are listed by cost, with so many changes."""
    person = _person(case)
    own = person.own[case.schema.mutable]
    for n_changes in (1, 2):
        check = f"The capability enumeration, rows with {n_changes} changes"
        listed = case.fitted.enumerate_rows(
            person, n_changes=n_changes, n_best=50, max_nodes=10**6, after=None
        )
        changes = (listed.codes != own[:, None]).sum(axis=0)
        demand(bool((changes == n_changes).all()), check, f"{n_changes} each", changes.tolist())
        rising = bool((np.diff(listed.totals) >= 0).all())
        demand(rising, check, "the cheapest first", listed.totals.tolist())


def check_density(case: GeneratorCase) -> None:
    """What can be drawn has a finite log-likelihood, and nothing has NaN."""
    check = "The capability density, log_likelihood"
    values = np.asarray(case.fitted.log_likelihood(case.people))
    shape = (len(case.people),)
    demand(values.shape == shape, check, f"one number per row, shape {shape}", values.shape)
    demand(not np.isnan(values).any(), check, "no NaN", values.tolist())
    drawn = case.fitted.sample(replace(case.request(), draws=case.draws[:1]))
    if drawn.tables is not None:
        return
    codes = case.people.descent.copy()
    codes[case.schema.mutable] = drawn.codes[:, :, 0]
    rows = EncodedRows.from_codes(case.schema, codes)
    likely = np.asarray(case.fitted.log_likelihood(rows))
    demand(bool(np.isfinite(likely).all()), f"{check} of draws", "finite", likely.tolist())


def check_visit_order(case: GeneratorCase) -> None:
    """The visit order names every mutable feature once."""
    order, mutable = np.asarray(case.fitted.visit_order_), case.schema.mutable
    demand(
        sorted(order.tolist()) == mutable.tolist(),
        "The capability visit_order, visit_order_",
        f"every mutable position once, {mutable.tolist()!r}",
        order.tolist(),
    )


def check_saving(case: GeneratorCase) -> None:
    """What goes through arrays draws the same."""
    check = "The capability saving, from_arrays(to_arrays())"
    try:
        copy = unpack_fitted(pack_fitted(case.fitted), case.new(), case.schema)
    except Exception as error:
        raise AssertionError(f"{check}: expected a fitted copy, got {error!r}.") from error
    drawn = copy.sample(case.request())
    demand_same(case, case.values(drawn), check)


def check_own_values(case: GeneratorCase) -> None:
    """All draws come with the tables that the generator has."""
    check = "The capability own_values, the tables of draws"
    drawn = case.fitted.sample(case.request())
    tables = list(case.fitted.tables_)
    same = drawn.tables is not None and len(tables) == len(drawn.tables)
    same = same and all(a.equals(b) for a, b in zip(tables, drawn.tables or [], strict=True))
    demand(same, check, "those of tables_", "others")


def _only_up(case: GeneratorCase) -> Limits:
    constraints = Constraints.bind([only_up("years")], case.schema)
    groups = np.arange(len(case.people))
    limits = FactualLimits(constraints, case.people).limits(groups, case.features)
    if limits is None:  # a constraint on a mutable feature always limits it
        raise RuntimeError("The case for limits has none.")
    return limits


def _person(case: GeneratorCase) -> Person:
    """The first person, for whom every change costs the same."""
    features = case.schema.features
    sizes = np.array([0 if feature.immutable else feature.n_codes for feature in features])
    return Person(
        given=case.people.descent[:, 0],
        own=case.people.exact[:, 0],
        stays=case.people.exact[:, 0],
        limits=None,
        costs=np.ones(int(sizes.sum())),
        offsets=np.cumsum(sizes) - sizes,
    )


CAPABILITY_CHECKS: dict[str, Callable[[GeneratorCase], None]] = {
    "limits": check_limits,
    "guidance": check_guidance,
    "back_off": check_back_off,
    "enumeration": check_enumeration,
    "density": check_density,
    "visit_order": check_visit_order,
    "saving": check_saving,
    "own_values": check_own_values,
}
