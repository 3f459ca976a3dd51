"""How people may change; :mod:`.written` holds what users write, the rest what it means."""

from . import builders as written
from .base import Constraint
from .builders import *  # noqa: F403  the words, listed there

__all__ = ["Constraint"]
__all__ += written.__all__
