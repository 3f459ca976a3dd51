"""Mutated explainer files with good checksums: each is refused, or loads and explains.

A seed and a saved explainer give a file. Its arrays and JSON values are mutated, mildly (what a
real file could hold) or wildly, and checksums are computed anew, so that only the checks of its
contents stand between a file and the compiled code. ``run_file`` loads one and explains thrice.

``PYTHONPATH=tests/helpers python tests/fuzz/mutate_files.py FIRST LAST`` tries these seeds and
counts the outcomes.
"""

from __future__ import annotations

import copy
import json
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import mcce
from mcce import MCCE, McceError, McceWarning, SavedFileError
from mcce.saving import archive
from mcce.saving.container import lay_out
from mcce.search.config import find_search
from saved_explainers import write_saved

JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2, 63, 64, 2**31 - 1, 2**31, -(2**31), 2**53, 2**63, 2**64,
    10**400, 0.0, -0.0, 0.5, 1e308, -1e-308, "", "x", "\ud800", "a" * 5000, [], {}, [[]], [None],
    {"tuple": []},
    {"float": "nan"}, {"float": "inf"}, {"int": "0x10"}, {"set": [1]}, {"dict": [[1, 2]]},
    {"frozenset": [[]]}, {"missing": "NA"}, {"bytes": "00"}, {"numpy": ["<f4", 1.5]},
    {"interval": [0, 1, "both"]}, {"search": {"dict": []}}, {"generator": ["trees", {"dict": []}]},
    {"constraint": ["only_up", {"dict": [["feature", "income"]]}]}, {"array": "nowhere.npy"},
)  # fmt: skip
DTYPES = ("<i4", "<i8", "<u8", "<u1", "<f4", "<f8", "?", "<M8[ns]", "<m8[s]", "<i2", "<f2")
# Arrays whose cells can change without breaking what others say.
LOOSE = ("cut", "sets", "values", "codes", "probes", "strains")
Way = tuple[Any, ...]


def write_mutated(source: Path, target: Path, seed: int) -> list[str]:
    """Write a mutated copy of a saved explainer; says what was done to it."""
    chance = np.random.default_rng(seed)
    document = archive.read(source)
    mild = chance.random() < 0.75
    done = []
    for _ in range(int(chance.integers(1, 4))):
        step = mutate_mildly if mild else mutate_wildly
        done.append(step(document, chance))
    write_document(target, document)
    if not mild and chance.random() < 0.1:
        done.append(mutate_bytes(target, chance))
    return done


def write_document(path: Path, document: dict[str, Any]) -> None:
    """Write any document with good checksums, also what ``archive.write`` would refuse."""
    arrays: dict[str, np.ndarray] = {}
    plain = {key: archive._take_out(value, key, arrays) for key, value in document.items()}
    text = json.dumps(plain, ensure_ascii=False, indent=1) + "\n"
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        text = json.dumps(plain, indent=1) + "\n"
    members = {archive.DOCUMENT: text.encode()}
    members |= {name: archive._npy(array) for name, array in arrays.items()}
    manifest = {archive.MANIFEST: archive._json(archive._manifest(members))}
    path.write_bytes(b"".join(lay_out(manifest | members)))


def run_file(path: Path, predictor: Any, people: Any) -> str:
    """Load a file and explain thrice.

    Returns
    -------
    str
        ``"refused"`` (SavedFileError), ``"not loaded"`` (another error of ours), ``"explained"``,
        ``"not explained"`` (an error of ours), or ``"broken: …"``, which is a bug.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", McceWarning)
            explainer = mcce.load(path, predictor)
            limit(explainer)
    except SavedFileError as error:
        return "refused" if len(str(error)) < 2000 else "broken: a message too long"
    except McceError as error:
        return "not loaded" if len(str(error)) < 4000 else "broken: a message too long"
    except Exception:
        return f"broken: {traceback.format_exc()}"
    try:
        for part in (people, people[::-1], people[:1]):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", McceWarning)
                explainer.explain(part)
    except McceError:
        return "not explained"
    except Exception:
        return f"broken: {traceback.format_exc()}"
    return "explained"


def limit(explainer: MCCE) -> None:
    """Bound what a file may ask for in parameters that are legal, but take long."""
    search = find_search(explainer.search)
    bounds = {"n_samples": 200, "max_samples": 400, "max_rows": 100, "max_nodes": 5000}
    bounds |= {"n_targets": 20}
    lower = {
        name: most
        for name, most in bounds.items()
        if getattr(search, name, None) is not None and getattr(search, name) > most
    }
    explainer.set_params(
        n_samples=None if explainer.n_samples is None else min(explainer.n_samples, 200),
        search=replace(search, **lower) if lower else explainer.search,
        n_counterfactuals=min(explainer.n_counterfactuals, 20),
        memory=min(explainer.memory, 64.0),
        n_jobs=1,
        max_seconds=5.0,
        verbose=False,
    )


def mutate_mildly(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Change one cell of an array or one number, most often to what could stand there."""
    if chance.random() < 0.1:
        return nudge_number(document, chance)
    ways = list(arrays_of(document))
    if chance.random() < 0.9:
        ways = [way for way in ways if way[-1] in LOOSE and "table" not in way] or ways
    way = pick(chance, ways)
    array = at(document, way).copy()
    if not array.size:
        return f"nothing: {way} is empty"
    cell = int(chance.integers(array.size))
    flat = array.reshape(-1)
    if flat.dtype.kind == "b":
        flat[cell] = not flat[cell]
    elif flat.dtype == np.uint64 and "sets" in way:
        flat[cell] ^= np.uint64(1) << np.uint64(chance.integers(64))
    elif chance.random() < 0.5:
        flat[cell] = flat[int(chance.integers(array.size))]
    elif flat.dtype.kind in "iu":
        step = 1 if flat.dtype.kind == "u" else pick(chance, [-1, 1])
        # A slice, because an array wraps around where a number would raise.
        flat[cell : cell + 1] += flat.dtype.type(step)
    put(document, way, flat.reshape(array.shape))
    return f"cell {cell} of {'/'.join(map(str, way))}"


def nudge_number(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Another number in place of one in the JSON text."""
    ways = [way for way in ways_of(document) if type(at(document, way)) in (int, float)]
    way = pick(chance, ways)
    value = at(document, way)
    put(document, way, pick(chance, [value + 1, value * 2, value / 2, int(value) - 1]))
    return f"{'/'.join(map(str, way))} nudged"


def mutate_wildly(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Change an array or a JSON value into anything."""
    steps = [
        mutate_cells,
        mutate_cells,
        mutate_shape,
        swap_arrays,
        mutate_json,
        mutate_json,
        remove,
    ]
    return str(pick(chance, steps)(document, chance))


def mutate_cells(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Boundary values in a few cells of an array, or in all."""
    way = pick(chance, list(arrays_of(document)))
    array = at(document, way).copy()
    flat = array.reshape(-1)
    kind = flat.dtype.kind
    if kind in "iu":
        bounds = np.iinfo(flat.dtype)
        values = [0, 1, 2, 63, 64, bounds.max, bounds.min, bounds.max - 1, array.size, 10**6]
        values += [] if kind == "u" else [-1, -2]
    elif kind == "f":
        values = [0.0, -0.0, np.nan, np.inf, -np.inf, 1e308, 5e-324]
    else:
        values = [0, 1]
    value = np.array(pick(chance, values)).astype(flat.dtype)
    how = pick(chance, ["cell", "cell", "few", "all"])
    if how == "all":
        flat[:] = value
    elif array.size:
        flat[chance.integers(array.size, size=1 if how == "cell" else 5)] = value
    put(document, way, flat.reshape(array.shape))
    return f"{how} of {'/'.join(map(str, way))} to {value!r}"


def mutate_shape(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Another length, order, number of dimensions or dtype."""
    way = pick(chance, list(arrays_of(document)))
    array = at(document, way)
    how = pick(chance, ["empty", "shorter", "longer", "reversed", "flat", "matrix", "dtype", "T"])
    changed = {
        "empty": lambda: array[:0],
        "shorter": lambda: array[:-1],
        "longer": lambda: np.concatenate([array, array[-1:]]),
        "reversed": lambda: array[::-1].copy(),
        "flat": lambda: array.reshape(-1),
        "matrix": lambda: array[..., None],
        "T": lambda: np.ascontiguousarray(array.T),
        "dtype": lambda: other_dtype(array, pick(chance, DTYPES)),
    }[how]()
    put(document, way, changed)
    return f"{how} of {'/'.join(map(str, way))}"


def other_dtype(array: np.ndarray, dtype: str) -> np.ndarray:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        numbers = array.view(np.int64) if array.dtype.kind in "mM" else array
        return numbers.astype(dtype)


def swap_arrays(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Two arrays in each other's place, or one in both."""
    ways = list(arrays_of(document))
    one, other = pick(chance, ways), pick(chance, ways)
    if chance.random() < 0.5:
        other = pick(chance, [way for way in ways if way[-1] == one[-1]])
    first, second = at(document, one), at(document, other)
    put(document, one, second)
    if chance.random() < 0.5:
        put(document, other, first)
    return f"swap {'/'.join(map(str, one))} and {'/'.join(map(str, other))}"


def mutate_json(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Another JSON value, sometimes that of another place, in place of one."""
    ways = [way for way in ways_of(document) if not isinstance(at(document, way), np.ndarray)]
    way = pick(chance, ways)
    value = copy.deepcopy(pick(chance, JSON_VALUES))
    if chance.random() < 0.3:
        value = copy.deepcopy(at(document, pick(chance, ways)))
    put(document, way, value)
    return f"{'/'.join(map(str, way))} to {str(value)[:60]}"


def remove(document: dict[str, Any], chance: np.random.Generator) -> str:
    """Remove, double or rename a part."""
    way = pick(chance, list(ways_of(document)))
    place = at(document, way[:-1])
    if isinstance(place, list):
        how = pick(chance, ["remove", "double", "reverse"])
        {"remove": lambda: place.pop(way[-1]), "double": lambda: place.append(place[way[-1]])}.get(
            how, place.reverse
        )()
    else:
        how = pick(chance, ["remove", "rename"])
        value = place.pop(way[-1])
        if how == "rename":
            place[str(pick(chance, ["x", "array", "values", "dict"]))] = value
    return f"{how} {'/'.join(map(str, way))}"


def mutate_bytes(path: Path, chance: np.random.Generator) -> str:
    """Change some bytes of the file itself, or its length."""
    data = bytearray(path.read_bytes())
    how = pick(chance, ["flip", "cut", "append", "prepend", "double"])
    if how == "flip":
        for place in chance.integers(len(data), size=4):
            data[place] ^= 1 << int(chance.integers(8))
    elif how == "cut":
        del data[int(chance.integers(len(data))) :]
    elif how == "append":
        data += b"\0" * int(chance.integers(1, 100))
    elif how == "prepend":
        data[:0] = b"PK\x03\x04"
    else:
        data += bytes(data)
    path.write_bytes(bytes(data))
    return f"bytes: {how}"


def ways_of(value: Any, way: Way = ()) -> Iterator[Way]:
    """The way to every part of a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        yield (*way, key)
        if isinstance(inner, (dict, list)):
            yield from ways_of(inner, (*way, key))


def arrays_of(document: dict[str, Any]) -> Iterator[Way]:
    """The way to every array of a document."""
    for way in ways_of(document):
        if isinstance(at(document, way), np.ndarray):
            yield way


def at(document: Any, way: Way) -> Any:
    for key in way:
        document = document[key]
    return document


def put(document: Any, way: Way, value: Any) -> None:
    at(document, way[:-1])[way[-1]] = value


def pick(chance: np.random.Generator, options: Any) -> Any:
    return options[int(chance.integers(len(options)))]


def main(first: int, last: int) -> int:
    """Try some seeds; the number of broken files."""
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        saved = write_saved(Path(folder))
        names = sorted(saved)
        for seed in range(first, last):
            name = names[seed % len(names)]
            one, path = saved[name], Path(folder) / "mutated.mcce"
            done = write_mutated(one.path, path, seed)
            outcome = run_file(path, one.predictor, one.people)
            outcomes[outcome.partition(":")[0]] += 1
            if outcome.startswith("broken"):
                sys.stdout.write(f"seed {seed} ({name}): {done}\n{outcome}\n")
    sys.stdout.write(f"{dict(outcomes)}\n")
    return outcomes["broken"]


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
