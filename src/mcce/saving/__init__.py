"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file and its bytes, ``document`` what stands in it; ``values``, ``cells`` and
``parts`` say how each thing is written; ``inspection`` shows what a file holds. ``values`` and
``mcce.model.arrays`` say what a file may hold.
"""
