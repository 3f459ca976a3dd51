"""What can be fuzzed. The cases of a kind are made by ``run`` in the module ``kind_<name>``."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Kind:
    """A kind of case, and its share of the time of a run."""

    about: str
    share: float
    # Whether several of its cases can run at once without disturbing each other's measurements.
    parallel: bool = True


KINDS = {
    "files": Kind("saved files with random changes and matching checksums", 3),
    "rules": Kind("hostile rule files and conditions, with their cost", 1, parallel=False),
    "frames": Kind("random tables, predictors and constraints, checked by other code", 4),
    "predictors": Kind("predictors that fail in every way", 1),
    "threads": Kind("threads that explain while another one refits", 1, parallel=False),
    "interrupts": Kind("interrupts at random moments", 1, parallel=False),
    "forks": Kind("forks while another thread explains", 1, parallel=False),
}
