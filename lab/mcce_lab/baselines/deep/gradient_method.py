"""What the methods that follow the predictor's gradients have in common.

Always true: rows without one of their numbers are left out of training, and such people get a
reason; networks are trained on the same rows as the scorer.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

from ..baseline import (
    Baseline,
    Declined,
    Found,
    Training,
)
from ..complete import complete_rows, search_complete
from ..space import Space
from .descent import Best, Block, search
from .preset import PaperPreset
from .scoring import Scorer
from .tools import INCOMPLETE, import_torch


class GradientMethod(PaperPreset, Baseline):
    """A method that moves people along gradients of the predictor, all of them at once."""

    # Why a person has no answer.
    NOTHING: ClassVar[str]
    device: str

    def _learn(self, training: Training, y: Any) -> None:
        name = type(self).__name__
        import_torch(name, self.device)
        space = Space.learn(training.rows)
        training = complete_rows(training, space)
        self.scorer_ = Scorer.learn(training, space, name, self.device)
        self._train(space, training)

    def _train(self, space: Space, training: Training) -> None:
        """Train the networks of the method, if it has any."""

    def _search(self, declined: Declined) -> Found:
        return search_complete(declined, self.scorer_.space, self._descend, INCOMPLETE)

    def _descend(self, declined: Declined) -> Found:
        return search(declined, self.scorer_, self._find, self.NOTHING)

    @abstractmethod
    def _find(self, block: Block) -> Best:
        """Move the people of a block, and keep the best valid row of each."""
