"""What ``fit`` learned, part by part: as plain data and arrays, and back, checked.

The types of the fields of a class say how it is written, and what a file may hold: finite floats,
whole numbers, words, columns, cells, vectors, and other classes. What else has to hold, of a field
or between several, is one line of ``RULES``; ``FORMS`` has what needs more than that.

What a part may hold depends on the columns and on what was read before, which is ``Known``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from functools import cache, partial
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

import numpy as np
import pandas as pd

from ..boosting.surrogate import MAX_ROWS, Surrogate
from ..boosting.trees import BoostedTrees, pack_boosted, unpack_boosted
from ..caching import cached_property
from ..flags import EVIDENCE, Flag
from ..kernels import LEAF, Codes, IntArray, rows_as_bytes
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees
from ..plausibility.conditionals import Conditional, Conditionals
from ..plausibility.conformal import Calibration, Tail
from ..plausibility.model import PlausibilityModel
from ..plausibility.pairs import EmptyPairs
from ..plausibility.support import MIN_SAMPLES_LEAF, LevelChain, Support, level_columns
from ..predictors.decision import Decision, Interval, LabelRule
from ..relations.dates import DATE_PARTS, DateView
from ..relations.dependencies import MAX_VALUES
from ..relations.discovery import most_relations
from ..relations.formulas import MAX_FACTORS, MAX_TERMS
from ..relations.kinds import Dependency, Equation, Equivalence, Ordering
from ..relations.relation import FoundRelation, View
from ..relations.views import Amounts, HasValue, Product, Steps, Sum
from ..survival.committee import RetrainedModels, TreeModels
from ..survival.lasting import Lasting
from ..tables.columns import is_time
from ..tables.schema import EncodedRows, Schema
from .archive import ensure
from .values import check_entries, check_hashes, pack, unpack_cell

# What every dataclass has.
DATACLASS = "__dataclass_fields__"
# No count in a file comes near it.
MAX_COUNT = 2**53
# What relations compare beside columns.
VIEWS = (Amounts, DateView, Steps, Sum)
# Classes that are told apart by their names where several may stand.
KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (Equation, Ordering, Equivalence, Dependency, Product, HasValue, *VIEWS)
}


@dataclass(frozen=True)
class Known:
    """What was read of a file before its parts."""

    schema: Schema
    order: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_desired: int = 0

    @cached_property
    def row(self) -> pd.DataFrame:
        """A row of training values."""
        codes = np.zeros((len(self.schema.features), 1), dtype=np.int32)
        return EncodedRows.from_codes(self.schema, codes).frame

    def hold_numbers(self, operands: Iterable[Hashable], *, times: bool = False) -> bool:
        """Whether operands are views, or columns of numbers."""
        found = [self.schema.feature(one) for one in operands if not isinstance(one, View)]
        return all(f.kind == "numeric" and (times or not is_time(f.table.dtype)) for f in found)


class Form(NamedTuple):
    """How values are written, and how they are read from a file and checked."""

    write: Callable[[Any], Any]
    read: Callable[[Any, Known], Any]


def write(value: Any, hint: Any) -> Any:
    """A value of a type as plain data and arrays."""
    inner = get_args(hint)
    if hint in FORMS:
        return FORMS[hint].write(value)
    if hint in PLAIN:
        return hint(value)
    if NoneType in inner:
        return None if value is None else write(value, inner[0])
    if get_origin(hint) is tuple:
        return [write(one, kind) for one, kind in zip(value, _each(value, inner), strict=True)]
    if hasattr(hint, DATACLASS):
        return {name: write(getattr(value, name), kind) for name, kind in _fields(hint).items()}
    kind = type(value)
    return {kind.__name__: write(value, kind)} if kind in KINDS.values() else value


def read(plain: Any, known: Known, hint: Any) -> Any:
    """The value of a type that :func:`write` wrote, checked."""
    value = (FORMS[hint].read if hint in FORMS else partial(_read, hint=hint))(plain, known)
    sound = RULES[hint](value, known) if hint in RULES else True
    ensure(sound, f"it holds a {getattr(hint, '__name__', hint)} that fit cannot have learned")
    return value


def _read(plain: Any, known: Known, hint: Any) -> Any:
    origin, inner = get_origin(hint), get_args(hint)
    if hint in PLAIN:
        return read_plain(plain, hint)
    if NoneType in inner:
        return None if plain is None else read(plain, known, inner[0])
    if origin is tuple:
        ensure(isinstance(plain, list), "something else stands where a list should")
        pairs = zip(plain, _each(plain, inner), strict=True)
        return tuple(read(one, known, kind) for one, kind in pairs)
    if origin is np.ndarray:
        values = read_array(plain, get_args(inner[1])[0])
        ensure(values.dtype.kind != "f" or np.isfinite(values).all(), "a number is not finite")
        return values
    if origin is Literal:
        ensure(isinstance(plain, str) and plain in inner, "a word is none of those there are")
        return plain
    if hasattr(hint, DATACLASS):
        given = check_entries(plain, _fields(hint), hint.__name__)
        return hint(
            **{name: read(given[name], known, kind) for name, kind in _fields(hint).items()}
        )
    [(kind, parts)] = plain.items()
    value = read(parts, known, KINDS[kind])
    ensure(isinstance(value, hint), "a relation stands where another one should")
    return value


def _each(values: Sequence[Any], inner: tuple[Any, ...]) -> Sequence[Any]:
    """The type of each value of a tuple."""
    return inner[:1] * len(values) if inner[-1] is Ellipsis else inner


@cache
def _fields(kind: Any) -> dict[str, Any]:
    """The type of each field of a class, or the name of its form."""
    hints = get_type_hints(kind)
    return {one.name: FORMS_OF.get((kind, one.name), hints[one.name]) for one in fields(kind)}


def read_plain(plain: Any, kind: Any, most: int = MAX_COUNT) -> Any:
    """A word, a flag, a finite number, or a count up to ``most``."""
    sound = type(plain) is kind and (kind is not float or math.isfinite(plain))
    sound = sound and (kind is not int or 0 <= plain <= most)
    ensure(sound, f"a {kind.__name__} is missing, or out of its range")
    return plain


def read_array(plain: Any, dtype: type[np.generic], n_dimensions: int = 1) -> np.ndarray:
    """An array of this dtype and number of dimensions."""
    sound = isinstance(plain, np.ndarray) and plain.dtype == dtype and plain.ndim == n_dimensions
    ensure(sound, "an array has another dtype or shape")
    return np.asarray(plain)


def read_codes(plain: Any, schema: Schema) -> Codes:
    """Codes of training values, shape (n_features, n_rows), of at least one row."""
    codes, n_codes = read_array(plain, np.int32, 2), schema.n_codes[:, None]
    ensure(len(codes) == n_codes.size and codes.size, "it has codes of other columns, or none")
    ensure(((codes >= 0) & (codes < n_codes)).all(), "it has codes that no value has")
    return codes


def _write_operand(operand: Hashable) -> Any:
    return write(operand, View) if isinstance(operand, View) else pack(operand, "a column name")


def _read_operand(plain: Any, known: Known) -> Hashable:
    """A column, or what is computed from columns."""
    if isinstance(plain, dict) and plain.keys() <= KINDS.keys():
        view = read(plain, known, View)
        ensure(isinstance(view, VIEWS), "a relation compares with what is no number of a row")
        return cast("View", view)
    return known.schema.feature(unpack_cell(plain)).name


def _write_plausibility(model: PlausibilityModel) -> dict[str, Any]:
    pairs = model.pairs_
    return {
        "codes": model.codes_,
        "chains": [pack_trees(chain.trees) for chain in model.support_.chains_],
        "conditionals": write(model.conditionals_.models_, tuple[Conditional, ...]),
        "calibration": write(model.calibration_, Calibration),
        "pairs": {name: getattr(pairs, name) for name in ("bins", "columns", "packed")},
    }


def _read_plausibility(plain: Any, known: Known) -> PlausibilityModel:
    names = ("codes", "chains", "conditionals", "calibration", "pairs")
    given = check_entries(plain, names, "the plausibility model")
    codes = read_codes(given["codes"], known.schema)
    ensure(codes.shape[1] == known.n_desired, "it has another number of accepted rows")
    support, conditionals = _read_support(given["chains"], known), Conditionals()
    conditionals.models_ = read(given["conditionals"], known, tuple[Conditional, ...])
    calibration = read(given["calibration"], known, Calibration)
    n_parts = bool(support.chains_) + 2 * len(conditionals.models_)
    ensure(len(calibration.parts) == n_parts, "the calibration has another number of parts")
    rows = EncodedRows.from_codes(known.schema, codes)
    pairs = _read_pairs(**given["pairs"], known=known)
    return PlausibilityModel.restored(rows, support, conditionals, calibration, pairs)


def _read_support(plain: Any, known: Known) -> Support:
    schema, support = known.schema, Support()
    levels = known.order[np.isin(known.order, level_columns(schema))]
    fits = isinstance(plain, list) and len(plain) == (2 if levels.size else 0)
    ensure(fits, "the support has another number of chains")
    trees = [unpack_trees(chain, ChainRules(schema, levels, known.order)) for chain in plain]
    for grown in trees:
        sizes, first = tree_sizes(grown), tree_sizes(trees[0])[0]
        fits = (sizes == sizes[0]).all() and first <= known.n_desired
        ensure(fits, "the trees of the support hold other numbers of rows")
        # Each node takes memory for all levels: smaller leaves would take far more than the file.
        is_root = np.isin(np.arange(grown.feature.size), grown.roots)
        small = grown.count[(grown.feature == LEAF) & ~is_root] < MIN_SAMPLES_LEAF
        ensure(not small.any(), "the trees of the support have leaves that are too small")
    support.chains_ = [
        LevelChain.of(schema, levels, grown, contradictions=number > 0)
        for number, grown in enumerate(trees)
    ]
    return support


def _read_pairs(bins: Any, columns: Any, packed: Any, known: Known) -> EmptyPairs:
    what, sizes = "the pairs of values that no row has", known.schema.n_codes + 1
    for values, dtype, n_dimensions in (
        (bins, np.uint8, 1),
        (packed, np.uint8, 1),
        (columns, np.int32, 2),
    ):
        read_array(values, dtype, n_dimensions)
    ensure(len(columns) == 2 and bins.size == sizes.sum(), f"{what} are not of its columns")
    one, other = columns.astype(np.int64)
    in_order = (np.diff(one * sizes.size + other) > 0).all() and (one < other).all()
    within = (columns >= 0).all() and (columns < sizes.size).all()
    ensure(in_order and within, "the pairs of columns are not ascending")
    pairs = EmptyPairs(bins, np.cumsum(sizes) - sizes, columns, packed)
    ensure(packed.size == -(-pairs.n_cells // 8), f"{what} have tables of other sizes")
    return pairs


def _read_training_rows(plain: Any, known: Known) -> np.ndarray:
    given = check_entries(plain, ("codes",), "the part of training rows")["codes"]
    return np.unique(rows_as_bytes(read_codes(getattr(given, "T", None), known.schema).T))


def _read_value_counts(plain: Any, known: Known) -> tuple[IntArray, ...]:
    sizes = known.schema.n_codes[known.schema.mutable]
    counts = read_array(plain, np.int64)
    ensure(counts.size == sizes.sum(), "it does not count the values of its columns")
    parts = tuple(np.split(counts, np.cumsum(sizes)[:-1]))
    # As Python integers, which cannot overflow.
    same = len({sum(part.tolist()) for part in parts}) == 1
    ensure(same and (counts > 0).all(), "its counts of values are not those of one table")
    return parts


def _read_powers(plain: Any) -> tuple[int, ...]:
    sound = isinstance(plain, list) and all(type(one) is int and one in POWERS for one in plain)
    ensure(sound, "a product has other powers")
    return tuple(plain)


PLAIN = (float, int, bool, str)
POWERS = (-2, -1, 1, 2)
FORMS: dict[Any, Form] = {
    Hashable: Form(_write_operand, _read_operand),
    Any: Form(lambda cell: pack(cell, "a relation"), lambda plain, known: unpack_cell(plain)),
    BoostedTrees: Form(
        pack_boosted, lambda plain, known: unpack_boosted(plain, known.schema.n_codes)
    ),
    PlausibilityModel: Form(_write_plausibility, _read_plausibility),
    # Models that were trained anew are given again, as the predictor is: a file holds no code.
    RetrainedModels | None: Form(lambda models: None, lambda plain, known: None),
    # JSON has no NaN, which says that there is no threshold.
    "threshold": Form(
        lambda number: None if math.isnan(number) else number,
        lambda plain, known: math.nan if plain is None else read_plain(plain, float),
    ),
    "training rows": Form(
        lambda rows: {"codes": rows.view(np.int32).reshape(len(rows), -1)}, _read_training_rows
    ),
    "powers": Form(list, lambda plain, known: _read_powers(plain)),
    "counts": Form(lambda counts: np.concatenate(counts, dtype=np.int64), _read_value_counts),
}
# Fields whose form their types do not say.
FORMS_OF: dict[Any, str] = {
    (Surrogate, "threshold"): "threshold",
    (Product, "powers"): "powers",
}
# The types of the fields of Fitted that not every file has, or the names of their forms.
PARTS = {
    "label_rule": LabelRule,
    "training_rows": "training rows",
    "value_counts": "counts",
    "relations": tuple[FoundRelation, ...],
    "flags": tuple[Flag, ...],
    "plausibility": PlausibilityModel,
    "surrogate": Surrogate,
    "lasting": Lasting,
}


def _is_tail(tail: Tail, known: Known) -> Any:
    return (tail.values >= 0).all() and (np.diff(tail.values) >= 0).all()


def _is_surrogate(one: Surrogate, known: Known) -> Any:
    sizes = [effect.size for effect in one.effects]
    good = one.r2 <= 1 and abs(one.rank_agreement) <= 1 and one.error >= 0
    fits = len(one.trees) == 2 and (not sizes or sizes == (known.schema.n_codes + 1).tolist())
    return good and fits and one.n_held_out <= one.n_rows <= MAX_ROWS


def _is_lasting(one: Lasting, known: Known) -> Any:
    return 0 <= one.share < 1


def _is_committee(one: TreeModels, known: Known) -> Any:
    return len(one.trees) == one.thresholds.size > 1


def _is_conditional(one: Conditional, known: Known) -> Any:
    whole = (one.least == 0) == (one.mean is None) == (one.error is None)
    models = (one.mean, one.error, one.missing)
    # A number is not predicted from itself.
    own = any(model and one.position in model.ensemble.inputs for model in models)
    return one.least >= 0 and whole and not own


def _is_calibration(calibration: Calibration, known: Known) -> Any:
    tails = [*calibration.parts, calibration.usual, calibration.rare]
    most = max(tail.values.size for tail in tails if tail is not None)
    sizes = {tail.values.size for tail in calibration.parts}
    return most <= known.n_desired and sizes <= {calibration.n_held_out}


def _is_found(found: FoundRelation, known: Known) -> Any:
    # Raises if it cannot be computed.
    found.relation.excess(known.row)
    shares = 0 <= found.share <= 1 and 0 <= found.p_value <= 1
    return shares and isinstance(found.relation.name, str)


def _is_equation(one: Equation, known: Known) -> Any:
    sound = one.low <= one.high and one.rounding >= 0 and isinstance(one.formula, Sum | Product)
    return sound and not isinstance(one.result, View) and known.hold_numbers([one.result])


def _is_sum(one: Sum, known: Known) -> Any:
    weights = all(weight and math.isfinite(1 / weight) for weight in one.weights)
    fits = len(one.weights) == len(one.of) <= MAX_TERMS and len(one.of) > 0
    return fits and weights and known.hold_numbers(one.of)


def _is_product(one: Product, known: Known) -> Any:
    return len(one.powers) == len(one.of) <= MAX_FACTORS and known.hold_numbers(one.of)


def _is_of_column(one: Amounts | HasValue, known: Known) -> Any:
    """Whether it reads one column, no view, and names no value twice."""
    pairs = one.amounts if isinstance(one, Amounts) else [(value, None) for value in one.values]
    if len(one.of) != 1 or isinstance(one.of[0], View):
        return False
    n_codes = known.schema.feature(one.of[0]).n_codes
    return len(pairs) <= n_codes + 1 and _are_distinct(value for value, _ in pairs)


def _is_dependency(one: Dependency, known: Known) -> Any:
    check_hashes([value for _, value in one.values])
    named = not isinstance(one.result, View) and len(one.values) <= MAX_VALUES
    return named and _are_distinct(value for value, _ in one.values)


def _is_date_view(view: DateView, known: Known) -> Any:
    def is_date(operand: Hashable) -> bool:
        if isinstance(operand, View):
            return isinstance(operand, DateView) and operand.what == "date"
        return known.schema.feature(operand).table.dtype.kind == "M"

    if view.what == "date":
        return len(view.of) in (1, 3) and not any(isinstance(one, View) for one in view.of)
    is_known = view.what in ("days", *DATE_PARTS)
    return is_known and len(view.of) == 1 + (view.what == "days") and all(map(is_date, view.of))


def _is_steps(steps: Steps, known: Known) -> Any:
    fits = len(steps.of) == 1 and len(steps.limits) <= MAX_VALUES
    return fits and known.hold_numbers(steps.of)


def _are_distinct(values: Iterable[Any]) -> bool:
    """Whether no value is named twice."""
    listed = check_hashes([*values])
    return len(set(listed)) == len(listed)


def _ascend(positions: Iterable[int], among: Iterable[int]) -> bool:
    """Whether positions ascend, and are some of others."""
    given = [*positions]
    return given == sorted(set(given) & set(among))


def _are_conditionals(models: tuple[Conditional, ...], known: Known) -> Any:
    numbers = [at for at, one in enumerate(known.schema.features) if one.kind == "numeric"]
    return _ascend((model.position for model in models), numbers)


def _are_flags(flags: tuple[Flag, ...], known: Known) -> Any:
    return _ascend((flag.position for flag in flags), range(len(known.schema.features)))


# What has to hold of the values of a type, and between their fields.
RULES: dict[Any, Callable[[Any, Known], Any]] = {
    tuple[FoundRelation, ...]: lambda found, known: (
        len(found) <= most_relations(len(known.schema.features))
    ),
    tuple[Conditional, ...]: _are_conditionals,
    tuple[Flag, ...]: _are_flags,
    Flag: lambda flag, known: flag.evidence in EVIDENCE,
    LabelRule: lambda rule, known: rule.low <= rule.high,
    Surrogate: _is_surrogate,
    Lasting: _is_lasting,
    TreeModels: _is_committee,
    Tail: _is_tail,
    Conditional: _is_conditional,
    Calibration: _is_calibration,
    FoundRelation: _is_found,
    Equation: _is_equation,
    Sum: _is_sum,
    Product: _is_product,
    Amounts: _is_of_column,
    HasValue: _is_of_column,
    Ordering: lambda one, known: one.factor > 0 and known.hold_numbers(one.operands, times=True),
    Dependency: _is_dependency,
    DateView: _is_date_view,
    Steps: _is_steps,
}


def check_decision(
    surrogate: Surrogate | None, label_rule: LabelRule | None, decision: Decision
) -> None:
    """Raise if what was learned from scores cannot be of this decision."""
    by_interval = isinstance(decision.desired, Interval)
    by_labels = decision.columns and not by_interval
    ensure(label_rule is None or by_labels, "it says of labels what no probabilities tell")
    if surrogate is not None:
        by_label = surrogate.link == "label"
        fits = not (by_interval and by_label) and (by_interval or by_label or decision.columns)
        ensure(fits, "the surrogate is not one of this predictor")
        no_threshold = math.isnan(surrogate.threshold)
        ensure(no_threshold == (by_interval or by_label), "its threshold is missing, or not needed")
