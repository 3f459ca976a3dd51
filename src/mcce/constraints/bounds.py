"""How large rule files and conditions may be.

They may come from anywhere, so whatever reads them takes little time and memory for any content:
each bound is checked before or while something is parsed, never after. Constraints made in Python
are bounded by none of these but those on conditions.
"""

from __future__ import annotations

# Rule files.
MAX_FILE_BYTES = 250_000
MAX_RULES = 1_000  # a list of features makes one for each
MAX_VALUES = 10_000  # keys, values, lists and tables
MAX_NESTING = 20  # lists and tables inside each other, and parts of a dotted key
MAX_TEXT = 4_000  # characters of a string or a key
MAX_NUMBER = 100  # characters of a number or a date

# Conditions, in files, in saved explainers and in Python.
MAX_CONDITION = 4_000  # characters
MAX_CONDITION_NESTING = 20  # parentheses, functions and signs inside each other
