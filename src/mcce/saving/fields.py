"""What ``fit`` learned, part by part: as plain data and arrays, and back, checked.

``FIELDS`` is one table for each part that is saved field by field: its names are what is written,
its functions read a field and raise for what ``fit`` could not have learned. What has to hold
between fields stands beside the part. Generators and distances write and read their own arrays.

A file holds no code. Of a generator that is not registered it holds the name of the class and what
``to_arrays`` gives; to load it, the user passes an instance, whose ``from_arrays`` takes that. The
predictor is recognized by its scores of up to eight synthetic rows. Their immutable features are
spread evenly over the tables of training values, and so are the mutable ones of every other row;
those of the remaining rows are draws of the generator. They equal a training row only by chance.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Hashable, Mapping
from dataclasses import fields
from typing import Any, TypeAlias, get_args

import numpy as np
import pandas as pd

from ..distances import FeatureDistance, find_distance
from ..errors import ParameterError, PredictorError, SavedFileError, shorten
from ..fitted import Fitted
from ..kernels import LEAF, Codes, FloatArray, IntArray, Trees, person_keys
from ..model.arrays import ChainRules, pack_trees, tree_sizes, unpack_trees, vector
from ..model.flags import EVIDENCE, Flag
from ..model.registry import GENERATORS, require, suggest_generators
from ..plausibility.boosting import BoostedTrees, pack_boosted, unpack_boosted
from ..plausibility.conditionals import Conditional, Conditionals
from ..plausibility.conformal import Calibration, Tail
from ..plausibility.model import PlausibilityModel
from ..plausibility.pairs import EmptyPairs
from ..plausibility.support import MIN_SAMPLES_LEAF, LevelChain, Support, level_columns
from ..plausibility.surrogate import MAX_ROWS, Link, Surrogate
from ..predictors.decision import Decision, Interval, LabelMeasure, LabelRule
from ..protocols import Distance, DrawRequest, Generator
from ..relations.discovery import most_relations
from ..relations.kinds import (
    Bound,
    Dependency,
    Equivalence,
    HasValue,
    Linear,
    Ordering,
    Product,
    Ratio,
)
from ..relations.relation import FoundRelation, Relation, View
from ..tables.columns import is_time
from ..tables.schema import EncodedRows, Schema
from .archive import ARRAY, ARRAY_KINDS, refused
from .values import NO_CELLS, check_codes, check_entries, check_integer, pack, unpack

CUSTOM = "custom generator"
N_PROBES = 8
# Zero has no relative tolerance.
NOTHING = 1e-12
RELATIONS: dict[str, type[Any]] = {
    kind.kind: kind for kind in (Linear, Product, Ratio, Bound, Ordering, Equivalence, Dependency)
}
Reader: TypeAlias = Callable[[Any, Schema], Any]


def write_fields(part: Any) -> dict[str, Any]:
    """The fields of a part by name, as plain data and arrays."""
    return {name: _write_value(getattr(part, name)) for name in FIELDS[type(part)]}


def read_fields(kind: type[Any], plain: Any, schema: Schema, what: str) -> dict[str, Any]:
    """The fields that :func:`write_fields` gave for a part of this kind, each checked."""
    given = check_entries(plain, FIELDS[kind], what)
    return {name: read(given[name], schema) for name, read in FIELDS[kind].items()}


def _write_value(value: Any) -> Any:
    if type(value) in FIELDS:
        return write_fields(value)
    if isinstance(value, BoostedTrees):
        return pack_boosted(value)
    if isinstance(value, Trees):
        return pack_trees(value)
    if isinstance(value, Tail):
        return value.values
    if isinstance(value, (tuple, list)):
        return [_write_value(item) for item in value]
    return value


def _real(low: float = -math.inf, high: float = math.inf) -> Reader:
    """Reads a finite float from low to high."""

    def read(plain: Any, schema: Schema) -> float:
        if type(plain) is not float or not math.isfinite(plain) or not low <= plain <= high:
            raise SavedFileError("a number is missing, not finite or out of its range")
        return plain

    return read


def _integer(most: int) -> Reader:
    return lambda plain, schema: check_integer(plain, "a number", most)


def _choice(*words: str) -> Reader:
    def read(plain: Any, schema: Schema) -> str:
        if not isinstance(plain, str) or plain not in words:
            raise SavedFileError("a choice is none of those there are")
        return plain

    return read


def _flag(plain: Any, schema: Schema | None = None) -> bool:
    if type(plain) is not bool:
        raise SavedFileError("a choice between two is missing")
    return plain


def _threshold(plain: Any, schema: Schema) -> float:
    """A number, or NaN where there is none."""
    number: float = math.nan if plain is None else _real()(plain, schema)
    return number


def _boosted(plain: Any, schema: Schema) -> BoostedTrees:
    return unpack_boosted(plain, np.array([feature.n_codes for feature in schema.features]))


def _tail(plain: Any, schema: Schema) -> Tail:
    values: FloatArray = vector(plain, np.float64)
    if (np.diff(values) < 0).any():
        raise SavedFileError("the values of the calibration do not ascend")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise SavedFileError("the values of the calibration are not finite, or negative")
    return Tail(values)


def _effect(plain: Any, schema: Schema) -> FloatArray:
    effect: FloatArray = vector(plain, np.float64)
    if not np.isfinite(effect).all():
        raise SavedFileError("the effects of values are not finite")
    return effect


def _optional(read: Reader) -> Reader:
    return lambda plain, schema: None if plain is None else read(plain, schema)


def _several(read: Reader) -> Reader:
    def read_all(plain: Any, schema: Schema) -> tuple[Any, ...]:
        if not isinstance(plain, list):
            raise SavedFileError("something else stands where a list should")
        return tuple(read(item, schema) for item in plain)

    return read_all


FIELDS: dict[type[Any], dict[str, Reader]] = {
    LabelRule: {"measure": _choice(*get_args(LabelMeasure)), "low": _real(), "high": _real()},
    Surrogate: {
        "trees": _several(_boosted),
        "effects": _several(_effect),
        "link": _choice(*get_args(Link)),
        "threshold": _threshold,
        "r2": _real(high=1.0),
        "rank_agreement": _real(-1.0, 1.0),
        "error": _real(0.0),
        "n_rows": _integer(MAX_ROWS),
        "n_held_out": _integer(MAX_ROWS),
    },
    # Read by _unpack_chain, which knows what its trees may hold.
    LevelChain: {"responses": lambda plain, _: plain, "trees": lambda plain, _: plain},
    Conditional: {
        "position": _integer(2**31 - 1),
        "centre": _real(),
        "least": _real(0.0),
        "mean": _optional(_boosted),
        "error": _optional(_boosted),
        "missing": _optional(_boosted),
    },
    Calibration: {"parts": _several(_tail), "usual": _tail, "rare": _optional(_tail)},
    # Read by _empty_pairs, which knows the columns.
    EmptyPairs: dict.fromkeys(("bins", "columns", "packed"), lambda plain, _: plain),
    Flag: {"position": _integer(2**31 - 1), "evidence": _choice(*EVIDENCE)},
    FoundRelation: {
        "share": _real(0.0, 1.0),
        "n_rows": _integer(2**53),
        "p_value": _real(0.0, 1.0),
        "enforced": _flag,
    },
}


def unpack_label_rule(plain: Any, schema: Schema) -> LabelRule:
    """When labels follow from scores, checked."""
    rule = LabelRule(**read_fields(LabelRule, plain, schema, "what it says of labels"))
    if rule.low > rule.high:
        raise SavedFileError("what it says of labels has its ends out of order")
    return rule


def unpack_flags(plain: Any, schema: Schema) -> tuple[Flag, ...]:
    """The flags of columns, checked."""
    if not isinstance(plain, list):
        raise SavedFileError("something else stands where flags should")
    flags = tuple(Flag(**read_fields(Flag, one, schema, "a flag")) for one in plain)
    positions = [one.position for one in flags]
    if positions != sorted(set(positions)) or (flags and positions[-1] >= len(schema.features)):
        raise SavedFileError("its flags are not those of its columns")
    return flags


def pack_surrogate(surrogate: Surrogate) -> dict[str, Any]:
    """The surrogate as plain data; JSON has no NaN."""
    no_threshold = {"threshold": None} if math.isnan(surrogate.threshold) else {}
    return write_fields(surrogate) | no_threshold


def unpack_surrogate(plain: Any, schema: Schema) -> Surrogate:
    """The surrogate from plain data, checked."""
    surrogate = Surrogate(**read_fields(Surrogate, plain, schema, "the surrogate"))
    if len(surrogate.trees) != 2:
        raise SavedFileError("the surrogate is not two models")
    sizes = [feature.n_codes + 1 for feature in schema.features]
    if surrogate.effects and [effect.size for effect in surrogate.effects] != sizes:
        raise SavedFileError("the effects of values are not those of its columns")
    if surrogate.n_held_out > surrogate.n_rows:
        raise SavedFileError("more rows are held out than there are")
    return surrogate


def check_surrogate(surrogate: Surrogate, decision: Decision) -> None:
    """Raise if a surrogate cannot be one of a decision."""
    by_interval, by_label = isinstance(decision.desired, Interval), surrogate.link == "label"
    if (by_interval and by_label) or not (by_interval or by_label or decision.columns):
        raise SavedFileError("the surrogate is not one of this predictor")
    if math.isnan(surrogate.threshold) != (by_interval or by_label):
        raise SavedFileError("the threshold of the surrogate is missing, or not needed")


def pack_plausibility(model: PlausibilityModel) -> dict[str, Any]:
    """The learned arrays by name."""
    return {
        "codes": model.codes_,
        "chains": _write_value(model.support_.chains_),
        "conditionals": _write_value(model.conditionals_.models_),
        "calibration": _write_value(model.calibration_),
        "pairs": write_fields(model.pairs_),
    }


def unpack_plausibility(
    plain: Any, schema: Schema, order: IntArray, n_desired: int
) -> PlausibilityModel:
    """The model of what :func:`pack_plausibility` gave, checked."""
    names = ("codes", "chains", "conditionals", "calibration", "pairs")
    given = check_entries(plain, names, "the plausibility model")
    codes = check_codes(given["codes"], schema, "the accepted rows")
    if codes.shape[1] != n_desired:
        raise SavedFileError("it has another number of accepted rows")
    support = _support(given["chains"], schema, order, n_desired)
    rows = EncodedRows.from_codes(schema, codes)
    conditionals = _conditionals(given["conditionals"], schema)
    n_parts = bool(support.chains_) + 2 * len(conditionals.models_)
    calibration = _calibration(given["calibration"], schema, n_parts, n_desired)
    pairs = _empty_pairs(given["pairs"], schema)
    return PlausibilityModel.restored(rows, support, conditionals, calibration, pairs)


def _support(plain: Any, schema: Schema, order: IntArray, n_accepted: int) -> Support:
    levels = order[np.isin(order, level_columns(schema))]
    if not isinstance(plain, list) or len(plain) != (2 if levels.size else 0):
        raise SavedFileError("the support has another number of chains")
    support = Support()
    support.chains_ = [
        _unpack_chain(chain, schema, order, levels, contradictions=number > 0)
        for number, chain in enumerate(plain)
    ]
    sizes = [tree_sizes(chain.trees) for chain in support.chains_]
    if any((size != size[0]).any() for size in sizes) or (sizes and sizes[0][0] > n_accepted):
        raise SavedFileError("the trees of the support hold other numbers of rows")
    return support


def _unpack_chain(
    plain: Any, schema: Schema, order: IntArray, responses: IntArray, *, contradictions: bool
) -> LevelChain:
    given = read_fields(LevelChain, plain, schema, "a chain of the support")
    if not np.array_equal(vector(given["responses"], np.int64), responses):
        raise SavedFileError("the support does not follow the visit order")
    trees = unpack_trees(given["trees"], ChainRules(schema, responses, order))
    # Each node takes memory for all levels, so smaller leaves would ask for far more than the file.
    is_root = np.isin(np.arange(trees.feature.size), trees.roots)
    if (trees.count[(trees.feature == LEAF) & ~is_root] < MIN_SAMPLES_LEAF).any():
        raise SavedFileError("the trees of the support have leaves that are too small")
    return LevelChain.of(schema, responses, trees, contradictions=contradictions)


def _conditionals(plain: Any, schema: Schema) -> Conditionals:
    conditionals = Conditionals()
    conditionals.models_ = _several(_unpack_conditional)(plain, schema)
    positions = [one.position for one in conditionals.models_]
    numbers = {at for at, feature in enumerate(schema.features) if feature.kind == "numeric"}
    if positions != sorted(set(positions)) or not numbers.issuperset(positions):
        raise SavedFileError("the models are of other features than the numbers")
    return conditionals


def _unpack_conditional(plain: Any, schema: Schema) -> Conditional:
    one = Conditional(**read_fields(Conditional, plain, schema, "the model of a number"))
    if (one.least == 0) != (one.mean is None) or (one.mean is None) != (one.error is None):
        raise SavedFileError("the model of a number is not whole")
    models = (one.mean, one.error, one.missing)
    if any(model and one.position in model.ensemble.inputs for model in models):
        raise SavedFileError("the model of a number is given the number itself")
    return one


def _calibration(plain: Any, schema: Schema, n_parts: int, n_accepted: int) -> Calibration:
    calibration = Calibration(**read_fields(Calibration, plain, schema, "the calibration"))
    tails = [*calibration.parts, calibration.usual, calibration.rare]
    if any(tail is not None and tail.values.size > n_accepted for tail in tails):
        raise SavedFileError("the calibration holds more values than there are accepted rows")
    if len(calibration.parts) != n_parts:
        raise SavedFileError("the calibration has another number of parts")
    if any(tail.values.size != calibration.n_held_out for tail in calibration.parts):
        raise SavedFileError("the parts of the calibration hold other numbers of rows")
    return calibration


def _empty_pairs(plain: Any, schema: Schema) -> EmptyPairs:
    given = read_fields(EmptyPairs, plain, schema, "the pairs of values that no row has")
    bins, packed = (vector(given[name], np.uint8) for name in ("bins", "packed"))
    columns, sizes = given["columns"], np.array([one.n_codes + 1 for one in schema.features])
    if not isinstance(columns, np.ndarray) or columns.ndim != 2 or columns.dtype != np.int32:
        raise SavedFileError("the pairs of columns are no table")
    if len(columns) != 2 or bins.size != sizes.sum():
        raise SavedFileError("the pairs of values are not those of its columns")
    one, other = columns.astype(np.int64)
    in_order = (np.diff(one * sizes.size + other) > 0).all() and (one < other).all()
    if not in_order or (columns < 0).any() or (columns >= sizes.size).any():
        raise SavedFileError("the pairs of columns are not ascending")
    pairs = EmptyPairs(bins, np.cumsum(sizes) - sizes, columns, packed)
    if packed.size != -(-pairs.n_cells // 8):
        raise SavedFileError("the tables of the pairs of columns have other sizes")
    return pairs


def pack_relation(found: FoundRelation) -> dict[str, Any]:
    """A relation and its evidence as plain data."""
    relation: Any = found.relation
    what = f"the relation between {', '.join(str(name) for name in relation.features)}"
    parts = {field.name: getattr(relation, field.name) for field in fields(relation)}
    if isinstance(relation, Equivalence):
        parts = {name: [value.feature, value.value] for name, value in parts.items()}
    if isinstance(relation, Bound):
        of = relation.formula
        parts["formula"] = [of.kind, *(getattr(of, field.name) for field in fields(of))]
    packed = {name: pack(value, what) for name, value in parts.items()}
    return {"kind": relation.kind, "parts": packed} | write_fields(found)


def unpack_relations(plain: Any, schema: Schema) -> tuple[FoundRelation, ...]:
    """The relations of what :func:`pack_relation` gave, checked."""
    most = most_relations(len(schema.features))
    if not isinstance(plain, list):
        raise SavedFileError("its relations are no list")
    if len(plain) > most:
        raise SavedFileError(f"it has {len(plain)} relations, but fit finds at most {most}")
    codes = np.zeros((len(schema.features), 1), dtype=np.int32)
    row = EncodedRows.from_codes(schema, codes).frame
    return tuple(_unpack_relation(item, schema, row) for item in plain)


def _unpack_relation(plain: Any, schema: Schema, row: pd.DataFrame) -> FoundRelation:
    evidence = dict(plain)
    kind, parts = RELATIONS[evidence.pop("kind")], evidence.pop("parts")
    names = [field.name for field in fields(kind)]
    values = {name: unpack(v) for name, v in check_entries(parts, names, "a relation").items()}
    if kind is Equivalence:
        values = {name: HasValue(*value) for name, value in values.items()}
    if kind is Bound:
        of, *given = values["formula"]
        values["formula"] = {Linear.kind: Linear, Product.kind: Product}[of](*given)
    relation: Relation = kind(**values)
    _check_parts(relation, schema)
    relation.excess(row)
    return FoundRelation(relation, **read_fields(FoundRelation, evidence, schema, "a relation"))


def _check_parts(relation: Relation, schema: Schema) -> None:
    """Raise unless a relation can be computed on the columns."""
    if isinstance(relation, (Linear, Product, Ratio)):
        if _finite(relation.tolerance) < 0 or _finite(relation.rounding) < 0:
            raise SavedFileError("a relation has a number out of its range")
        _flag(relation.relative)
    if isinstance(relation, Linear):
        _check_linear(relation)
        _check_numeric((relation.result, *(name for name, _ in relation.terms)), schema)
    elif isinstance(relation, (Product, Ratio)):
        _finite(relation.factor)
        _check_numeric(relation.operands, schema)
    elif isinstance(relation, Ordering):
        _flag(relation.strict)
        _finite(relation.offset)
        if _finite(relation.factor) <= 0:
            raise SavedFileError("a relation has a number out of its range")
        _check_numeric(relation.operands, schema, times=True)
    elif isinstance(relation, Bound):
        _flag(relation.relative)
        _check_parts(relation.formula, schema)
        if _finite(relation.low) > _finite(relation.high):
            raise SavedFileError("a relation has a number out of its range")
    elif isinstance(relation, Equivalence):
        _check_cells([relation.first.value, relation.second.value])
    elif isinstance(relation, Dependency):
        _check_cells([value for pair in relation.values for value in pair])
        _check_once([value for value, _ in relation.values])
    if not set(relation.features) <= set(schema.names) or not isinstance(relation.name, str):
        raise SavedFileError("a relation is between other columns")


def _check_linear(relation: Linear) -> None:
    _finite(relation.constant)
    for _, weight in relation.terms:
        if not _finite(weight) or not math.isfinite(1 / weight):
            raise SavedFileError("a relation has a weight that is too small to divide by")
    for _, amounts in relation.amounts:
        levels = [level for level, _ in amounts]
        _check_cells(levels)
        _check_once(levels)
        for _, amount in amounts:
            _finite(amount)


def _check_numeric(names: tuple[Hashable, ...], schema: Schema, *, times: bool = False) -> None:
    by_name = {feature.name: feature for feature in schema.features}
    for name in names:
        if isinstance(name, View):
            continue
        feature = by_name[name]
        if feature.kind != "numeric" or (is_time(feature.table.dtype) and not times):
            raise SavedFileError("a relation computes with a column that does not hold numbers")


def _check_cells(values: list[Any]) -> None:
    if any(type(value) in NO_CELLS for value in values):
        raise SavedFileError("a relation holds something that no cell can be")


def _check_once(values: list[Any]) -> None:
    if len(set(values)) < len(values):
        raise SavedFileError("a relation names a value twice")


def _finite(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise SavedFileError("a relation has something else in place of a number")
    return float(value)


def pack_distance(distance: Distance) -> dict[str, Any] | None:
    """What a fitted distance learned; None if that is nothing."""
    if not isinstance(distance, FeatureDistance):
        raise SavedFileError(
            f"Cannot save the distance {type(distance).__name__}: files hold sums over features, "
            "mcce.FeatureDistance, that have a registered name. Nothing was written."
        )
    return dict(distance.to_arrays()) if distance.reads_rows else None


def unpack_distance(plain: Any, given: Any, schema: Schema) -> FeatureDistance:
    """The fitted distance of what :func:`pack_distance` gave, by the parameter ``distance``."""
    blank = find_distance(given)
    if not isinstance(blank, FeatureDistance):
        raise SavedFileError("its distance is no mcce.FeatureDistance")
    if (plain is not None) != blank.reads_rows:
        raise SavedFileError("it lacks what its distance learned, or has some that it did not")
    arrays = {} if plain is None else check_entries(plain, blank.array_names, "the distance")
    return blank.from_arrays(arrays, schema)


def is_custom(generator: Any) -> bool:
    """Whether a generator has no registered name."""
    return not isinstance(generator, str) and GENERATORS.name_of(type(generator)) is None


def pack_generator(generator: Any) -> Any:
    """The parameter ``generator`` as JSON."""
    if not is_custom(generator):
        return pack(generator, "the parameter generator")
    if not generator.capabilities.saving:
        raise SavedFileError(
            f"Cannot save the generator {type(generator).__name__}: it does not declare the "
            "capability 'saving' (to_arrays, from_arrays), and a file holds no code. Declare and "
            f"implement it, or use {suggest_generators('saving')}. Nothing was written."
        )
    return {CUSTOM: type(generator).__name__}


def unpack_generator(plain: Any, given: Any, path: str) -> Any:
    """The parameter ``generator`` of a file, which is ``given`` if it has no registered name."""
    name = plain.get(CUSTOM) if isinstance(plain, dict) else None
    if not isinstance(name, str):
        if given is not None:
            raise ParameterError(
                f"generator is for files saved with a generator of your own, but {path!r} has one "
                f"that is found by name; got {shorten(given)}. Leave generator out."
            )
        with refused(path):
            return unpack(plain)
    if type(given).__name__ != name:
        title = name if name.isidentifier() and len(name) < 80 else shorten(name)
        raise ParameterError(
            f"{path!r} was saved with the generator {title}, which has no registered name; got "
            f"generator={shorten(given)}. Pass an instance: mcce.load(path, predictor, "
            f"generator={title}())."
        )
    return given


def pack_fitted(generator: Generator) -> dict[str, Any]:
    """What a fitted generator learned."""
    savable = require(generator, "saving", "Saving needs what the generator learned as arrays")
    arrays = dict(savable.to_arrays())
    if not is_custom(generator):
        return arrays
    _check_plain(arrays, type(generator).__name__)
    return {CUSTOM: arrays}


def unpack_fitted(plain: Mapping[str, Any], blank: Generator, schema: Schema) -> Generator:
    """The fitted generator of what :func:`pack_fitted` gave."""
    savable = require(blank, "saving", "Loading needs a generator that takes arrays")
    if not is_custom(blank):
        names: tuple[str, ...] = type(blank).array_names  # type: ignore[attr-defined]
        check_entries(plain, names, "the model")
        return savable.from_arrays(plain, schema)
    arrays = check_entries(plain, (CUSTOM,), "the model")[CUSTOM]
    try:
        return savable.from_arrays(arrays, schema)
    except ValueError as error:
        # It is the user's own code, whose reason is of use.
        raise SavedFileError(f"its generator refused it: {shorten(error, 300)}") from error


def _check_plain(value: Any, where: str) -> None:
    """Raise unless a value is made of arrays and JSON values alone."""
    kind = type(value)
    if isinstance(value, np.ndarray) and value.dtype.kind in ARRAY_KINDS:
        return
    if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
        return
    if kind is list:
        for place, item in enumerate(value):
            _check_plain(item, f"{where}[{place}]")
        return
    if kind is dict and all(type(key) is str for key in value) and value.keys() != {ARRAY}:
        for key, item in value.items():
            _check_plain(item, f"{where}[{key!r}]")
        return
    raise SavedFileError(
        f"Cannot save {where} of to_arrays(): a {kind.__name__} is neither an array of numbers "
        "nor a plain value (None, bool, int, finite float, str, list, or dict with strings as "
        f"keys other than {ARRAY!r} alone). Nothing was written."
    )


def pack_predictor(fitted: Fitted) -> dict[str, Any]:
    """How the predictor is called, and its scores of the probe rows that it can score."""
    codes, scores = _probe_codes(fitted), []
    places, failure = [], None
    for place in range(N_PROBES):
        try:
            rows = probe_rows(fitted.schema, codes[:, [place]])
            scores.append(fitted.decision.score(rows).score)
            places.append(place)
        except PredictorError as error:
            # A predictor may reject a synthetic row.
            failure = error
    if failure is not None and not places:
        raise failure
    return {
        "decision": _pack_decision(fitted.decision),
        "probes": codes[:, places],
        "scores": np.concatenate(scores),
    }


def check_predictor(
    decision: Decision, schema: Schema, plain: dict[str, Any], path: str, tolerance: float
) -> None:
    """Raise unless the predictor is the one that the file was saved with."""
    called = _pack_decision(decision)
    if called != plain["decision"]:
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: it would be called as "
            f"{shorten(called, 300)}, expected {shorten(plain['decision'], 300)}. Pass the "
            "predictor that was explained; of a server or a function say also what it returns, "
            "probabilities of which classes."
        )
    rows, expected = probe_rows(schema, plain["probes"]), plain["scores"]
    try:
        got = np.concatenate([decision.score(rows.iloc[[row]]).score for row in range(len(rows))])
    except PredictorError as error:
        raise PredictorError(
            f"The predictor cannot score the probe rows of {path!r} "
            f"({shorten(error, 300).rstrip('.')}). It does not answer, is not the one that was "
            "explained, or the file was edited. Pass the predictor that was explained, which takes "
            f"the columns {shorten(schema.names, 300)}."
        ).keeping(error.original) from error
    differ = ~np.isclose(got, expected, rtol=tolerance, atol=NOTHING)
    if differ.any():
        raise PredictorError(
            f"The predictor is not the one that {path!r} was saved with: the scores of "
            f"{int(differ.sum())} of {differ.size} probe rows differ by more than a relative "
            f"tolerance of {tolerance!r}. Pass the predictor that was explained, or fit again "
            "with this one."
        )


def check_probes(plain: Any, schema: Schema) -> dict[str, Any]:
    """What :func:`pack_predictor` gave for columns like these; raises for anything else."""
    given = check_entries(plain, ("decision", "probes", "scores"), "what it says of the predictor")
    check_entries(given["decision"], ("method", "columns", "desired"), "the call of the predictor")
    # It must not hold arrays, which cannot be compared as a whole.
    json.dumps(given["decision"])
    codes = check_codes(given["probes"], schema, "the probe rows")
    scores = given["scores"]
    if not isinstance(scores, np.ndarray) or scores.dtype != np.float64 or scores.ndim != 1:
        raise SavedFileError("the scores of the probe rows are no numbers")
    if not 1 <= scores.size <= N_PROBES or scores.size != codes.shape[1]:
        raise SavedFileError("there is not one score for each probe row")
    # A score may be infinite, like the odds of what is certain; the decision lets no NaN pass.
    if np.isnan(scores).any():
        raise SavedFileError("a probe row has no score")
    return given


def probe_rows(schema: Schema, codes: Codes) -> pd.DataFrame:
    """Rows made of training values, shape of codes (n_features, n_rows)."""
    cells = [
        feature.table.iloc[row].reset_index(drop=True)
        for feature, row in zip(schema.features, codes, strict=True)
    ]
    frame = pd.DataFrame(dict(enumerate(cells)))
    frame.columns = pd.Index(schema.names, tupleize_cols=False)
    return frame


def _probe_codes(fitted: Fitted) -> Codes:
    schema = fitted.schema
    n_codes = np.array([[feature.n_codes] for feature in schema.features])
    codes = (np.arange(N_PROBES) * n_codes // N_PROBES).astype(np.int32)
    keys = person_keys(fitted.seed, codes[schema.immutable].T)
    drawn = fitted.generator.sample(DrawRequest(codes, keys, np.zeros(1, dtype=np.int64)))
    # Probes are made of training values; a generator may invent others.
    if drawn.tables is None:
        codes[schema.mutable, ::2] = drawn.codes[:, ::2, 0]
    return codes


def _pack_decision(decision: Decision) -> dict[str, Any]:
    desired: Any = decision.desired
    if not isinstance(desired, Interval):
        # The order of labels means nothing, and that of a set differs from run to run.
        desired = frozenset(desired)
    return {
        "method": decision.method,
        "columns": list(decision.columns),
        "desired": pack(desired, "desired"),
    }
