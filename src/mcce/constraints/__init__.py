"""How people may change; :mod:`.written` holds what users write, the rest what it means."""

from . import written
from .base import Constraint
from .written import *  # noqa: F403  the words, listed there

__all__ = ["Constraint"]
__all__ += written.__all__
