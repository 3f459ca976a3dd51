"""The settings that the comparison in the MCCE paper used, for each method."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, ClassVar, Self

from mcce.tables.columns import Kind


class PaperPreset:
    """A method with the settings of the paper's comparison beside the defaults."""

    PAPER: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def paper(
        cls,
        predictor: Any,
        desired: Any = None,
        *,
        immutable: Sequence[Hashable] | None = None,
        kinds: Mapping[Hashable, Kind] | None = None,
    ) -> Self:
        """The method with the hyper-parameters of the comparison in the MCCE paper.

        They are those of the authors' script. The method itself stays sound: it keeps immutable
        features and returns rows that exist, which the paper's runs did not always do.

        Parameters
        ----------
        predictor, desired, immutable, kinds
            As for the class.

        Returns
        -------
        Baseline
            An unfitted method.
        """
        given = {"immutable": immutable, "kinds": kinds}
        return cls(predictor, desired, **given, **cls.PAPER)  # type: ignore[call-arg]
