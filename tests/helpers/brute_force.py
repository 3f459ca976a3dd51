"""The method once more, one candidate at a time in plain Python: an oracle for small cases."""

from __future__ import annotations

import numpy as np
import pandas as pd

from mcce import MCCE
from mcce.protocols import DrawRequest, person_keys
from searches import bounded


def candidates(explainer: MCCE, person: pd.DataFrame) -> pd.DataFrame:
    """All K draws for one person, duplicates included, as rows."""
    schema = explainer.schema_
    rows = schema.encode(person)
    keys = person_keys(explainer.seed_, rows.tree_codes[schema.immutable].T)
    request = DrawRequest(rows.tree_codes, keys, np.arange(explainer.n_samples))
    sampled = explainer.generator_.sample(request)
    drawn = pd.concat([person] * explainer.n_samples, ignore_index=True)
    for position, codes in zip(schema.mutable, sampled.codes[:, 0], strict=True):
        feature = schema.features[position]
        drawn[feature.name] = feature.table.take(codes).reset_index(drop=True)
    return drawn


def same(a: object, b: object) -> bool:
    """Equal, two missing cells being equal."""
    return (pd.isna(a) and pd.isna(b)) or (not pd.isna(a) and not pd.isna(b) and a == b)


def costs(explainer: MCCE, row: pd.Series, person: pd.Series) -> tuple[int, float]:
    """Number of changes and Gower distance of one candidate."""
    n_changed, total = 0, 0.0
    for feature in explainer.schema_.features:
        new, old = row[feature.name], person[feature.name]
        n_changed += not same(new, old)
        if same(new, old):
            continue
        if feature.kind == "categorical" or pd.isna(new) or pd.isna(old) or feature.spread == 0:
            total += 1.0
        else:
            total += abs(float(new) - float(old)) / feature.spread
    return n_changed, total / len(explainer.schema_.features)


def best(explainer: MCCE, person: pd.DataFrame, train: pd.DataFrame) -> list[tuple]:
    """Costs of the counterfactuals one person should get, and the cells, best first."""
    return ranked(explainer, person, train)[: explainer.n_counterfactuals]


def ranked(explainer: MCCE, person: pd.DataFrame, train: pd.DataFrame) -> list[tuple]:
    """The same for all that one person might get."""
    drawn = candidates(explainer, person)
    valid = explainer.decision_.score(drawn).valid
    copies = {_key(row) for row in train.astype(object).itertuples(index=False)}
    search = bounded(explainer.search)
    kept, seen = [], set()
    for number, row in drawn.astype(object).iterrows():
        sparsity, gower = costs(explainer, row, person.astype(object).iloc[0])
        key = _key(row)
        if key in seen:
            continue
        seen.add(key)
        allowed = (
            valid[number]
            and (search.max_sparsity is None or sparsity <= search.max_sparsity)
            and (search.max_distance is None or gower <= search.max_distance)
            and not (search.copies == "never" and key in copies)
        )
        if allowed:
            named = {"sparsity": sparsity, "distance": gower}
            order = tuple(named[name] for name in search.rank_by)
            kept.append(((*order, number), (sparsity, gower, key)))
    kept.sort(key=lambda entry: entry[0])
    return [cost for _, cost in kept]


def needful(person: pd.DataFrame, entries: list[tuple]) -> list[tuple]:
    """Of ranked entries those that do not make all changes of a better one and more."""
    own = _key(person.astype(object).iloc[0])
    kept: list[tuple] = []
    for entry in entries:
        if not any(_makes_all_changes(entry[2], better[2], own) for better in kept):
            kept.append(entry)
    return kept


def _makes_all_changes(cells: tuple, better: tuple, own: tuple) -> bool:
    return all(new == old or cell == new for cell, new, old in zip(cells, better, own, strict=True))


def difference(explainer: MCCE, one: tuple, other: tuple) -> float:
    """Gower distance between two entries."""
    names = explainer.schema_.names
    rows = [dict(zip(names, entry[2], strict=True)) for entry in (one, other)]
    return costs(explainer, *rows)[1]


def diverse(explainer: MCCE, person: pd.DataFrame, train: pd.DataFrame, n_pool: int) -> list[tuple]:
    """What one person should get with diversity."""
    weight = explainer.diversity
    left = needful(person, ranked(explainer, person, train))[:n_pool]
    taken = left[:1]
    left = left[1:]
    while left and len(taken) < explainer.n_counterfactuals:
        values = [
            weight * min(difference(explainer, entry, other) for other in taken)
            - (1.0 - weight) * entry[1]
            for entry in left
        ]
        taken.append(left.pop(values.index(max(values))))
    return taken


def _key(row: object) -> tuple:
    """Cells of a row, missing ones made equal."""
    return tuple(None if pd.isna(cell) else cell for cell in row)


def returned(result: object, person: int) -> list[tuple]:
    """The same for what was returned to the person at a position."""
    mine = np.flatnonzero(result.owner == person)
    rows = result.frame.iloc[mine].astype(object)
    measures = result.measures.iloc[mine]
    return [
        (int(sparsity), float(gower), _key(row))
        for sparsity, gower, row in zip(
            measures["sparsity"], measures["gower"], rows.itertuples(index=False), strict=True
        )
    ]
