"""Letters from changes in words: answers, principal reasons, and nothing found.

Always true: a letter speaks only of what differs between the person and an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .clauses import Change, Clauses
from .labels import Labels

# More clauses than this are listed below one another.
MAX_IN_SENTENCE = 3


@dataclass(frozen=True)
class AnswerChanges:
    """The changes of one answer: what the person would do, and what would follow.

    ``share`` says which share of the values that an anonymous answer stands for is accepted, if
    not all.
    """

    actions: Sequence[Change]
    consequences: Sequence[Change] = ()
    share: float | None = None

    def asks_at_least(self, other: AnswerChanges) -> bool:
        """Whether the person would have to do all that another answer asks for, or more."""
        mine = {change.feature: change for change in self.actions}
        return all(
            theirs.feature in mine and mine[theirs.feature].asks_at_least(theirs)
            for theirs in other.actions
        )


def without_needless(answers: Sequence[AnswerChanges]) -> list[AnswerChanges]:
    """The answers of a person but those that ask for more than another one does.

    Once answers are rounded, two may also be the same: the first one stays.
    """
    kept: list[AnswerChanges] = []
    for at, answer in enumerate(answers):
        others = [*kept, *(other for other in answers[at + 1 :] if not other.asks_at_least(answer))]
        if not any(answer.asks_at_least(other) for other in others):
            kept.append(answer)
    return kept


class Writer:
    """Writes letters."""

    def __init__(self, labels: Labels) -> None:
        self._labels, self._language = labels, labels.language
        self._clauses = Clauses(labels)

    def answer(self, answer: AnswerChanges) -> str:
        """One answer: a sentence, and one for each thing that would have followed."""
        clauses = [self._clauses.clause(change) for change in answer.actions]
        would = self._labels.say("would")
        if len(clauses) <= MAX_IN_SENTENCE:
            joined = self._language.join(clauses)
            text = self._language.say("letter.if", would=would, clauses=joined)
        else:
            text = self._listed(clauses, self._language.messages["lists.bullet"], "lists.item_and")
        follow = self._clauses.consequences(answer.consequences)
        between = " " if len(clauses) <= MAX_IN_SENTENCE else "\n"
        told = [f"{text[:1].upper()}{text[1:]}." for text in follow]
        if answer.share is not None:
            told.append(self._share("share", answer.share))
        sentences = " ".join(told)
        return f"{text}{between}{sentences}" if sentences else text

    def answers(self, answers: Sequence[AnswerChanges]) -> str:
        """One answer or several, of which any would do."""
        if len(answers) == 1:
            return self.answer(answers[0])
        return self._listed([self._case(answer) for answer in answers], "", "lists.item_or")

    def reason(self, change: Change) -> str:
        """Why a feature led to the decision."""
        return self._clauses.reason(change)

    def letter(self, answers: Sequence[AnswerChanges], reasons: Sequence[str]) -> str:
        """The letter for somebody who has answers."""
        intro = self._labels.say("reason" if len(reasons) == 1 else "reasons")
        bullet = self._language.messages["lists.bullet"]
        paragraphs = [
            self._labels.say("declined"),
            "\n".join([intro, *(f"{bullet} {reason}" for reason in reasons)]),
            self.answers(answers),
            self._labels.say("closing"),
        ]
        return "\n\n".join(paragraphs)

    def nothing(self, kind: str) -> str:
        """The letter for somebody without an answer."""
        return f"{self._labels.say('declined')}\n\n{self._language.messages[f'nothing.{kind}']}"

    def already(self) -> str:
        """The letter for somebody with the desired decision."""
        return self._labels.say("already")

    def _case(self, answer: AnswerChanges) -> str:
        """An answer among several."""
        text = self._language.join([self._clauses.clause(change) for change in answer.actions])
        told = self._clauses.consequences(answer.consequences)
        if answer.share is not None:
            told = [*told, self._share("share_of_case", answer.share)]
        return f"{text} ({'; '.join(told)})" if told else text

    def _share(self, key: str, share: float) -> str:
        return self._language.say(f"letter.{key}", share=self._language.percent(share))

    def _listed(self, items: Sequence[str], mark: str, last: str) -> str:
        """Clauses below one another, as one sentence; numbered unless there is a mark."""
        ends = [self._language.messages["lists.comma"].rstrip()] * len(items)
        ends[-2:] = [self._language.messages[last], "."]
        marks = [mark or f"{number}." for number in range(1, len(items) + 1)]
        lines = [f"{m} {item}{end}" for m, item, end in zip(marks, items, ends, strict=True)]
        start = self._language.say("letter.if_list", would=self._labels.say("would"))
        return "\n".join([start, *lines])
