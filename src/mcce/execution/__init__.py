"""Explain people on many processes or machines, with Dask, Ray, Spark or joblib.

Beyond the paper. One file per engine, each with a function ``explain`` for the engine's frames and
an executor for tasks. ``shipment`` is the explainer as workers get it, ``partitions`` what they do
with a partition of people.
"""
