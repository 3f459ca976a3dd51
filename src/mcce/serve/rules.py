"""Rules of a request: the entries of rule files, as constraints with the place they came from."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..constraints import Constraint
from ..constraints.collection import Constraints
from ..constraints.files import make_constraints
from ..errors import ConstraintError, shorten
from ..tables.schema import Schema
from .refusals import Problem, RefusalError


def read_rules(entries: Sequence[Any], own: Any, schema: Schema) -> list[tuple[int, Constraint]]:
    """The constraints of a request, each with the position of its entry."""
    made: list[tuple[int, Constraint]] = []
    problems = []
    for place, entry in enumerate(entries):
        try:
            _check_conditions(entry)
            constraints = make_constraints(entry)
            Constraints.bind(constraints, schema)
            made += [(place, constraint) for constraint in constraints]
        except ConstraintError as error:
            problems.append(Problem(("body", "rules", place), str(error), "rule"))
    if problems:
        raise RefusalError(422, problems)
    try:
        bound = Constraints.bind(own, schema)
        bound.joined(Constraints.bind([constraint for _, constraint in made], schema))
    except ConstraintError as error:
        raise RefusalError(422, [Problem(("body", "rules"), str(error), "rule")]) from None
    return made


def _check_conditions(entry: Any) -> None:
    """Raise for a list of who is meant, which would mean others in a batch."""
    for arguments in entry.values() if isinstance(entry, dict) else ():
        where = arguments.get("where") if isinstance(arguments, dict) else None
        if where is not None and not isinstance(where, str):
            raise ConstraintError(f"where must be a condition as text, got {shorten(where)}.")
