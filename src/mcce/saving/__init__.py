"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file, ``container`` its bytes, ``document`` what stands in it; ``values``,
``cells`` and ``support`` say how plain values, columns and trees are written, ``probes`` how a
predictor is known again. ``checks`` and ``mcce.model.arrays`` say what a file may hold.
"""

from .document import restore, save

__all__ = ["restore", "save"]
