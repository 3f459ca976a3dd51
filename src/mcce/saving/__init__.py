"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file, ``container`` its bytes, ``document`` what stands in it; ``values``,
``cells``, ``generators``, ``plausibility`` and ``relations`` say how each thing is written,
``probes`` how a predictor is known again; ``inspection`` shows what a file holds. ``checks`` and
``mcce.model.arrays`` say what a file may hold.
"""

from .document import restore, save
from .inspection import Inspection, inspect

__all__ = ["Inspection", "inspect", "restore", "save"]
