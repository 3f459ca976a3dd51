"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file and its bytes, ``document`` what stands in it; ``values``, ``cells``,
``fields``, ``generators`` and ``probes`` say how each thing is written and what a file may hold, of
trees with ``mcce.model.arrays``; ``inspection`` shows what a file holds.
"""
