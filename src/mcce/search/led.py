"""A search led by a surrogate: walks and choices are believed, what is returned was asked.

Beyond the paper. Everything that finds answers runs on what the surrogate says of rows. What would
be selected is put to the black box; its reply corrects the beliefs about the person's other rows,
walks go on where they were misled, and the selection is made again, until everything selected is
known to be valid. Then rows are asked that would be better, should the surrogate be wrong about
them: those that fall short by little, the answers with some changes undone, and the most promising
rows with fewer changes.

Always true: whatever is selected was called valid by the black box; with some of its changes
undone (any of up to five, otherwise one or two) it was not, or is not allowed or not plausible
enough, unless the person's questions or the time were used up.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..distances import is_mean
from ..kernels import BoolArray, FloatArray, IntArray, RowTable
from ..postprocess.diversity import FAR
from ..postprocess.validation import Answers
from ..tables.schema import OWN
from .believed import BelievedRows, n_before
from .minimal import select_more, undone
from .selection import SelectedRows, copies, within_bounds
from .walking import WalkedBlock

# Rows asked per person because they would be better: in any case, and at most; and by how many
# typical errors of the surrogate those beyond the first may fall short.
MIN_HOPES, MAX_HOPES, REACH = 5, 16, 3.0
# Rows asked of a person for whom nothing is believed to be valid, at first; then each time as many
# as so far.
N_TRIED = 8
# And at most, of a person with more rows than may be asked about: what the most promising ones do
# not show, the others hardly ever do.
TRIED_OF_MANY = 150

Select = Callable[[IntArray], SelectedRows]


class LedBlock(WalkedBlock):
    """The walks of a block of people in a search that is led by a surrogate."""

    visited: BelievedRows

    def find_answers(self) -> Answers:
        """Walk, select, ask, and learn from the replies."""
        n_people = self.candidates.people.size
        self._n_hopes, self._n_tried = np.zeros((2, n_people), dtype=np.int64)
        self._has_hoped = np.zeros(n_people, dtype=bool)
        self._several = False
        self._go_on()
        if self._direct is not None and self.how.answers_all:
            self._answer_directly(self._direct)
        if self.how.max_tries:
            self._place_draws()
        first = self._settle(self._first)
        if self.how.selection.ranking.n_counterfactuals > 1:
            self.walk.resume(self.how.selection.ranking.n_wanted)
            self._go_on()
            if self._direct is not None and self.how.fewest:
                self._improve(self._direct, first, several=True)
            self._several = True
            first = self._settle(lambda person: self._select(select_more, first, person))
        return first.to_answers(self.candidates, self.visited)

    def _settle(self, select: Select) -> SelectedRows:
        """Select, ask, and select again for whoever was asked about, until nothing is asked."""
        visited, parts = self.visited, [_nothing()]
        people = np.arange(self.candidates.people.size)
        while people.size:
            stopped = self._stop()
            if stopped:
                visited.close()
            rows = select(people)
            asked = visited.ask(people[:0] if stopped else self._questions(rows, people))
            self._hope(rows)
            again = np.unique(visited.person[asked])
            parts.append(rows.take(~np.isin(visited.person[rows.numbers], again)))
            people = again
            self._reconsider(people)
        return SelectedRows.concat(parts)

    def _reconsider(self, people: IntArray) -> None:
        if people.size:
            self.walk.reconsider(people)
            self._go_on()

    def _hope(self, rows: SelectedRows) -> None:
        """Where all that was selected is valid, believe once more what falls short by little."""
        visited = self.visited
        whose = visited.person[rows.numbers]
        again = np.setdiff1d(whose, whose[~(visited.asked & visited.valid)[rows.numbers]])
        again = again[~self._has_hoped[again]]
        self._has_hoped[again] = True
        visited.hope(again)

    def _questions(self, rows: SelectedRows, people: IntArray) -> IntArray:
        """The rows to ask about: what is selected; where that is known, what may be better."""
        visited = self.visited
        whose = visited.person[rows.numbers]
        unknown = ~visited.asked[rows.numbers]
        known = rows.take(~np.isin(whose, whose[unknown]))
        left = np.setdiff1d(people, whose)
        questions = rows.numbers[unknown], self._undone(known.numbers), self._better(known)
        return np.concatenate([*questions, self._tries(left)])

    def _undone(self, numbers: IntArray) -> IntArray:
        """Rows with some of their changes undone."""
        parent, child = undone(self.walk, numbers)
        return self._may_be_good(np.unique(child[child != parent]))

    def _may_be_good(self, numbers: IntArray) -> IntArray:
        """Those rows that were not asked and are allowed, plausible and within the bounds."""
        visited, ranking = self.visited, self.how.selection.ranking
        numbers = numbers[~visited.asked[numbers]]
        if ranking.max_sparsity is not None or ranking.max_distance is not None:
            numbers = numbers[within_bounds(ranking, visited, numbers)]
        visited.check(numbers)
        numbers = numbers[visited.allowed[numbers]]
        visited.assess(numbers)
        return numbers[visited.plausible[numbers]]

    def _better(self, known: SelectedRows) -> IntArray:
        """The most promising rows that would be better than first answers."""
        visited, whole = self.visited, self._whole
        promise, some = self._promising(known.take(known.rank == 1))
        person = visited.person
        some = self._by_features(some[np.lexsort((-promise, person[some]))])
        # The others are hardly ever reached, and many of them would be looked at for nothing.
        some = some[(n_before(person[some]) < 20 * MAX_HOPES) | whole[person[some]]]
        near = visited.desirability(some) >= -REACH * visited.error
        most = np.where(near, MAX_HOPES, MIN_HOPES) - self._n_hopes[person[some]]
        if self.how.selection.prefer == "distance":
            # The next ones depend on how close these are.
            most = np.minimum(most, 2)
        some = self._first_good(some, np.where(whole[person[some]], some.size, most))
        np.add.at(self._n_hopes, person[some], 1)
        return some

    def _by_features(self, numbers: IntArray) -> IntArray:
        """Rows by person, the first that changes each set of features before the second."""
        changed = self.visited.cells[numbers] != OWN
        changed = changed.astype(np.int32)
        changed[:, 0] = self.visited.person[numbers]
        place = n_before(RowTable(changed.shape[1]).place(changed))
        return numbers[np.lexsort((place, self.visited.person[numbers]))]

    def _first_good(self, numbers: IntArray, most: IntArray) -> IntArray:
        """Of rows by person, those that may be good, as long as fewer than ``most`` come before.

        Twice as many are looked at each time, until there are enough.
        """
        person = self.visited.person[numbers]
        good = np.zeros(numbers.size, dtype=bool)
        n_good: IntArray = np.zeros(self.visited.people.size, dtype=np.int64)
        left, size = np.arange(numbers.size), 1
        while left.size:
            place = n_before(person[left])
            here = (n_good[person[left]] + place < most[left]) | (place < size)
            some = left[here]
            good[some] = np.isin(numbers[some], self._may_be_good(numbers[some]))
            np.add.at(n_good, person[some], good[some])
            left, size = left[~here], 2 * size
            left = left[n_good[person[left]] < most[left]]
        found = np.flatnonzero(good)
        return numbers[found[n_before(person[found]) < most[found]]]

    def _promising(self, first: SelectedRows) -> tuple[FloatArray, IntArray]:
        """Rows with fewer changes than answers, or as many but closer; how promising, and which."""
        visited = self.visited
        changed = visited.cells[:, 1:] != OWN
        if self.how.selection.count_actions:
            changed[:, visited.recomputed] = False
        person, n_changes = visited.person, changed.sum(axis=1)
        fewest = np.zeros(visited.people.size, dtype=np.int64)
        fewest[person[first.numbers]] = n_changes[first.numbers]
        closer = self.how.selection.prefer == "distance"
        # Of a small table, all rows: for further answers, and since copies come last.
        copied = first.numbers[copies(self.how.selection, visited, first.numbers)]
        any_ = np.isin(np.arange(fewest.size), person[copied]) | self._several
        fewest = np.where(self._whole & any_ & (fewest > 0), n_changes.max(initial=0), fewest)
        most = fewest[person] + ((self._whole | closer) & (fewest > 0))[person]
        some = visited.scored & ~visited.asked & (n_changes < most) & (n_changes > 0)
        numbers = np.flatnonzero(some)
        merit = visited.desirability(numbers)
        if not closer:
            return merit, numbers
        ranking, distance = self.how.selection.ranking, np.zeros(visited.people.size)
        distance[person[first.numbers]] = visited.distance[first.numbers]
        visited.price(ranking, numbers)
        # Infinite distances are as far as can be.
        gain = np.minimum(distance[person[numbers]], FAR) - np.minimum(
            visited.distance[numbers], FAR
        )
        if not is_mean(ranking.distance):
            # As shares of what changing everything costs, roughly.
            gain /= visited.candidates.comparison.n_features
        gain += (n_changes < fewest[person])[numbers]
        chance = np.clip(0.5 + merit / (2 * REACH * max(visited.error, 1e-9)), 0.0, 1.0)
        better = (gain > 0) | self._whole[person[numbers]]
        return (gain * chance)[better], numbers[better]

    @property
    def _whole(self) -> BoolArray:
        """Whose rows are all asked about: of small tables, where the fewest changes count."""
        bounded = self.visited.led.max_evaluations is not None
        if bounded or self._direct is None or not self.how.fewest:
            return np.zeros(self.visited.people.size, dtype=bool)
        return np.isin(np.arange(self.visited.people.size), self._direct.small)

    def _tries(self, people: IntArray) -> IntArray:
        """The most promising rows of people for whom nothing is believed to be valid."""
        visited = self.visited
        if not self.how.max_tries or not people.size:
            return np.empty(0, dtype=np.int64)
        person = visited.person
        some = np.flatnonzero(visited.scored & ~visited.asked & np.isin(person, people))
        some = some[np.lexsort((-visited.desirability(some), person[some]))]
        n_rows = np.bincount(person[visited.scored], minlength=visited.people.size)
        n_tried, few = self._n_tried, min(self.how.max_tries, TRIED_OF_MANY)
        most = np.where(n_rows > self.how.max_tries, few, self.how.max_tries)
        left = np.maximum(most - visited.led.replies.n_here[visited.people], 0)
        more = np.minimum(np.maximum(n_tried, N_TRIED), left)
        some = self._first_good(some, more[person[some]])
        np.add.at(n_tried, person[some], 1)
        return some

    def _place_draws(self) -> None:
        """Add the draws of people without an answer to their rows."""
        left = np.setdiff1d(np.arange(self.candidates.people.size), self._answered())
        who, draw = np.nonzero(self.candidates.distinct[self.candidates.group[left]])
        codes = self.candidates.select(left[who], draw).codes
        self.visited.evaluate(self.visited.place(left[who], draw, codes))


def _nothing() -> SelectedRows:
    none = np.empty(0, dtype=np.int64)
    return SelectedRows(none, none, none, np.empty(0))
