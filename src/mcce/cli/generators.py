"""The options of ``mcce fit`` that choose the model of step 1."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Generator = Annotated[
    str,
    typer.Option(
        "--generator",
        metavar="NAME",
        help="The model of step 1: trees, forest, ctree or private, or one of another package.",
    ),
]
Domains = Annotated[
    str | None,
    typer.Option(
        "--domains",
        metavar="FILE",
        help="Public domains of all columns as JSON, for --generator private.",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option("--epsilon", metavar="E", help="Privacy budget of --generator private, e.g. 1."),
]


def chosen(name: str, domains: str | None, epsilon: float | None, sample: Any) -> Any:
    """The generator of a name; a private one with its domains and budget."""
    from ..errors import ParameterError

    if name != "private":
        if domains is not None or epsilon is not None:
            raise ParameterError("--domains and --epsilon need --generator private.")
        return name
    from ..privacy.domains import read_domains
    from ..privacy.trees import PrivateTrees

    if domains is None or epsilon is None:
        raise ParameterError(
            "--generator private needs --domains, a JSON file with the public domain of every "
            "column, and --epsilon, its budget."
        )
    if sample is not None:
        raise ParameterError(
            "--sample-rows keeps rows by how rare they are, which the budget of --generator "
            "private does not cover. Leave it out."
        )
    return PrivateTrees(domains=read_domains(domains), epsilon=epsilon)


def n_desired_of(fitted: Any) -> str:
    """How many training rows have the desired decision; about, if the count has noise."""
    from ..model import is_private

    return f"{'about ' if is_private(fitted.generator) else ''}{fitted.n_desired:,}"


def kept_of_rows(generator: Any) -> str:
    """What of the training rows a saved explainer holds, as a sentence."""
    from ..model import is_private

    if not is_private(generator):
        return (
            "It holds training values: protect it like the training data (mcce inspect shows "
            "which)."
        )
    return (
        f"Its model spent epsilon {generator.ledger_.epsilon:.3g}, counts have noise, and it holds "
        "no training values. The predictor is not covered."
    )
