"""Fitted explainers as files: open, checked, and without code in them.

``archive`` is the file and its bytes, ``document`` what stands in it; ``values``, ``cells`` and
``parts`` say how plain values, columns and what ``fit`` learned are written, and what a file may
hold, of trees with ``mcce.model.arrays``; ``probes`` is how a predictor is known again.
"""
