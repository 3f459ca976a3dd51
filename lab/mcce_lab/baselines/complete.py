"""Missing numbers: a row without one of its numbers has no place in a cube.

Such rows are left out of training, and such people get a reason instead of an answer, so that one
of them does not keep the others from theirs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mcce.errors import SchemaError
from mcce.predictors.decision import ScoredRows

from .baseline import Declined, Found, Training
from .space import Space


def complete_rows(training: Training, space: Space) -> Training:
    """The training rows without missing numbers.

    Parameters
    ----------
    training
        All training rows.
    space
        Their cube.

    Returns
    -------
    Training

    Raises
    ------
    SchemaError
        If a number is missing in every row.
    """
    places = np.flatnonzero(space.is_complete(training.rows))
    if places.size == len(training.rows):
        return training
    if not places.size:
        raise SchemaError(
            "This method learns from rows without missing numbers, but every training row misses "
            "one. Fill them in, leave out the columns that miss most, or use NearestUnlike, NICE "
            "or MCCE."
        )
    scored = ScoredRows(training.scored.score[places], training.scored.valid[places])
    return Training(training.rows.take(places), scored, training.decision)


def search_complete(
    declined: Declined, space: Space, search: Callable[[Declined], Found], reason: str
) -> Found:
    """Search for the people without missing numbers.

    Parameters
    ----------
    declined
        Everybody.
    space
        The cube.
    search
        From people without missing numbers, at least one, to their answers.
    reason
        Why the others have no answer.

    Returns
    -------
    Found
        The answers and reasons of everybody.
    """
    complete = space.is_complete(declined.rows)
    if complete.all():
        return search(declined)
    reasons = dict.fromkeys(np.flatnonzero(~complete).tolist(), reason)
    who = np.flatnonzero(complete)
    if not who.size:
        return Found(who, declined.rows.frame.iloc[:0], reasons)
    found = search(some := declined.take(who))
    declined.n_evaluated += some.n_evaluated
    reasons |= {int(who[person]): why for person, why in found.reasons.items()}
    return Found(who[found.owner], found.frame, reasons)
