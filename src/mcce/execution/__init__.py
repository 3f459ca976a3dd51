"""Explain people on many processes or machines, with Dask, Ray, Spark or joblib.

Beyond the paper. ``explain`` takes people in a frame of pandas or of an engine; ``mcce explain``
takes files. ``workers`` says what workers get and do, ``pools`` is the seam to engines, and each
engine has a module with what it needs.
"""

from .frames import explain

__all__ = ["explain"]
