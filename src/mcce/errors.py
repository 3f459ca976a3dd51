"""Every error and warning that mcce raises on purpose.

McceError
├── SchemaError         the columns, kinds or values of the data are not what they must be
├── ParameterError      an argument has a value that cannot work
├── ConstraintError     a constraint is wrongly written, or does not fit the data
├── PredictorError      the black box cannot be called, or answers with something unusable
├── NotFittedError      the explainer was asked before it was fitted
├── SavedFileError      a file cannot be written or read, or holds no explainer that can be used
├── DatasetError        a data set cannot be found or read, or is not what its card says
└── MissingExtraError   an optional library is needed that is not installed
McceWarning             something the user should know that does not stop the work

Each error is also the builtin it resembles, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError


class McceError(Exception):
    """Anything mcce raises on purpose."""


class SchemaError(McceError, ValueError):
    """The columns, kinds or values of the data are not what they must be."""


class ParameterError(McceError, ValueError):
    """An argument has a value that cannot work."""


class ConstraintError(McceError, ValueError):
    """A constraint is wrongly written, or does not fit the data."""


class PredictorError(McceError, ValueError):
    """The black box cannot be called, or answers with something unusable."""


class NotFittedError(McceError, _SklearnNotFittedError):
    """The explainer was asked before it was fitted."""


class SavedFileError(McceError, OSError, ValueError):
    """A file cannot be written or read, or holds no explainer that can be used."""


class DatasetError(McceError, OSError, ValueError):
    """A data set cannot be found or read, or is not what its card says."""


class MissingExtraError(McceError, ImportError):
    """An optional library is needed that is not installed."""


class McceWarning(UserWarning):
    """Something the user should know that does not stop the work."""
