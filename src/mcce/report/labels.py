"""Labels: the words in which letters, reports and pictures speak of features.

A labels file is TOML, written by whoever knows how the company writes to its customers, one file
for each language:

.. code-block:: toml

    language = "en"
    decision.would = "We would have approved your application"

    [features.amount]
    name = "the loan amount"
    unit = "{number} kr"
    rounding = 1000
    verbs = "you had applied for {after}[ instead of {before}]"
    reason = "You applied for a large loan."

Everything is checked when it is read. Texts are templates, see :mod:`mcce.report.language`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from ..constraints.constraint import quote_name
from ..constraints.files import parse_toml, read_text
from ..errors import ConstraintError, LabelsError, did_you_mean, shorten
from ..tables.features import Feature
from ..tables.schema import Schema
from ..tables.text import short_line
from .language import Language, check_template, find_language

# Placeholders of texts about a change, and of those about the person's own value.
CHANGE, OWN = frozenset({"before", "after"}), frozenset({"before"})
DECISION = ("yes", "no", "declined", "already", "would", "reason", "reasons", "closing")
DIRECTIONS = ("more", "less", "change")
# Takes what a file says and its place there; gives it in the form that letters use.
Check = Callable[[Any, str], Any]


@dataclass(frozen=True)
class FeatureLabel:
    """The words for one feature.

    Parameters
    ----------
    name
        What the feature is called in a sentence.
    title
        What it is called as a heading, whoever reads it: "Savings", not "Your savings". None is the
        name with a capital letter.
    help
        What it means, for whoever fills in a form or reads a report.
    unit
        How a number is written with its unit, in the nominative: for one, and for any other number.
    rounding
        Multiple that numbers are rounded to; None chooses one by the size of the change.
    scale
        What numbers are multiplied by before they are written, such as 100 for percent.
    grouping
        Whether thousands are separated.
    levels
        Words for values, also for those of a number that stands for a category.
    order
        Values from the least to the most. Levels are shown so, and a reason is one for ``more`` or
        ``less`` of them.
    action
        What a plan asks for, as a title: "Borrow {after}"; or a text for each value after.
    verbs
        Clauses that say how the feature would have been different: ``more``, ``less`` or
        ``change`` (of any kind).
    become
        The same for single values, by the value after.
    follow
        A sentence for a column that follows from others; False says nothing of it.
    reason
        Why the feature led to the decision: ``more`` if more of it would have been better,
        ``less`` or ``change``.
    being
        The same for single values, by the person's own value. Of a feature with an ``order``, these
        are reasons for more.
    """

    name: str
    title: str | None = None
    help: str | None = None
    unit: tuple[str, str] = ("{number}", "{number}")
    rounding: float | None = None
    scale: float = 1
    grouping: bool = True
    levels: Mapping[str, str] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    action: str | Mapping[str, str] | None = None
    verbs: Mapping[str, str] = field(default_factory=dict)
    become: Mapping[str, str] = field(default_factory=dict)
    follow: str | Literal[False] | None = None
    reason: Mapping[str, str] = field(default_factory=dict)
    being: Mapping[str, str] = field(default_factory=dict)

    @property
    def has_reason(self) -> bool:
        """Whether there is a wording whatever the person's value and direction."""
        return "change" in self.reason or {"more", "less"} <= self.reason.keys()

    @classmethod
    def make(cls, feature: Hashable, given: Any, where: str) -> Self:
        """The words for a feature, by what a labels file says of it.

        Parameters
        ----------
        feature
            The name of the column.
        given
            What the file says of it.
        where
            Where it says so, for errors.

        Returns
        -------
        FeatureLabel
            The words.
        """
        _check_keys(given, _CHECKS, where)
        words = {key: _CHECKS[key](text, f"{where}.{key}") for key, text in given.items()}
        return cls(**{"name": short_line(feature), **words})


@dataclass(frozen=True)
class Labels:
    """The words in which letters speak of a decision and its features.

    :meth:`read` reads them from a file, :meth:`make` from a dict.

    Parameters
    ----------
    language
        Code of the language.
    decision
        ``yes`` and ``no``, words for the desired decision and for any other, such as "granted" and
        "declined"; and sentences that replace those of the language: ``declined``, ``already``,
        ``would``, ``reason``, ``reasons`` and ``closing``.
    features
        The words for each feature, by name.

    Examples
    --------
    >>> labels = Labels.make({"features": {"amount": {"unit": "{number} kr", "rounding": 100}}})
    >>> labels.of("amount").rounding
    100
    >>> labels.of("age").name
    'age'
    """

    language: Language = field(default_factory=lambda: find_language("en"))
    decision: Mapping[str, str] = field(default_factory=dict)
    features: Mapping[Hashable, FeatureLabel] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Self:
        r"""The labels in a file.

        Parameters
        ----------
        path
            A file whose name ends in ``.toml``.

        Returns
        -------
        Labels
            The labels.

        Raises
        ------
        LabelsError
            If the file cannot be read or something in it is wrong.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> path = pathlib.Path(tempfile.mkdtemp(), "labels.toml")
        >>> _ = path.write_text('language = "nb"\n[features.age]\nname = "alderen din"\n')
        >>> Labels.read(path).of("age").name
        'alderen din'
        """
        file = Path(path)
        if file.suffix.lower() != ".toml":
            raise LabelsError(f"A labels file must be called .toml, got {shorten(file)}.")
        name = quote_name(file.name)
        try:
            return cls._make(parse_toml(read_text(file, "labels"), name), name)
        except ConstraintError as error:
            raise LabelsError(str(error)) from None

    @classmethod
    def bundled(cls, name: str, language: str = "en") -> Self:
        """The labels of a data set that comes with the package.

        Parameters
        ----------
        name
            ``"german"``, see :func:`mcce.datasets.load_german_credit`.
        language
            Code of the language.

        Returns
        -------
        Labels
            The labels.

        Examples
        --------
        >>> Labels.bundled("german", "de").of("Duration").name
        'die Laufzeit'
        """
        find_language(language)
        folder = files("mcce.datasets").joinpath("labels")
        file = folder.joinpath(f"{name}.{language}.toml")
        if not isinstance(name, str) or not file.is_file():
            raise LabelsError(
                f"There are no bundled labels of {shorten(name)}, only of 'german'. Write a file "
                "of your own, and read it with Labels.read."
            )
        return cls._make(parse_toml(file.read_text(encoding="utf-8"), file.name), file.name)

    @classmethod
    def make(cls, content: Mapping[str, Any]) -> Self:
        """The labels in a dict with the keys of a labels file.

        Parameters
        ----------
        content
            Optional ``language``, ``decision`` and ``features``.

        Returns
        -------
        Labels
            The labels.

        Raises
        ------
        LabelsError, ParameterError
            If something in it is wrong, or there is no such language.
        """
        return cls._make(content, "labels")

    @classmethod
    def take(cls, given: Any) -> Labels:
        """The labels that a user passed in one form or another.

        Parameters
        ----------
        given
            Labels, the path of a labels file, a dict of the same form, or None for none.

        Returns
        -------
        Labels
            The labels.
        """
        if given is None or isinstance(given, Labels):
            return given or cls()
        if isinstance(given, Mapping):
            return cls.make(given)
        if isinstance(given, (str, os.PathLike)):
            return cls.read(given)
        raise LabelsError(
            "labels must be Labels, the path of a labels file, a dict of the same form or None, "
            f"got {shorten(given)}."
        )

    @classmethod
    def _make(cls, content: Any, where: str) -> Self:
        _check_keys(content, ("language", "decision", "features"), where)
        decision = content.get("decision", {})
        _check_keys(decision, DECISION, f"{where}: decision")
        features = content.get("features", {})
        if not isinstance(features, Mapping):
            raise LabelsError(
                f"{where}: features must map column names to their words, got {shorten(features)}."
            )
        return cls(
            find_language(content.get("language", "en")),
            {key: _text(text, f"{where}: decision.{key}") for key, text in decision.items()},
            {
                name: FeatureLabel.make(name, given, f"{where}: features.{short_line(name, 40)}")
                for name, given in features.items()
            },
        )

    def of(self, feature: Hashable) -> FeatureLabel:
        """The words for a feature.

        Parameters
        ----------
        feature
            The column.

        Returns
        -------
        FeatureLabel
            Its name alone if it has none.
        """
        return self.features.get(feature) or FeatureLabel(short_line(feature))

    def rounding(self, schema: Schema) -> dict[Hashable, float]:
        """To what :meth:`mcce.MCCE.finalize` is to round numbers.

        Parameters
        ----------
        schema
            The columns: ``explainer.schema_``.

        Returns
        -------
        dict
            Steps by column, of those columns for which the labels say one; 0 for columns whose
            values have words.

        Examples
        --------
        >>> labels = Labels.make({"features": {"salary": {"rounding": 100}}})
        >>> import pandas as pd
        >>> labels.rounding(Schema.learn(pd.DataFrame({"salary": [30, 50]})))
        {'salary': 100}
        """
        labels = {name: self.of(name) for name in schema.names}
        steps = {name: 0 if label.levels else label.rounding for name, label in labels.items()}
        return {name: step for name, step in steps.items() if step is not None}

    def say(self, key: str) -> str:
        """A sentence about the decision.

        Parameters
        ----------
        key
            Which one: ``"declined"``, ``"would"`` or another key of ``decision``.

        Returns
        -------
        str
        """
        return self.decision.get(key) or self.language.messages[f"letter.{key}"]

    def check(self, schema: Schema, frozen: Collection[Hashable] = ()) -> None:
        """Raise unless every feature that a decision can be blamed on has a reason in words.

        Parameters
        ----------
        schema
            The columns: ``explainer.schema_``.
        frozen
            Columns that rules hold fixed for everybody.

        Raises
        ------
        LabelsError
            If another mutable feature has none, or a level is written in another way than in the
            training data, such as ``True`` instead of ``true``. Labels without any features pass:
            then letters name columns and values.

        Examples
        --------
        >>> import pandas as pd
        >>> labels = Labels.make({"features": {"salary": {"reason": "Your salary is low."}}})
        >>> labels.check(Schema.learn(pd.DataFrame({"salary": [30, 50]})))
        """
        mutable = [schema.names[at] for at in schema.mutable if schema.names[at] not in frozen]
        lacking = [name for name in mutable if not self.of(name).has_reason]
        if self.features and lacking:
            hints = did_you_mean(lacking[0], [n for n in self.features if n not in schema.names])
            raise LabelsError(
                "Labels must say why each feature that can change may have led to the decision, "
                f"but these have no reason, or one for a single direction: {shorten(lacking, 300)}."
                f"{hints} Add a reason to each, such as reason = 'Your income is low.'"
            )
        for feature in schema.features:
            label = self.of(feature.name)
            levels = {*label.levels, *label.become, *label.being, *label.order}
            # Not for every number of a column, each time that letters are written.
            if levels:
                _check_spelling(feature, levels)


def level_key(value: Any) -> str:
    """A value as it stands in a labels file: whole numbers without decimal point, lower booleans.

    Examples
    --------
    >>> level_key(4.0), level_key(True), level_key("own")
    ('4', 'true', 'own')
    """
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def _check_keys(given: Any, known: Collection[str], where: str) -> None:
    """Raise unless something is a mapping with known keys."""
    listed = ", ".join(known)
    if not isinstance(given, Mapping):
        raise LabelsError(f"{where} must have the keys {listed}, got {shorten(given)}.")
    for key in given:
        if key not in known:
            raise LabelsError(
                f"{where} has no key {shorten(key, 60)}.{did_you_mean(key, known)} The keys are "
                f"{listed}."
            )


def _text(given: Any, where: str) -> str:
    return check_template(given, (), where)


def _follow(given: Any, where: str) -> str | Literal[False]:
    """A sentence without its full stop, which letters set where one belongs; or False."""
    return given is not False and check_template(given, CHANGE, where).rstrip(" .")


def _action(given: Any, where: str) -> str | dict[str, str]:
    if isinstance(given, Mapping):
        return _by_value(frozenset())(given, where)
    return check_template(given, {"after"}, where)


def _positive(given: Any, where: str) -> float:
    number = isinstance(given, (int, float)) and not isinstance(given, bool)
    if not number or not 0 < given < float("inf"):
        raise LabelsError(f"{where} must be a number above 0, got {shorten(given)}.")
    return given


def _flag(given: Any, where: str) -> bool:
    if not isinstance(given, bool):
        raise LabelsError(f"{where} must be true or false, got {shorten(given)}.")
    return given


def _order(given: Any, where: str) -> tuple[str, ...]:
    if not isinstance(given, (list, tuple)) or not given:
        raise LabelsError(f"{where} must list values, the least first, got {shorten(given)}.")
    return tuple(map(level_key, given))


def _units(given: Any, where: str) -> tuple[str, str]:
    """The unit of one and of any other number, as templates of {number}."""
    if not isinstance(given, Mapping):
        return (_unit(given, where),) * 2
    _check_keys(given, ("one", "other"), where)
    if len(given) != 2:
        raise LabelsError(f"{where} must have both keys, one and other, got {shorten(given)}.")
    return _unit(given["one"], f"{where}.one"), _unit(given["other"], f"{where}.other")


def _unit(given: Any, where: str) -> str:
    text = check_template(given, {"number"}, where)
    if "{number}" not in text:
        raise LabelsError(
            f"{where} must hold {{number}}, such as '{{number}} months', got {shorten(given)}."
        )
    return text.replace("{number} ", "{number}\N{NO-BREAK SPACE}")


def _by_direction(allowed: frozenset[str]) -> Check:
    """Templates by direction; a text alone is for any change."""

    def check(given: Any, where: str) -> dict[str, str]:
        given = {"change": given} if isinstance(given, str) else given
        _check_keys(given, DIRECTIONS, where)
        return {key: check_template(text, allowed, f"{where}.{key}") for key, text in given.items()}

    return check


def _by_value(allowed: frozenset[str]) -> Check:
    """Templates by value."""

    def check(given: Any, where: str) -> dict[str, str]:
        if not isinstance(given, Mapping):
            raise LabelsError(f"{where} must map values to words, got {shorten(given)}.")
        keys = {level_key(value): text for value, text in given.items()}
        return {
            key: check_template(text, allowed, f"{where}.{short_line(key, 40)}")
            for key, text in keys.items()
        }

    return check


# What each entry of a feature may be: takes what a file says and its place there.
_CHECKS: dict[str, Check] = {
    "name": _text,
    "title": _text,
    "help": _text,
    "unit": _units,
    "rounding": _positive,
    "scale": _positive,
    "grouping": _flag,
    "levels": _by_value(frozenset()),
    "order": _order,
    "action": _action,
    "verbs": _by_direction(CHANGE),
    "become": _by_value(CHANGE),
    "follow": _follow,
    "reason": _by_direction(OWN),
    "being": _by_value(OWN),
}


def _check_spelling(feature: Feature, levels: Collection[str]) -> None:
    """Raise if a level of the labels is one of the feature but for blanks and capitals."""
    known = {level_key(value) for value in feature.table.dropna().tolist()}
    folded = {level.strip().casefold(): level for level in known.difference(levels)}
    for level in levels:
        meant = folded.get(level.strip().casefold())
        if level not in known and meant is not None:
            raise LabelsError(
                f"Labels speak of the level {shorten(level)} of {shorten(feature.name)}, which is "
                f"{shorten(meant)} in the training data. Write it so."
            )
