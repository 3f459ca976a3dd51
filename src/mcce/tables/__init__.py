"""Frames of every kind, columns, dtypes and the schema: the one data boundary."""
