"""What ``fit`` learned, part by part: as plain data and arrays, and back, checked.

``FIELDS`` is one table for each class that is saved field by field: it names the fields, and says
of each how it is written, read and checked for what ``fit`` could not have learned. What has to
hold between the fields of one part is in ``BETWEEN``.

What a field may hold depends on the columns and on what was read before, which is ``Known``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np
import pandas as pd

from ..caching import cached_property
from ..kernels import LEAF, IntArray, Trees, rows_as_bytes
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees
from ..model.flags import EVIDENCE, Flag
from ..plausibility.boosting import pack_boosted, unpack_boosted
from ..plausibility.conditionals import Conditional, Conditionals
from ..plausibility.conformal import Calibration, Tail
from ..plausibility.model import PlausibilityModel
from ..plausibility.pairs import EmptyPairs
from ..plausibility.support import MIN_SAMPLES_LEAF, LevelChain, Support, level_columns
from ..plausibility.surrogate import MAX_ROWS, Link, Surrogate
from ..predictors.decision import Decision, Interval, LabelMeasure, LabelRule
from ..relations.dates import DATE_PARTS, DateView
from ..relations.discovery import most_relations
from ..relations.kinds import Dependency, Equation, Equivalence, Ordering
from ..relations.relation import FoundRelation, View
from ..relations.views import Amounts, HasValue, Product, Steps, Sum
from ..tables.columns import is_time
from ..tables.features import Feature
from ..tables.schema import EncodedRows, Schema
from .archive import ensure
from .values import (
    check_array,
    check_codes,
    check_entries,
    check_hashes,
    check_integer,
    pack,
    unpack,
    unpack_cell,
)


@dataclass(frozen=True)
class Known:
    """What was read of a file before its parts."""

    schema: Schema
    order: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    n_desired: int = 0

    @cached_property
    def n_codes(self) -> IntArray:
        """Number of codes of each column."""
        return np.array([feature.n_codes for feature in self.schema.features])

    @cached_property
    def features(self) -> dict[Hashable, Feature]:
        """Columns by name."""
        return {feature.name: feature for feature in self.schema.features}

    @cached_property
    def row(self) -> pd.DataFrame:
        """A row of training values."""
        codes = np.zeros((len(self.schema.features), 1), dtype=np.int32)
        return EncodedRows.from_codes(self.schema, codes).frame


@dataclass(frozen=True)
class Kind:
    """How a field is read from a file, checked, and how it is written."""

    read: Callable[[Any, Known], Any]
    write: Callable[[Any], Any] = lambda value: value


def _number(low: float = -math.inf, high: float = math.inf) -> Kind:
    """A finite float from low to high."""

    def read(plain: Any, known: Known) -> float:
        sound = type(plain) is float and math.isfinite(plain) and low <= plain <= high
        ensure(sound, "a number is missing, not finite or out of its range")
        return float(plain)

    return Kind(read, float)


def _whole(most: int) -> Kind:
    return Kind(lambda plain, known: check_integer(plain, "a number", most))


def _choice(*words: Any) -> Kind:
    def read(plain: Any, known: Known) -> Any:
        sound = any(type(plain) is type(word) and plain == word for word in words)
        ensure(sound, "a choice is none of those there are")
        return plain

    return Kind(read)


def _optional(kind: Kind) -> Kind:
    return Kind(
        lambda plain, known: None if plain is None else kind.read(plain, known),
        lambda value: None if value is None else kind.write(value),
    )


def _several(kind: Kind) -> Kind:
    """Any number of one kind, as a tuple."""

    def read(plain: Any, known: Known) -> tuple[Any, ...]:
        ensure(isinstance(plain, list), "something else stands where a list should")
        return tuple(kind.read(item, known) for item in plain)

    return Kind(read, lambda values: [kind.write(value) for value in values])


def _pair(first: Kind, second: Kind) -> Kind:
    def read(plain: Any, known: Known) -> tuple[Any, Any]:
        one, other = plain
        return first.read(one, known), second.read(other, known)

    return Kind(read, lambda values: [first.write(values[0]), second.write(values[1])])


def _part(of: type[Any]) -> Kind:
    """A value of a class that is written field by field."""

    def read(plain: Any, known: Known) -> Any:
        given = check_entries(plain, FIELDS[of], of.__name__)
        value = of(**{name: kind.read(given[name], known) for name, kind in FIELDS[of].items()})
        BETWEEN.get(of, _nothing)(value, known)
        return value

    return Kind(
        read,
        lambda value: {n: kind.write(getattr(value, n)) for n, kind in FIELDS[of].items()},
    )


def _nothing(value: Any, known: Known) -> None:
    """Nothing has to hold between the fields."""


def _one_of(*classes: type[Any]) -> Kind:
    """A value of one of these classes, with the name of its class."""
    by_name = {of.__name__: _part(of) for of in classes}

    def read(plain: Any, known: Known) -> Any:
        [(name, parts)] = plain.items()
        return by_name[name].read(parts, known)

    return Kind(read, lambda one: {type(one).__name__: by_name[type(one).__name__].write(one)})


def _operand(column: Kind) -> Kind:
    """A column, or what is computed from columns."""
    views = _one_of(*VIEWS)
    names = {of.__name__ for of in VIEWS}

    def read(plain: Any, known: Known) -> Hashable:
        is_view = isinstance(plain, dict) and plain.keys() <= names
        return (views if is_view else column).read(plain, known)

    return Kind(read, lambda one: (views if isinstance(one, View) else column).write(one))


def _column(*, numeric: bool = True, times: bool = False) -> Kind:
    """The name of a column that holds what a relation computes with."""

    def read(plain: Any, known: Known) -> Hashable:
        feature = known.features[unpack(plain)]
        numbers = feature.kind == "numeric" and (times or not is_time(feature.table.dtype))
        ensure(numbers or not numeric, "a relation computes with a column that holds no numbers")
        return feature.name

    return Kind(read, lambda name: pack(name, "the name of a column"))


def _array(dtype: type[np.generic], sound: Callable[[np.ndarray], Any] = np.isfinite) -> Kind:
    """A vector of this dtype, whose values are all sound."""

    def read(plain: Any, known: Known) -> np.ndarray:
        values = check_array(plain, dtype, 1, "the values of a part")
        ensure(np.all(sound(values)), "the values of a part are out of their range, or in disorder")
        return values

    return Kind(read)


def _ascend(values: np.ndarray) -> bool:
    return bool((np.isfinite(values) & (values >= 0)).all() and (np.diff(values) >= 0).all())


def _read_weight(plain: Any, known: Known) -> float:
    weight: float = NUMBER.read(plain, known)
    ensure(weight and math.isfinite(1 / weight), "a weight is too small to divide by")
    return weight


VIEWS = Amounts, DateView, Steps, Sum
NUMBER, SHARE, POSITIVE = _number(), _number(0.0, 1.0), _number(0.0)
FLAG, POSITION = _choice(False, True), _whole(2**31 - 1)
CELL = Kind(lambda plain, known: unpack_cell(plain), lambda value: pack(value, "a relation"))
ANY_COLUMN, NUMERIC, ORDERED = _column(numeric=False), _column(), _column(times=True)
ANY_OPERAND, NUMBERS, DATES = _operand(ANY_COLUMN), _operand(NUMERIC), _operand(ORDERED)
WEIGHT = Kind(_read_weight, float)
BOOSTED = Kind(lambda plain, known: unpack_boosted(plain, known.n_codes), pack_boosted)
TAIL_VALUES = _array(np.float64, _ascend)
TAIL = Kind(lambda plain, known: Tail(TAIL_VALUES.read(plain, known)), lambda tail: tail.values)
# JSON has no NaN, which says that there is no threshold.
THRESHOLD = Kind(
    lambda plain, known: math.nan if plain is None else NUMBER.read(plain, known),
    lambda number: None if math.isnan(number) else number,
)
FIELDS: dict[type[Any], dict[str, Kind]] = {
    LabelRule: {"measure": _choice(*get_args(LabelMeasure)), "low": NUMBER, "high": NUMBER},
    Flag: {"position": POSITION, "evidence": _choice(*EVIDENCE)},
    Surrogate: {
        "trees": _several(BOOSTED),
        "effects": _several(_array(np.float64)),
        "link": _choice(*get_args(Link)),
        "threshold": THRESHOLD,
        "r2": _number(high=1.0),
        "rank_agreement": _number(-1.0, 1.0),
        "error": POSITIVE,
        "n_rows": _whole(MAX_ROWS),
        "n_held_out": _whole(MAX_ROWS),
    },
    Conditional: {
        "position": POSITION,
        "centre": NUMBER,
        "least": POSITIVE,
        "mean": _optional(BOOSTED),
        "error": _optional(BOOSTED),
        "missing": _optional(BOOSTED),
    },
    Calibration: {"parts": _several(TAIL), "usual": TAIL, "rare": _optional(TAIL)},
    FoundRelation: {
        "relation": _one_of(Equation, Ordering, Equivalence, Dependency),
        "share": SHARE,
        "n_rows": _whole(2**53),
        "p_value": SHARE,
        "enforced": FLAG,
    },
    Equation: {
        "result": NUMERIC,
        "formula": _one_of(Sum, Product),
        "low": NUMBER,
        "high": NUMBER,
        "relative": FLAG,
        "rounding": POSITIVE,
        "is_bound": FLAG,
    },
    Sum: {"of": _several(NUMBERS), "weights": _several(WEIGHT), "constant": NUMBER},
    Product: {
        "of": _several(NUMBERS),
        "powers": _several(_choice(-2, -1, 1, 2)),
        "factor": NUMBER,
    },
    Amounts: {"of": _several(ANY_COLUMN), "amounts": _several(_pair(CELL, NUMBER))},
    Ordering: {
        "lower": DATES,
        "upper": DATES,
        "strict": FLAG,
        "offset": NUMBER,
        "factor": _number(low=5e-324),
    },
    HasValue: {"of": _several(ANY_COLUMN), "values": _several(CELL)},
    Equivalence: {"first": _part(HasValue), "second": _part(HasValue)},
    Dependency: {
        "determinant": ANY_OPERAND,
        "result": ANY_COLUMN,
        "values": _several(_pair(CELL, CELL)),
    },
    DateView: {"what": _choice("date", "days", *DATE_PARTS), "of": _several(ANY_OPERAND)},
    Steps: {"of": _several(NUMBERS), "limits": _several(NUMBER)},
}


def _check_ends(value: LabelRule | Equation, known: Known) -> None:
    ensure(value.low <= value.high, "a range has its ends out of order")


def _check_lengths(formula: Sum | Product, known: Known) -> None:
    of_each = formula.weights if isinstance(formula, Sum) else formula.powers
    ensure(len(of_each) == len(formula.of) > 0, "a formula has another number of columns")


def _check_view(view: Amounts | HasValue | Steps, known: Known) -> None:
    ensure(len(view.of) == 1, "a relation reads another number of columns")
    if not isinstance(view, Steps):
        _check_values(view, known)


def _check_values(one: Amounts | Dependency | HasValue, known: Known) -> None:
    pairs = one.amounts if isinstance(one, Amounts) else one.values
    given = pairs if isinstance(one, HasValue) else (value for value, _ in pairs)
    values = check_hashes([*given])
    ensure(len(set(values)) == len(values), "a relation names a value twice")


def _check_relation(found: FoundRelation, known: Known) -> None:
    """Raise unless a relation can be computed on the columns."""
    found.relation.excess(known.row)
    ensure(isinstance(found.relation.name, str), "a relation has no name")


def _check_surrogate(surrogate: Surrogate, known: Known) -> None:
    ensure(len(surrogate.trees) == 2, "the surrogate is not two models")
    sizes = [effect.size for effect in surrogate.effects]
    fits = not sizes or sizes == (known.n_codes + 1).tolist()
    ensure(fits, "the effects of values are not those of its columns")
    ensure(surrogate.n_held_out <= surrogate.n_rows, "more rows are held out than there are")


def _check_conditional(one: Conditional, known: Known) -> None:
    whole = (one.least == 0) == (one.mean is None) == (one.error is None)
    ensure(whole, "the model of a number is not whole")
    models = (one.mean, one.error, one.missing)
    own = any(model and one.position in model.ensemble.inputs for model in models)
    ensure(not own, "the model of a number is given the number itself")


def _check_calibration(calibration: Calibration, known: Known) -> None:
    tails = [*calibration.parts, calibration.usual, calibration.rare]
    most = max(tail.values.size for tail in tails if tail is not None)
    ensure(most <= known.n_desired, "the calibration holds more values than accepted rows")
    sizes = {tail.values.size for tail in calibration.parts}
    ensure(sizes <= {calibration.n_held_out}, "its parts hold other numbers of rows")


BETWEEN: dict[type[Any], Callable[[Any, Known], None]] = {
    LabelRule: _check_ends,
    Equation: _check_ends,
    Sum: _check_lengths,
    Product: _check_lengths,
    Amounts: _check_view,
    HasValue: _check_view,
    Steps: _check_view,
    Dependency: _check_values,
    FoundRelation: _check_relation,
    Surrogate: _check_surrogate,
    Conditional: _check_conditional,
    Calibration: _check_calibration,
}


def _read_flags(plain: Any, known: Known) -> tuple[Flag, ...]:
    flags: tuple[Flag, ...] = _several(_part(Flag)).read(plain, known)
    positions = [one.position for one in flags]
    in_order = positions == sorted(set(positions) & set(range(len(known.schema.features))))
    ensure(in_order, "its flags are not those of its columns")
    return flags


def _read_relations(plain: Any, known: Known) -> tuple[FoundRelation, ...]:
    most = most_relations(len(known.schema.features))
    ensure(isinstance(plain, list) and len(plain) <= most, f"it has more than {most} relations")
    found: tuple[FoundRelation, ...] = _several(_part(FoundRelation)).read(plain, known)
    return found


def _read_training_rows(plain: Any, known: Known) -> np.ndarray:
    given = check_entries(plain, ("codes",), "the part of training rows")["codes"]
    codes = check_codes(getattr(given, "T", None), known.schema, "the training rows")
    return np.unique(rows_as_bytes(codes.T))


def _read_value_counts(plain: Any, known: Known) -> tuple[IntArray, ...]:
    sizes = known.n_codes[known.schema.mutable]
    counts = check_array(plain, np.int64, 1, "its counts of values")
    ensure(counts.size == sizes.sum(), "it does not count the values of its columns")
    parts = tuple(np.split(counts, np.cumsum(sizes)[:-1]))
    # As Python integers, which cannot overflow.
    same = len({sum(part.tolist()) for part in parts}) == 1
    ensure(same and (counts > 0).all(), "its counts of values are not those of one table")
    return parts


def _write_plausibility(model: PlausibilityModel) -> dict[str, Any]:
    pairs = model.pairs_
    return {
        "codes": model.codes_,
        "chains": [
            {"responses": chain.responses, "trees": pack_trees(chain.trees)}
            for chain in model.support_.chains_
        ],
        "conditionals": _several(_part(Conditional)).write(model.conditionals_.models_),
        "calibration": _part(Calibration).write(model.calibration_),
        "pairs": {name: getattr(pairs, name) for name in ("bins", "columns", "packed")},
    }


def _read_plausibility(plain: Any, known: Known) -> PlausibilityModel:
    names = ("codes", "chains", "conditionals", "calibration", "pairs")
    given = check_entries(plain, names, "the plausibility model")
    codes = check_codes(given["codes"], known.schema, "the accepted rows")
    ensure(codes.shape[1] == known.n_desired, "it has another number of accepted rows")
    support = _read_support(given["chains"], known)
    conditionals = _read_conditionals(given["conditionals"], known)
    calibration = _part(Calibration).read(given["calibration"], known)
    n_parts = bool(support.chains_) + 2 * len(conditionals.models_)
    ensure(len(calibration.parts) == n_parts, "the calibration has another number of parts")
    rows = EncodedRows.from_codes(known.schema, codes)
    pairs = _read_pairs(**given["pairs"], known=known)
    return PlausibilityModel.restored(rows, support, conditionals, calibration, pairs)


def _read_support(plain: Any, known: Known) -> Support:
    levels = known.order[np.isin(known.order, level_columns(known.schema))]
    fits = isinstance(plain, list) and len(plain) == (2 if levels.size else 0)
    ensure(fits, "the support has another number of chains")
    support = Support()
    support.chains_ = [
        _read_chain(**chain, known=known, levels=levels, contradictions=number > 0)
        for number, chain in enumerate(plain)
    ]
    for chain in support.chains_:
        sizes, first = tree_sizes(chain.trees), tree_sizes(support.chains_[0].trees)[0]
        fits = (sizes == sizes[0]).all() and first <= known.n_desired
        ensure(fits, "the trees of the support hold other numbers of rows")
    return support


def _read_chain(
    responses: Any, trees: Any, known: Known, levels: IntArray, *, contradictions: bool
) -> LevelChain:
    given = check_array(responses, np.int64, 1, "the columns of the support")
    ensure(np.array_equal(given, levels), "the support does not follow the visit order")
    grown: Trees = unpack_trees(trees, ChainRules(known.schema, levels, known.order))
    # Each node takes memory for all levels, so smaller leaves would ask for far more than the file.
    is_root = np.isin(np.arange(grown.feature.size), grown.roots)
    small = grown.count[(grown.feature == LEAF) & ~is_root] < MIN_SAMPLES_LEAF
    ensure(not small.any(), "the trees of the support have leaves that are too small")
    return LevelChain.of(known.schema, levels, grown, contradictions=contradictions)


def _read_conditionals(plain: Any, known: Known) -> Conditionals:
    conditionals = Conditionals()
    conditionals.models_ = _several(_part(Conditional)).read(plain, known)
    positions = [one.position for one in conditionals.models_]
    features = known.schema.features
    numbers = {at for at, feature in enumerate(features) if feature.kind == "numeric"}
    in_order = positions == sorted(set(positions) & numbers)
    ensure(in_order, "the models are of other features than the numbers")
    return conditionals


def _read_pairs(bins: Any, columns: Any, packed: Any, known: Known) -> EmptyPairs:
    what, sizes = "the pairs of values that no row has", known.n_codes + 1
    check_array(bins, np.uint8, 1, what)
    check_array(packed, np.uint8, 1, what)
    check_array(columns, np.int32, 2, what)
    ensure(len(columns) == 2 and bins.size == sizes.sum(), f"{what} are not of its columns")
    one, other = columns.astype(np.int64)
    in_order = (np.diff(one * sizes.size + other) > 0).all() and (one < other).all()
    within = (columns >= 0).all() and (columns < sizes.size).all()
    ensure(in_order and within, "the pairs of columns are not ascending")
    pairs = EmptyPairs(bins, np.cumsum(sizes) - sizes, columns, packed)
    ensure(packed.size == -(-pairs.n_cells // 8), f"{what} have tables of other sizes")
    return pairs


# The fields of Fitted that not every file has, which are parts of it by the same name.
PARTS = {
    "label_rule": _part(LabelRule),
    "training_rows": Kind(
        _read_training_rows, lambda rows: {"codes": rows.view(np.int32).reshape(len(rows), -1)}
    ),
    "value_counts": Kind(_read_value_counts, lambda counts: np.concatenate(counts, dtype=np.int64)),
    "relations": Kind(_read_relations, _several(_part(FoundRelation)).write),
    "flags": Kind(_read_flags, _several(_part(Flag)).write),
    "plausibility": Kind(_read_plausibility, _write_plausibility),
    "surrogate": _part(Surrogate),
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
