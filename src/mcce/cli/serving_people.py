"""Whom ``mcce serve`` offers to choose from: the people of a file, or those of the demo."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import ParameterError, shorten
from ..explainer import MCCE
from ..files.people import People, PeopleReader
from ..files.sources import find_format, iterate, open_source
from ..report.labels import Labels
from ..report.language import languages
from .demo import IMMUTABLE, N_TRAIN, SEED, text_dtypes, train
from .options import read_dtypes
from .running import PeopleFile

if TYPE_CHECKING:
    from ..serve.settings import Directory

MOST_PEOPLE, BLOCK = 100_000, 5_000


def read_directory(explainer: MCCE, file: PeopleFile) -> Directory:
    """The people of a file, with their names and scores."""
    from ..serve.settings import DirectoryMaker

    kind = find_format(file.path, file.format)
    maker = DirectoryMaker(explainer)
    with open_source(file.path, kind, file.delimiter) as source:
        reader = PeopleReader.plan(
            file.path,
            source,
            explainer.schema_,
            keep=file.keep or (),
            dtypes=read_dtypes(file.dtypes),
        )
        for block in iterate(file.path, source, reader.columns, BLOCK):
            if block.first + block.n_rows > MOST_PEOPLE:
                raise ParameterError(
                    f"The page offers at most {MOST_PEOPLE:,} people to choose from, but "
                    f"{shorten(file.path, 200)} has more. Leave some out."
                )
            people = reader.read(block)
            maker.add(people.groups, list(_names(people)))
    made: Directory = maker.made()
    return made


def _names(people: People) -> Iterator[str]:
    """What people are called: a cell of theirs, or the number of their row from 1."""
    for row in range(people.n_rows):
        cells = [kept[row] for kept in people.kept.values()]
        named = cells and cells[0] is not None
        yield str(cells[0]) if named else f"#{people.first + row + 1}"


def demo_parts() -> tuple[MCCE, dict[str, Any]]:
    """An explainer of the bundled German Credit data, and settings that go with it."""
    from ..datasets import load_german_credit
    from ..serve.settings import DirectoryMaker

    german = load_german_credit()
    rows = german.features.astype(text_dtypes(german.features))
    good = german.target == "good"
    predictor = train(rows[:N_TRAIN], good[:N_TRAIN])
    explainer = MCCE(
        predictor,
        immutable=IMMUTABLE,
        search="balanced",
        n_counterfactuals=3,
        diversity=0.8,
        random_state=SEED,
    ).fit(rows[:N_TRAIN])
    people = rows[N_TRAIN:]
    people = people.iloc[np.argsort(predictor.predict(people), kind="stable")]
    maker = DirectoryMaker(explainer)
    maker.add([(np.arange(len(people)), people)], [f"#{label + 1}" for label in people.index])
    codes = ["en", *(code for code in languages() if code != "en")]
    return explainer, {
        "name": "german",
        "title": "German Credit",
        "labels": {code: Labels.bundled("german", code) for code in codes},
        "people": maker.made(),
    }
