"""Explain people on many processes or machines, with Dask, Ray, Spark or joblib.

Beyond the paper. One file per engine, each with a function ``explain`` for the engine's frames and
an executor for tasks. ``workers`` says what workers get and do, and is the seam to engines.
"""
