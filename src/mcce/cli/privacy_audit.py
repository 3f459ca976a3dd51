"""``mcce privacy-audit``: whether what an explainer gives out tells who was in training.

Always true: nothing is computed before the output is checked; real rows are read by the columns of
the explainer, as people are.
"""

from __future__ import annotations

from ..privacy.audit_result import PrivacyAudit
from ..privacy.auditing import audit
from ..report.audit_page import AuditSection, write_privacy_report
from ..report.labels import Labels
from ..report.words import Words
from ..runtime.progress import without_prints
from .arguments import AuditArguments, inputs_of
from .inputs import check_page, load_explainer, read_all, split_names
from .terminal import notify, printable, show, show_json, table


def run(arguments: AuditArguments) -> None:
    """Audit an explainer."""
    output = arguments.output
    if output is not None:
        check_page("The page", output, inputs_of(arguments), overwrite=arguments.overwrite)
    explainer = load_explainer(arguments.explainer, arguments.predictor, arguments.run, output)
    training, holdout = (
        read_all(path, explainer.schema_, arguments.table)
        for path in (arguments.training, arguments.holdout)
    )
    further = arguments.reference
    reference = None if further is None else read_all(further, explainer.schema_, arguments.table)
    known = [str(name) for name in explainer.schema_.names]
    with without_prints():
        found = audit(
            explainer,
            training,
            holdout,
            reference,
            release=arguments.release,  # type: ignore[arg-type]
            n_people=arguments.n_people,
            quasi_identifiers=split_names(
                "--quasi-identifiers", arguments.quasi_identifiers, known
            ),
            private=split_names("--private", arguments.private, known),
            random_state=arguments.seed,
        )
    if output is not None:
        write_privacy_report(found, output, {"language": arguments.language})
    _show(arguments, found)


def _show(arguments: AuditArguments, found: PrivacyAudit) -> None:
    """The figures on standard output, and the outcome on standard error."""
    path = arguments.output
    figures = found.to_frame().reset_index().astype(object)
    if arguments.run.as_json:
        counts = ("n_released", "n_training", "n_holdout", "n_reference", "n_each", "n_copies")
        said = {name: getattr(found, name) for name in ("finding", "leaks", "release", *counts)}
        said["excluded"] = list(map(str, found.excluded))
        said["figures"] = figures.where(figures.notna(), None).to_dict("records")
        show_json(said | ({} if path is None else {"output": path}))
        return
    rows = []
    for figure in found.figures:
        numbers = (figure.value, figure.low, figure.high, figure.null)
        value, low, high, null = ("-" if n != n else f"{n:.3g}" for n in numbers)
        rows.append((figure.name, value, f"{low} to {high}", null, figure.finding))
    show(table(["figure", "value", "95 % interval", "without a leak", "finding"], rows))
    if arguments.run.quiet:
        return
    section = AuditSection(found, Words(Labels.take({"language": arguments.language})))
    for name in found.leaks:
        notify(f"leak by {name}: {section.name_of(name)}.")
    text = found.summary()
    if found.excluded:
        names = ", ".join(map(str, found.excluded))
        text += f" Not used as quasi-identifiers, since nobody can change them: {names}."
    if path is not None:
        text += f" Page: {path}"
    notify(f"{printable(text)}")
