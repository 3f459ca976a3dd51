"""Adam and RMSprop as plain functions of numbers, gradients and what they remember.

torch has them too, but keeps their memory inside, where rows that have stopped cannot be left out.

Always true: every number is moved by its own gradients only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

# Keeps quotients finite.
EPSILON = 1e-8


class Stepper(Protocol):
    """A rule that moves numbers against their gradient."""

    @property
    def n_memories(self) -> int:
        """Number of tensors that it remembers, each of the shape of the numbers, first zeros."""

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move.

        Parameters
        ----------
        gradient : torch.Tensor
            The gradient.
        memories
            What was remembered.
        time
            Number of the step, from 1.

        Returns
        -------
        move : torch.Tensor
            What to add to the numbers.
        memories
            What to remember.
        """


@dataclass(frozen=True)
class Adam:
    """Kingma and Ba 2015; with ``amsgrad``, steps never grow again.

    Parameters
    ----------
    rate
        The size of a step.
    amsgrad
        Whether the largest second moment counts, not the current one.
    """

    rate: float
    amsgrad: bool = False

    @property
    def n_memories(self) -> int:
        """Two moments, and the largest second one."""
        return 3 if self.amsgrad else 2

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move; see :class:`Stepper`."""
        first = 0.9 * memories[0] + 0.1 * gradient
        second = 0.999 * memories[1] + 0.001 * gradient.square()
        kept = [first, second]
        if self.amsgrad:
            second = second.maximum(memories[2])
            kept.append(second)
        size = (second / (1 - 0.999**time)).sqrt() + EPSILON
        return -self.rate / (1 - 0.9**time) * first / size, kept


@dataclass(frozen=True)
class RMSprop:
    """Tieleman and Hinton 2012.

    Parameters
    ----------
    rate
        The size of a step.
    """

    rate: float

    @property
    def n_memories(self) -> int:
        """The second moment."""
        return 1

    def step(self, gradient: Any, memories: list[Any], time: int) -> tuple[Any, list[Any]]:
        """How far to move; see :class:`Stepper`."""
        second = 0.99 * memories[0] + 0.01 * gradient.square()
        return -self.rate * gradient / (second.sqrt() + EPSILON), [second]
