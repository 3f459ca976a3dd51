"""Audits: of an explainer, of rows of any origin, and of an explainer on data that are split.

Always true: released rows are made for people of the reference, who are neither members nor
nonmembers; the same arguments give the same figures.
"""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone

from ..candidates import CandidateRows
from ..errors import McceWarning, ParameterError, SchemaError, shorten
from ..fitted import Fitted
from ..generate import value_tables
from ..kernels import person_keys
from ..metrics.evaluator import Evaluator, FrameLike, ResultLike, as_evaluator
from ..metrics.privacy import are_copies
from ..model.registry import find_generator
from ..parameters import check_choice, check_count
from ..protocols import DrawRequest
from ..runtime.progress import without_warnings
from ..tables.columns import Kind
from ..tables.frames import read_frame
from ..tables.schema import Schema
from .audit_attacks import MIN_AUDIT_ROWS, AttackerKnowledge, AuditedRows, attack, check_known
from .audit_result import PrivacyAudit

QuasiIdentifiers = Sequence[Hashable] | Mapping[Hashable, float]
Release = Literal["answers", "rows"]


def audit(
    explainer: Any,
    training: FrameLike,
    holdout: FrameLike,
    reference: FrameLike | None = None,
    *,
    release: Release = "answers",
    n_people: int = 1_000,
    quasi_identifiers: QuasiIdentifiers | None = None,
    private: Sequence[Hashable] | None = None,
    random_state: int = 0,
) -> PrivacyAudit:
    """Attack what an explainer releases, to find out who was in its training data.

    Parameters
    ----------
    explainer
        A fitted :class:`mcce.MCCE`, with any generator and any search, or any other explainer.
    training : frame
        The rows that it was fitted on.
    holdout : frame
        Rows of other people from the same population, best as many as in training.
    reference : frame, optional
        Rows of further people. Rows are released for them, and an attacker knows them. None sets
        half of the holdout aside.
    release
        ``"answers"``: the counterfactuals of the reference's people. ``"rows"``: as many rows as
        there are training rows, drawn by the generator with the immutable values of the reference's
        people; with their decisions too if it was fitted for both,
        e.g. ``TreeChain(decisions=(False, True))``, and otherwise with the desired one.
    n_people
        People of the reference who get answers, at most. Everybody in it is known to the attacker.
    quasi_identifiers, private
        What an attacker knows and would like to know, for linkage: see :func:`class_sizes`. None
        measures no linkage.
    random_state
        Seed of samples and resamples.

    Returns
    -------
    PrivacyAudit
        Figures with intervals, each beside what no leak would give.

    Raises
    ------
    SchemaError
        If rows lack columns, are too few, or are in two of training, holdout and reference.
    NotFittedError, ParameterError
        If the explainer is not fitted on these rows, or a parameter cannot have its value.

    Warns
    -----
    McceWarning
        If the holdout is smaller than training: figures are then of a sample of training rows.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"salary": rng.normal(60, 9, 900), "debt": rng.normal(9, 2, 900)})
    >>> explainer = MCCE(lambda frame: frame["salary"] - frame["debt"], (55, 999), random_state=0)
    >>> found = audit(explainer.fit(people[:300]), people[:300], people[300:600], people[600:])
    >>> found["value_copies"].finding, found["value_copies"].null
    ('leak', 0.0)
    """
    check_choice("release", release, ("answers", "rows"))
    check_count("n_people", n_people)
    check_count("random_state", random_state, least=0)
    evaluator = _evaluator_of(explainer, training)
    outside, further = _read_real(holdout, reference, random_state)
    if release == "answers":
        people = _split(further, [min(n_people, len(further))], random_state, 5)[0]
        released, factuals = release_answers(explainer, people)
    else:
        released, factuals = release_rows(explainer, further, len(evaluator.rows)), None
    rows = AuditedRows.read(evaluator, released, outside, further, factuals, random_state)
    known = _known(evaluator, quasi_identifiers, private)
    return _attack(rows, known, release, random_state, halved=reference is None)


def audit_rows(
    released: ResultLike,
    training: FrameLike | Evaluator,
    holdout: FrameLike,
    reference: FrameLike | None = None,
    *,
    factuals: FrameLike | None = None,
    immutable: Sequence[Hashable] | None = None,
    kinds: Mapping[Hashable, Kind] | None = None,
    quasi_identifiers: QuasiIdentifiers | None = None,
    private: Sequence[Hashable] | None = None,
    random_state: int = 0,
) -> PrivacyAudit:
    """Attack rows of any origin, to find out who was in the data that they were made from.

    Parameters
    ----------
    released : frame or Counterfactuals
        The rows. They must not be made for people of training or holdout.
    training : frame or Evaluator
        The rows that they were made from.
    holdout, reference
        As for :func:`audit`.
    factuals : frame, optional
        The people that the rows were made for, row by row: only cells that differ from theirs count
        as released values.
    immutable, kinds
        As for :class:`mcce.MCCE`; an evaluator has them already.
    quasi_identifiers, private, random_state
        As for :func:`audit`.

    Returns
    -------
    PrivacyAudit
        As of :func:`audit`.

    Raises
    ------
    SchemaError, ParameterError
        As of :func:`audit`.

    Examples
    --------
    >>> import pandas as pd
    >>> people = pd.DataFrame(np.random.default_rng(0).normal(size=(300, 2)), columns=["a", "b"])
    >>> training, holdout, reference = people[:100], people[100:200], people[200:]
    >>> audit_rows(training, training, holdout, reference)["distance_auc"].value
    1.0
    """
    check_count("random_state", random_state, least=0)
    evaluator = as_evaluator(training, immutable=immutable, kinds=kinds)
    outside, further = _read_real(holdout, reference, random_state)
    rows = AuditedRows.read(evaluator, released, outside, further, factuals, random_state)
    known = _known(evaluator, quasi_identifiers, private)
    return _attack(rows, known, "given", random_state, halved=reference is None)


def split_and_audit(
    explainer: Any,
    people: FrameLike,
    *,
    release: Release = "answers",
    n_people: int = 1_000,
    quasi_identifiers: QuasiIdentifiers | None = None,
    private: Sequence[Hashable] | None = None,
    random_state: int = 0,
) -> PrivacyAudit:
    """Split data, fit a copy of an explainer on one part, and attack what it releases.

    Two fifths are for training, two fifths for the holdout and one fifth for the reference. The
    predictor stays as it is: what it learned from the same people is not found.

    Parameters
    ----------
    explainer
        An explainer, which need not be fitted and stays as it is.
    people : frame
        The data, without the target.
    release, n_people, quasi_identifiers, private, random_state
        As for :func:`audit`. With ``release="rows"``, a generator that can be fitted for both
        decisions is.

    Returns
    -------
    PrivacyAudit
        As of :func:`audit`.

    Raises
    ------
    SchemaError, ParameterError
        As of :func:`audit`.

    Examples
    --------
    >>> import pandas as pd
    >>> from mcce import MCCE
    >>> rng = np.random.default_rng(0)
    >>> people = pd.DataFrame({"salary": rng.normal(60, 9, 500), "debt": rng.normal(9, 2, 500)})
    >>> explainer = MCCE(lambda frame: frame["salary"] - frame["debt"], (55, 999), random_state=0)
    >>> split_and_audit(explainer, people).n_each
    200
    """
    check_choice("release", release, ("answers", "rows"))
    check_count("random_state", random_state, least=0)
    frame = read_frame(people)[0]
    if len(frame) < 5 * MIN_AUDIT_ROWS:
        raise SchemaError(
            f"An audit needs at least {5 * MIN_AUDIT_ROWS} rows to split, got {len(frame)}. Some "
            "thousands tell much more."
        )
    n_each = len(frame) * 2 // 5
    training, holdout, reference = _split(frame, [n_each, 2 * n_each], random_state, 4)
    copy = clone(explainer, safe=False)
    if release == "rows":
        _draw_for_both(copy)
    with without_warnings():
        copy.fit(training)
    return audit(
        copy,
        training,
        holdout,
        reference,
        release=release,
        n_people=n_people,
        quasi_identifiers=quasi_identifiers,
        private=private,
        random_state=random_state,
    )


def _draw_for_both(explainer: Any) -> None:
    """Let the generator of an explainer draw for both decisions, if it can."""
    if getattr(explainer, "generator", None) is not None:
        generator: Any = find_generator(explainer.generator)
        if hasattr(generator, "decisions"):
            generator.decisions = (False, True)
            explainer.set_params(generator=generator)


def _read_real(
    holdout: FrameLike, reference: FrameLike | None, seed: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The holdout and the reference; without one, half of the holdout."""
    outside = read_frame(holdout)[0]
    if reference is not None:
        return outside, read_frame(reference)[0]
    if len(outside) < 2 * MIN_AUDIT_ROWS:
        raise SchemaError(
            f"Without a reference, half of the holdout is one, so that it needs at least "
            f"{2 * MIN_AUDIT_ROWS} rows, got {len(outside)}. Pass more, or a reference."
        )
    ours, theirs = _split(outside, [len(outside) // 2], seed, 0)
    return ours, theirs


def _split(frame: pd.DataFrame, ends: list[int], *seed: int) -> list[pd.DataFrame]:
    """Random parts of a frame, which end after so many rows; rows stay in order."""
    order = np.random.default_rng(seed).permutation(len(frame))
    return [frame.iloc[np.sort(part)] for part in np.split(order, ends)]


def _evaluator_of(explainer: Any, training: FrameLike) -> Evaluator:
    """The training rows, in the columns of the explainer; raises if it was fitted on others."""
    if not callable(getattr(explainer, "explain", None)):
        raise ParameterError(
            f"explainer must have the method explain, as MCCE, got {shorten(explainer)}."
        )
    schema = getattr(explainer, "schema_", None)
    if not isinstance(schema, Schema):
        # An explainer that is not fitted raises when it explains.
        parameters = {name: getattr(explainer, name, None) for name in ("immutable", "kinds")}
        return Evaluator.fit(training, **parameters)
    try:
        rows = schema.encode(training)
    except SchemaError as error:
        raise SchemaError(f"training does not fit the explainer. {error}") from None
    counts = getattr(getattr(explainer, "fitted_", None), "value_counts", None)
    n_fitted = int(counts[0].sum()) if counts else len(rows)
    n_unseen = int(rows.unseen.any(axis=0).sum()) if counts else 0
    if n_fitted != len(rows) or n_unseen:
        raise SchemaError(
            f"The explainer was fitted on other rows: on {n_fitted}, while training has "
            f"{len(rows)}, of which {n_unseen} hold values that it has not seen. Pass the rows "
            "that it was fitted on."
        )
    names = schema.names
    return Evaluator.fit(
        rows.frame,
        immutable=[names[at] for at in schema.immutable],
        kinds={feature.name: feature.kind for feature in schema.features},
    )


def _known(evaluator: Evaluator, quasi_identifiers: Any, private: Any) -> AttackerKnowledge | None:
    if quasi_identifiers is None:
        return None
    return check_known(quasi_identifiers, private, evaluator.schema)


def _attack(
    audited: AuditedRows, known: AttackerKnowledge | None, release: str, seed: int, *, halved: bool
) -> PrivacyAudit:
    """All figures; those of linkage if an attacker knows something."""
    evaluator, n_each = audited.evaluator, audited.n_each
    n_training, names = len(evaluator.rows), evaluator.schema.names
    if n_each < n_training:
        half = ", and a reference: without one, half of the holdout is used for it"
        warnings.warn(
            f"The holdout has {n_each} rows and training {n_training}: figures are of a sample of "
            f"{n_each} training rows. Pass a holdout as large as training{half if halved else ''}.",
            McceWarning,
            stacklevel=3,
        )
    figures, scores, distances = attack(audited, known, seed)
    return PrivacyAudit(
        figures=tuple(figures),
        release=release,
        n_released=len(audited.rows["released"]),
        n_training=n_training,
        n_holdout=audited.n_holdout,
        n_reference=len(audited.rows["reference"]),
        n_each=n_each,
        n_copies=int(are_copies(audited.rows["released"], evaluator).sum()),
        scores=scores,
        distances=distances,
        quasi_identifiers=() if known is None else tuple(names[at] for at in known.widths),
        excluded=() if known is None else known.excluded,
    )


def release_answers(explainer: Any, people: Any) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The answers of an explainer to people, and the people they were made for."""
    with without_warnings():
        result = explainer.explain(people).to_pandas()
    if not len(result.frame):
        raise SchemaError(
            "Nobody of the reference has an answer, so that nothing is released. Pass a reference "
            "with people whom the predictor declines."
        )
    frame = result.frame.reset_index(drop=True)
    return frame, result.factuals.iloc[result.owner].reset_index(drop=True)


def release_rows(explainer: Any, people: Any, n_rows: int) -> pd.DataFrame:
    """Rows that the generator of an explainer draws for the immutable values of people."""
    fitted = getattr(explainer, "fitted_", None)
    if not isinstance(fitted, Fitted):
        raise ParameterError(
            'release="rows" needs a fitted MCCE, whose generator draws them, got '
            f'{shorten(explainer)}. Use release="answers".'
        )
    frame = read_frame(people)[0]
    rows = fitted.schema.encode(frame.iloc[np.arange(n_rows) % len(frame)].reset_index(drop=True))
    number = np.arange(n_rows, dtype=np.int32)
    # People with equal immutable values would share their draws; the row number separates them.
    given = np.vstack([rows.tree_codes[fitted.schema.immutable], number]).T
    keys = person_keys(fitted.seed, np.ascontiguousarray(given))
    first = np.zeros(1, dtype=np.int64)
    # Both decisions, as people have them, if the generator can draw for both.
    both = False in getattr(fitted.generator, "decisions", ())
    is_desired = fitted.decision.score(rows.frame).valid if both else None
    request = DrawRequest(rows.tree_codes, keys, first, is_desired=is_desired)
    sampled = fitted.generator.sample(request)
    codes = sampled.codes[:, :, 0]
    drawn = CandidateRows(rows, number.astype(np.int64), codes, value_tables(rows, sampled.tables))
    return drawn.as_given().reset_index(drop=True)
