"""Why people have no answer after a search led by a surrogate, and which row came nearest.

Takes a block of walks that has ended. A reason begins with what the black box has replied; what the
surrogate had expected follows, as an estimate.

Always true: a nearest miss carries a score of the black box; it is one of the rows that were asked.
Where none was, one is asked, which counts like any other.
"""

from __future__ import annotations

import numpy as np

from ..kernels import BoolArray, IntArray, Listing
from ..postprocess.filters import IsPlausible
from ..postprocess.validation import Answers, LazyValidation, describe_draws
from ..protocols import RowFilter
from ..tables.schema import OWN
from .led import LedBlock
from .selection import SelectedRows
from .visited import DECIMALS


def explain_unanswered(
    block: LedBlock, validation: LazyValidation, answered: IntArray
) -> tuple[Answers, dict[int, str]]:
    """Why people of a block have no answer."""
    ranked, cache, people = validation.ranked, validation.cache, block.candidates.people
    person = np.flatnonzero(~np.isin(people, answered))
    listing = ranked.list_all(person)
    listed = np.arange(listing.draw.shape[1]) < listing.n_allowed[:, None]
    who, at = np.nonzero(listed)
    believed = np.zeros_like(listed)
    believed[who, at] = cache.validate(person[who], listing.draw[who, at])
    _score_best_draws(block, validation, person, listing, believed)
    described = describe_draws(ranked, person, listing, believed)
    reasons = {}
    for one, (n_valid, drawn, named) in zip(person.tolist(), described, strict=True):
        accepted = bool(block.visited.led.replies.n_valid[people[one]])
        expected = _expected(n_valid, drawn, named, accepted=accepted)
        reasons[int(people[one])] = f"{_replied(block, one)}; {expected}"
    return _nearest(block, person), reasons


def _score_best_draws(
    block: LedBlock,
    validation: LazyValidation,
    person: IntArray,
    listing: Listing,
    believed: BoolArray,
) -> None:
    """Have the black box score the most promising draw of people of whom it scored nothing."""
    visited, cache, candidates = block.visited, validation.cache, block.candidates
    untried = np.isin(person, visited.cells[_asked(block), 0], invert=True)
    rows = np.flatnonzero(untried & (listing.n_allowed > 0))
    if not rows.size:
        return
    draw, here = listing.draw[rows], np.arange(listing.draw.shape[1])
    listed = here < listing.n_allowed[rows, None]
    margin = cache.score[candidates.group[person[rows]][:, None], draw].round(DECIMALS)
    best = np.lexsort((-margin, ~believed[rows], ~listed), axis=-1)[:, 0]
    draws = draw[np.arange(rows.size), best]
    codes = candidates.select(person[rows], draws).codes
    visited.ask(visited.place(person[rows], draws, codes))


def _asked(block: LedBlock) -> IntArray:
    """Numbers of the rows that the black box scored, without the people themselves."""
    visited = block.visited
    return np.flatnonzero(visited.asked & (visited.cells[:, 1:] != OWN).any(axis=1))


def _replied(block: LedBlock, person: int) -> str:
    """What the black box has said of a person's rows."""
    led, position = block.visited.led, int(block.candidates.people[person])
    n_asked = int(led.replies.n_asked[position])
    if not n_asked:
        return "there was no row for the predictor to score"
    rows = "1 row" if n_asked == 1 else f"{n_asked} rows"
    if led.max_evaluations is not None and n_asked >= led.max_evaluations:
        rows = f"the {rows} that max_evaluations={led.max_evaluations} allows"
    if not led.replies.n_valid[position]:
        if block.visited.settings.decision.min_margin:
            return f"the predictor scored {rows}, and no score has the required margin"
        return f"the predictor scored {rows} and refused {'it' if n_asked == 1 else 'all of them'}"
    named = ", ".join(_exclusions(block, person))
    if not named:
        return f"the predictor scored {rows}, and accepted none in the final call"
    return f"the predictor scored {rows}, and what it accepted is excluded by {named}"


def _expected(n_valid: int, drawn: str, named: str, *, accepted: bool) -> str:
    """What the surrogate had expected of a person's draws, and what excludes those."""
    if not n_valid:
        return f"the surrogate expected none of {drawn} to be valid"
    status = " only" if accepted else " that the predictor did not confirm"
    expected = f"the surrogate had expected {n_valid} of {drawn} to be valid, an estimate{status}"
    return f"{expected}; excluded among these by {named}" if named else expected


def _exclusions(block: LedBlock, person: int) -> list[str]:
    """What excludes the valid rows of a person."""
    visited, ranking = block.visited, block.how.selection.ranking
    numbers = _asked(block)
    numbers = numbers[visited.valid[numbers] & (visited.cells[numbers, 0] == person)]
    rows, how = visited.rows(numbers), visited.settings
    checks: list[RowFilter | IsPlausible] = list(how.filters)
    checks += [] if how.plausible is None else [how.plausible]
    named = [check.name for check in checks if numbers.size and not check.keeps(rows).all()]
    visited.price(ranking, numbers)
    sparsity, distance = visited.sparsity[numbers], visited.distance[numbers]
    if ranking.max_sparsity is not None and (sparsity > ranking.max_sparsity).any():
        named.append(f"max_sparsity={ranking.max_sparsity}")
    if ranking.max_distance is not None and (distance > ranking.max_distance).any():
        named.append(f"max_distance={ranking.max_distance}")
    return named


def _nearest(block: LedBlock, person: IntArray) -> Answers:
    """The nearest misses of people, among the rows that the black box scored."""
    visited, numbers = block.visited, _asked(block)
    numbers = numbers[np.isin(visited.cells[numbers, 0], person)]
    whose = visited.cells[numbers, 0]
    shortfall = visited.settings.decision.shortfall(visited.score[numbers]).round(DECIMALS)
    order = np.lexsort((visited.step[numbers], shortfall, ~visited.valid[numbers], whose))
    best = numbers[order[np.unique(whose[order], return_index=True)[1]]]
    visited.price(block.how.selection.ranking, best)
    nearest = SelectedRows(best, np.zeros_like(best), visited.sparsity[best], visited.gower[best])
    return nearest.to_answers(block.candidates, visited)
