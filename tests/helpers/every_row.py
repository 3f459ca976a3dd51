"""Every row that a chain of trees could draw for a person: an oracle for the exact search."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd

from mcce.constraints.features import FeatureConstraint
from mcce.kernels import descend
from mcce.search.config import find_search
from mcce.tables.schema import OWN


def every_row(explainer, rows, person):
    """All rows of training values and own ones, as codes; that is what a chain can draw from."""
    features = [explainer.schema_.features[at] for at in explainer.schema_.mutable]
    tables = [range(OWN, feature.n_codes) for feature in features]
    codes = np.array(list(product(*tables)), dtype=np.int32).T
    own = rows.exact[explainer.schema_.mutable, person][:, None]
    twice = ((codes == own) & (codes != OWN)).any(axis=0)  # the own value has its code already
    return codes[:, ~twice]


def drawable(explainer, rows, person, codes):
    """Which rows the chain could draw, asking each leaf whether it could give the row's value."""
    schema, chain = explainer.schema_, explainer.generator_
    descent = np.repeat(rows.descent[:, [person]], codes.shape[1], axis=1)
    changed = codes != OWN
    for place, position in enumerate(schema.mutable):
        descent[position, changed[place]] = codes[place, changed[place]]
    descent = np.vstack([descent, np.ones(codes.shape[1], dtype=np.int32)])
    possible = np.ones(codes.shape[1], dtype=bool)
    for tree, position in enumerate(chain.visit_order_):
        place = int(np.searchsorted(schema.mutable, position))
        leaf = descend(chain.trees_, tree, descent, chain.n_levels_ > 0)
        for at in np.unique(leaf):
            start, count = chain.trees_.start[at], chain.trees_.count[at]
            values = np.unique(chain.trees_.values[start : start + count])
            here = leaf == at
            given_codes = outcomes(explainer, rows, person, int(position), values)
            possible[here] &= np.isin(codes[place, here], given_codes)
    return possible


def outcomes(explainer, rows, person, position, values):
    """What can be drawn from a leaf of these values, decided value by value."""
    feature = explainer.schema_.features[position]
    own_code = rows.exact[position, person]
    own = pd.concat([rows.own(position, np.array([person]))] * values.size, ignore_index=True)
    after = feature.table.take(values).reset_index(drop=True)
    admitted, same = np.ones(values.size, dtype=bool), values == own_code
    limited = False
    for constraint in explainer.constraints or ():
        if feature.name not in constraint.features:
            continue
        if isinstance(constraint, FeatureConstraint):
            admitted &= constraint.allows(feature, own, after)
            limited = True
        elif constraint.kind == "frozen":
            return [OWN]
        elif constraint.kind == "step":
            limited = True
            gap = (after.astype(float) - own.astype(float)).abs()
            same |= (gap < constraint.step).to_numpy()
    admitted |= values == own_code
    stays = (admitted & same).any() or (limited and not admitted.any())
    if own_code < 0 and find_search(explainer.search).keep_unseen:
        stays |= unseen_stays(feature, own.iloc[0], values)
    return [*values[admitted & ~same], *([OWN] if stays else [])]


def unseen_stays(feature, own, values):
    """Whether a value that training never held stays in a leaf: a number if it has the nearest."""
    if feature.kind != "numeric" or pd.isna(own):
        return True
    gaps = np.abs(feature.numbers[: len(feature.known)] - float(own))
    return int(np.argmin(gaps)) in values  # the lower of two


def costs_of(explainer, rows, person, codes):
    """Number of changes and distances (Gower, weighted) of rows."""
    schema = explainer.schema_
    total, weighted = np.zeros((2, codes.shape[1]))
    own = rows.own_numbers(np.array([person]))[:, 0]
    weights = {x.features[0]: x.weight for x in explainer.constraints or () if x.kind == "weight"}
    for place, position in enumerate(schema.mutable):
        feature = schema.features[position]
        gap = np.ones(codes.shape[1])
        if feature.spread:
            gap = np.abs(feature.numbers[codes[place]] - own[place]) / feature.spread
        gap = np.where(codes[place] == OWN, 0.0, np.where(np.isnan(gap), 1.0, gap))
        total += gap
        weighted += weights.get(feature.name, 1.0) * gap
    n_features = len(schema.features)
    return (codes != OWN).sum(axis=0), total / n_features, weighted / n_features


def allowed_rows(explainer, rows, person, codes, train):
    """Which rows pass the checks of whole rows."""
    allowed = np.ones(codes.shape[1], dtype=bool)
    names = [explainer.schema_.names[at] for at in explainer.schema_.mutable]
    changed = codes != OWN
    for constraint in explainer.constraints or ():
        places = [names.index(n) for n in constraint.features] or list(range(len(names)))
        if constraint.kind == "max_changes":
            allowed &= changed[places].sum(axis=0) <= constraint.n
        elif constraint.kind == "together":
            allowed &= np.isin(changed[places].sum(axis=0), [0, len(places)])
    if explainer.search.copies == "never":
        frame = rows.compose(np.full(codes.shape[1], person), codes, rows.tables)
        known = {tuple(map(str, row)) for row in train.astype(object).itertuples(index=False)}
        cells = frame.astype(object).itertuples(index=False)
        allowed &= np.array([tuple(map(str, row)) not in known for row in cells], dtype=bool)
    return allowed


def best_of_all(explainer, people, person, train):
    """Sorted costs of all that one person might get, and how many rows could be drawn."""
    rows = explainer.schema_.encode(people)
    codes = every_row(explainer, rows, person)
    codes = codes[:, drawable(explainer, rows, person, codes)]
    sparsity, gower, weighted = costs_of(explainer, rows, person, codes)
    frame = rows.compose(np.full(codes.shape[1], person), codes, rows.tables)
    if not explainer.constraints:
        likelihood = explainer.generator_.log_likelihood(explainer.schema_.encode(frame))
        keeps_unseen = (codes == OWN) & (rows.exact[explainer.schema_.mutable, person] < 0)[:, None]
        assert np.isfinite(likelihood[~keeps_unseen.any(axis=0)]).all()
    keep = explainer.decision_.score(frame).valid
    keep &= allowed_rows(explainer, rows, person, codes, train) & (sparsity > 0)
    search = find_search(explainer.search)
    if search.max_sparsity is not None:
        keep &= sparsity <= search.max_sparsity
    if search.max_distance is not None:
        keep &= weighted <= search.max_distance
    keep[keep] = without_needless(codes[:, keep], sparsity[keep])
    ordered = sorted(zip(sparsity[keep], weighted[keep], gower[keep], strict=True))
    return ordered, int((sparsity > 0).sum())


def without_needless(codes, sparsity):
    """Good rows of which none is left with some of the changes undone."""
    needed = np.ones(sparsity.size, dtype=bool)
    for at in range(sparsity.size):
        fewer = ((codes == OWN) | (codes == codes[:, [at]])).all(axis=0)
        needed[at] = not (fewer & (sparsity < sparsity[at])).any()
    return needed
