"""Load a saved explainer together with its predictor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from .explainer import MCCE
from .parameters import check_parameters, check_real, learned_parameters
from .protocols import Generator
from .saving import restore


def load(
    path: str | os.PathLike[str],
    predictor: Any,
    *,
    generator: Generator | None = None,
    tolerance: float = 1e-9,
    key: bytes | None = None,
) -> MCCE:
    """Load a saved explainer together with the predictor it explains.

    Its answers are the same as before saving. Loading runs no code from the file, whoever wrote it.
    But the checksums in a file prove nothing about its origin: an edited file with new checksums
    and a sound structure loads, and gives other answers. Only a signature tells, see ``key``.

    Parameters
    ----------
    path
        File written by :meth:`MCCE.save`.
    predictor
        The predictor that was explained. It must score the probe rows in the file as it did.
    generator
        An unfitted instance, if the explainer was saved with a generator that is not part of
        mcce: a file holds no code.
    tolerance
        Relative difference up to which such scores are equal; raise it for float32 predictors.
    key
        The secret that the file was signed with; a file without that signature is refused. None
        does not look at signatures.

    Returns
    -------
    MCCE
        The fitted explainer.

    Raises
    ------
    SavedFileError
        If the file cannot be read, is damaged, was not signed with the key, or holds no explainer.
    PredictorError
        If the predictor is not the one that the explainer was saved with.
    ParameterError
        If an argument cannot have its value, or the file needs a generator of yours.
    MissingExtraError
        If the file needs a library that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> import pandas as pd
    >>> bank = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
    >>> score = lambda frame: frame["salary"] / 100
    >>> explainer = MCCE(score, (0.7, 1.0), immutable=["age"], random_state=0).fit(bank)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     explainer.save(f"{folder}/loans.mcce")
    ...     loaded = load(f"{folder}/loans.mcce", score)
    >>> loaded.explain(bank.head(2)).frame.equals(explainer.explain(bank.head(2)).frame)
    True
    """
    check_real("tolerance", tolerance, "a finite number >= 0")

    def check(given: Mapping[str, Any]) -> dict[str, Any]:
        explainer = MCCE(predictor, **given)
        check_parameters(explainer)
        parameters = explainer.get_params(deep=False)
        del parameters["predictor"]
        return parameters

    parameters, fitted = restore(path, predictor, tolerance, check, generator, key)
    explainer = MCCE(predictor, **parameters)
    explainer.fitted_ = replace(fitted, parameters=learned_parameters(explainer))
    return explainer
