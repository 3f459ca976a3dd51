"""Saved explainers of several kinds, changes of what their files hold, and what becomes of them."""

from __future__ import annotations

import copy
import warnings
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

import mcce
from mcce import MCCE, ExactSearch, ForestChain, McceError, McceWarning, Search, TreeChain
from mcce import constraints as c
from saved_files import document_bytes, parts_of, read_document

N_TRAIN, N_PEOPLE = 120, 8
JSON_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 2, 63, 64, 2**31, -(2**31), 2**53, 2**63, 2**64, 10**400),
    *(0.0, -0.0, 0.5, 1e308, -1e-308, "", "x", "a" * 5000, [], {}, [[]], [None]),
    *({"list": []}, {"float": "nan"}, {"float": "inf"}, {"zone": "UTC"}, {"set": [1]}),
    *({"dict": [[1, 2]]}, {"frozenset": [[]]}, {"missing": "NA"}, {"numpy": ["<f4", "0000c03f"]}),
    *({"interval": [0, 1, "both"]}, {"search": {"dict": []}}, {"array": "nowhere.npy"}),
    *({"generator": ["trees", {"dict": []}]}, {"constraint": ["only_up", {"dict": []}]}),
)
DTYPES = ("<i4", "<i8", "<u8", "<u1", "<f4", "<f8", "?", "<M8[ns]", "<m8[s]", "<i2", "<f2")
# Arrays whose cells can change without breaking what others say.
LOOSE = ("cut", "sets", "values", "codes", "probes", "strains")


def customers(n_rows: int, seed: int) -> pd.DataFrame:
    """Numbers, levels (more than 64 of one), booleans and dates, some missing."""
    chance = np.random.default_rng(seed)
    levels = [f"p{number}" for number in range(70)]
    sizes = pd.CategoricalDtype(["low", "mid", "high", "never"], ordered=True)
    gaps = partial(chance.choice, [False, True], n_rows, p=[0.9, 0.1])
    age = chance.integers(4, 14, n_rows) * 5
    return pd.DataFrame(
        {
            "age": age,
            "city": pd.Series(chance.choice(["Oslo", "Bergen"], n_rows)).mask(gaps()),
            "income": pd.Series(chance.integers(10, 60, n_rows) / 4).mask(gaps()),
            "place": pd.Series(np.array(levels)[age - 20 + chance.integers(0, 25, n_rows)]).astype(
                "category"
            ),
            "size": pd.Series(chance.choice(["low", "mid", "high"], n_rows)).astype(sizes),
            "since": pd.to_datetime(chance.integers(0, 40, n_rows), unit="D"),
            "children": pd.Series(chance.integers(0, 4, n_rows), dtype="Int64").mask(gaps()),
            "member": chance.random(n_rows) < 0.5,
        }
    )


def points(rows: Any) -> np.ndarray:
    """A whole number for each row of any kind of frame."""
    if isinstance(rows, np.ndarray):
        return (np.nan_to_num(rows) > 5).sum(axis=1)
    frame = rows if isinstance(rows, pd.DataFrame) else rows.to_pandas()
    total = 2 * (frame["age"] > 40).to_numpy(dtype=int)
    total = total + 3 * (frame["income"] > 8).to_numpy(dtype=int)
    if "city" in frame:
        total = total + 2 * (frame["city"].astype(object) == "Oslo").to_numpy(dtype=int)
        total = total + frame["children"].fillna(1).to_numpy(dtype=int)
    return total + frame["member"].to_numpy(dtype=int)


def write_saved(folder: Path) -> dict[str, tuple[Path, Any]]:
    """A saved explainer of each kind with people to explain, by name."""
    train, people = customers(N_TRAIN, 1), customers(N_PEOPLE, 2)
    rules = [c.only_up("income"), c.frozen("city", where="age > 60"), c.max_changes(3)]
    rules += [c.relation("old", "income + children < 30"), c.levels("size", ["mid", "high"])]
    own = Search("near", max_evaluations=40)
    settings: dict[str, dict[str, Any]] = {
        "paper": {"search": Search("paper", copies="never"), "n_samples": 60},
        "balanced": {"search": "balanced", "n_samples": 60, "constraints": rules},
        "near": {"search": own, "n_counterfactuals": 2, "diversity": 0.5},
        "exact": {"search": ExactSearch(max_rows=30, max_nodes=2000), "constraints": rules[:3]},
        "both": {"search": "plausible", "generator": TreeChain(decisions=(False, True))},
        "forest": {"search": "sparse", "generator": ForestChain(n_trees=3), "distance": "hvdm"},
    }
    some = ["age", "income", "member"]
    frames: dict[str, Any] = {"array": (train[some[:2]].to_numpy(float), people[some[:2]])}
    if find_spec("polars"):
        import polars

        frames["polars"] = polars.from_pandas(train[some]), polars.from_pandas(people[some])
    saved = {}
    for name in [*settings, *frames]:
        given, rows = frames.get(name, (train, people))
        chosen = settings.get(name, {"search": "sparse", "n_samples": 30})
        fixed = {} if name == "array" else {"immutable": ["age"]}
        desired = (1, 2) if name in frames else (7, 99)
        explainer = MCCE(points, desired, random_state=3, **fixed, **chosen).fit(given)
        explainer.save(folder / f"{name}.mcce")
        saved[name] = folder / f"{name}.mcce", rows.to_numpy(float) if name == "array" else rows
    return saved


def load_and_explain(path: Path, people: Any) -> str:
    """Load a file and explain thrice: "refused", "explained", or "failed" with an error of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", McceWarning)
        try:
            explainer = mcce.load(path, points)
            limit(explainer)
        except McceError as error:
            return "refused" if len(str(error)) < 4000 else "refused in too many words"
        try:
            for part in (people, people[::-1], people[:1]):
                explainer.explain(part)
        except McceError:
            return "failed"
    return "explained"


def limit(explainer: MCCE) -> None:
    """Bound what a file may ask for in parameters that are legal, but take long."""
    search = explainer.search
    if isinstance(search, str):
        search = ExactSearch() if search == "exact" else Search(search)  # type: ignore[arg-type]
    bounds = {"max_samples": 400, "max_rows": 100, "max_nodes": 5000}
    lower = {
        name: most for name, most in bounds.items() if (getattr(search, name, None) or 0) > most
    }
    explainer.set_params(
        n_samples=None if explainer.n_samples is None else min(explainer.n_samples, 200),
        search=replace(search, **lower),
        n_counterfactuals=min(explainer.n_counterfactuals, 20),
        memory=min(explainer.memory, 64.0),
        n_jobs=1,
        max_seconds=5.0,
        verbose=False,
    )


@st.composite
def changed_files(draw: Any, source: Path) -> bytes:
    """The file with a few changes and good checksums, mild (what it could hold) or wild."""
    document = copy.deepcopy(read_document(source))
    steps = [change_cell] * 9 + [nudge_number]
    mild = draw(st.integers(0, 3)) > 0
    if not mild:
        steps = [boundary_cells, change_shape, swap_arrays, change_json, change_json, remove]
    for _ in range(draw(st.integers(1, 3))):
        draw(st.sampled_from(steps))(document, draw)
    data = document_bytes(document)
    return data if mild or draw(st.integers(0, 9)) else draw(damaged(data))


@st.composite
def damaged(draw: Any, data: bytes) -> bytes:
    """The bytes with some of them changed, or another length."""
    how = draw(st.sampled_from(["flip", "cut", "append", "double"]))
    place = draw(st.integers(0, len(data) - 1))
    if how == "flip":
        return (
            data[:place] + bytes([data[place] ^ 1 << draw(st.integers(0, 7))]) + data[place + 1 :]
        )
    return {"cut": data[:place], "append": data + b"\0" * (place % 100 + 1)}.get(how, data * 2)


def at(document: Any, way: tuple[Any, ...]) -> Any:
    for key in way:
        document = document[key]
    return document


def put(document: Any, way: tuple[Any, ...], value: Any) -> None:
    at(document, way[:-1])[way[-1]] = value


def arrays_of(document: Any) -> list[tuple[Any, ...]]:
    return [way for way in parts_of(document) if isinstance(at(document, way), np.ndarray)]


def change_cell(document: Any, draw: Any) -> None:
    """Another value in one cell of an array, most often one that could stand there."""
    ways = arrays_of(document)
    loose = [way for way in ways if way[-1] in LOOSE and "table" not in way]
    way = draw(st.sampled_from(loose if loose and draw(st.integers(0, 9)) else ways))
    array = at(document, way)
    if not array.size:
        return
    flat = array.reshape(-1).copy()
    cell, other = (draw(st.integers(0, flat.size - 1)) for _ in range(2))
    if flat.dtype.kind == "b":
        flat[cell] = not flat[cell]
    elif flat.dtype == np.uint64 and "sets" in way:
        flat[cell] ^= np.uint64(1) << np.uint64(draw(st.integers(0, 63)))
    elif draw(st.booleans()):
        flat[cell] = flat[other]
    elif flat.dtype.kind in "iu":
        # A slice, because an array wraps around where a number would raise.
        flat[cell : cell + 1] += flat.dtype.type(1)
    put(document, way, flat.reshape(array.shape))


def nudge_number(document: Any, draw: Any) -> None:
    ways = [way for way in parts_of(document) if type(at(document, way)) in (int, float)]
    way = draw(st.sampled_from(ways))
    value = at(document, way)
    put(document, way, draw(st.sampled_from([value + 1, value * 2, value / 2, int(value) - 1])))


def boundary_cells(document: Any, draw: Any) -> None:
    """A boundary value in one cell of an array, in some, or in all."""
    way = draw(st.sampled_from(arrays_of(document)))
    array = at(document, way)
    flat = array.reshape(-1).copy()
    if flat.dtype.kind in "iu":
        ends = np.iinfo(flat.dtype)
        values = [0, 1, 2, 63, 64, ends.max, ends.min, ends.max - 1, array.size, -1, 10**6]
    else:
        values = [0.0, -0.0, np.nan, np.inf, 1e308, 5e-324] if flat.dtype.kind == "f" else [0, 1]
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        value = np.array(draw(st.sampled_from(values))).astype(flat.dtype)
    flat[:: draw(st.sampled_from([1, 7, max(1, flat.size)]))] = value
    put(document, way, flat.reshape(array.shape))


def change_shape(document: Any, draw: Any) -> None:
    """Another length, order, number of dimensions or dtype."""
    way = draw(st.sampled_from(arrays_of(document)))
    array = at(document, way)
    ways = {
        "empty": lambda: array[:0],
        "shorter": lambda: array[:-1],
        "longer": lambda: np.concatenate([array, array[-1:]]),
        "reversed": lambda: array[::-1].copy(),
        "flat": lambda: array.reshape(-1),
        "matrix": lambda: array[..., None],
        "transposed": lambda: np.ascontiguousarray(array.T),
        "dtype": lambda: other_dtype(array, draw(st.sampled_from(DTYPES))),
    }
    put(document, way, ways[draw(st.sampled_from(sorted(ways)))]())


def other_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = array.view(np.int64) if array.dtype.kind in "mM" else array
        return numbers.astype(dtype)


def swap_arrays(document: Any, draw: Any) -> None:
    """Two arrays in each other's place, or one in both."""
    ways = st.sampled_from(arrays_of(document))
    one, other = draw(ways), draw(ways)
    first, second = at(document, one), at(document, other)
    put(document, one, second)
    if draw(st.booleans()):
        put(document, other, first)


def change_json(document: Any, draw: Any) -> None:
    """Another JSON value, sometimes that of another place, in place of one."""
    ways = [way for way in parts_of(document) if not isinstance(at(document, way), np.ndarray)]
    value = draw(st.sampled_from(JSON_VALUES))
    if draw(st.integers(0, 2)) == 0:
        value = at(document, draw(st.sampled_from(ways)))
    put(document, draw(st.sampled_from(ways)), copy.deepcopy(value))


def remove(document: Any, draw: Any) -> None:
    """Remove, double or rename a part."""
    way = draw(st.sampled_from(list(parts_of(document))))
    place = at(document, way[:-1])
    if isinstance(place, dict):
        value = place.pop(way[-1])
        if draw(st.booleans()):
            place[draw(st.sampled_from(["x", "array", "values", "dict"]))] = value
    else:
        ways = [lambda: place.pop(way[-1]), lambda: place.append(place[way[-1]]), place.reverse]
        draw(st.sampled_from(ways))()
