"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file, ``document`` what stands in it; ``values``, ``cells`` and ``chain`` say how
plain values, columns and trees are written, ``probes`` how a predictor is known again.
"""

from .document import restore, save

__all__ = ["restore", "save"]
