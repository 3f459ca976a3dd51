"""Analyses of a result: ranges, robustness, and what to relax."""
