"""Every error and warning that mcce raises on purpose.

McceError
├── SchemaError         the columns, kinds or values of the data cannot be used
├── ParameterError      an argument has a value that cannot work
├── ConstraintError     a constraint is not valid or does not fit the data
├── PredictorError      the black box cannot be called or returns something unusable
├── NotFittedError      the explainer is used before it is fitted
├── SavedFileError      a file cannot be written or read, or does not hold a usable explainer
├── DatasetError        a data set cannot be found or read, or is not what its card says
└── MissingExtraError   an optional library is needed but not installed
McceWarning             something the user should know that does not stop the work

Each error is also the builtin it resembles, so ``except ValueError`` keeps working.
"""

from __future__ import annotations

from sklearn.exceptions import NotFittedError as _SklearnNotFittedError


class McceError(Exception):
    """Base class of all errors that mcce raises on purpose.

    Examples
    --------
    >>> from mcce import MCCE, McceError
    >>> try:
    ...     MCCE(predictor=None).fit([[1, 2]])
    ... except McceError as error:
    ...     print(type(error).__name__)
    SchemaError
    """


class SchemaError(McceError, ValueError):
    """The columns, kinds or values of the data cannot be used.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> mcce.Schema.learn(pd.DataFrame({"age": [36]}), immutable=["Age"])
    Traceback (most recent call last):
        ...
    mcce.errors.SchemaError: immutable names columns that are not in the data: ['Age']. The columns
    are ['age'].
    """


class ParameterError(McceError, ValueError):
    """An argument has a value that cannot work.

    Examples
    --------
    >>> import mcce
    >>> mcce.Interval(1.0, 0.5)
    Traceback (most recent call last):
        ...
    mcce.errors.ParameterError: Interval [1.0, 0.5] is empty: no score lies in it. Pass the lower
    end first.
    """


class ConstraintError(McceError, ValueError):
    """A constraint is not valid or does not fit the data.

    Examples
    --------
    >>> from mcce import constraints
    >>> constraints.max_changes(0)
    Traceback (most recent call last):
        ...
    mcce.errors.ConstraintError: max_changes: n must be a whole number of at least 1, got 0.
    """


class PredictorError(McceError, ValueError):
    """The black box cannot be called or returns something unusable.

    Examples
    --------
    >>> import mcce, pandas as pd
    >>> mcce.MCCE(lambda frame: 0.5, desired=(0.6, 1.0)).fit(pd.DataFrame({"age": [36, 52]}))
    Traceback (most recent call last):
        ...
    mcce.errors.PredictorError: The predictor must return an array of shape (2,) for 2 rows, got
    shape ().
    """


class NotFittedError(McceError, _SklearnNotFittedError):
    """The explainer is used before it is fitted; also scikit-learn's error of that name."""


class SavedFileError(McceError, OSError, ValueError):
    """A file cannot be written or read, or does not hold a usable explainer."""


class DatasetError(McceError, OSError, ValueError):
    """A data set cannot be found or read, or is not what its card says."""


class MissingExtraError(McceError, ImportError):
    """An optional library is needed but not installed; the message names the extra to install."""


class McceWarning(UserWarning):
    """Something the user should know that does not stop the work."""
