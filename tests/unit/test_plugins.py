"""Generators and distances of other packages: by name if installed, and what to install if not."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pandas as pd
import pytest

from mcce import MCCE, Gower, MissingExtraError, ParameterError, TreeChain, load, plugins
from searches import assert_same, explain

TRAIN = pd.DataFrame({"age": [30, 40] * 20, "salary": range(40)})


class Shallow(TreeChain):
    """A generator of another package."""


class Far(Gower):
    """A distance of another package."""

    title = "far"


def salary(frame):
    return frame["salary"]


def install(monkeypatch, **classes):
    """Let packages offer classes by name; those that are installed offer none."""
    points = {
        name: EntryPoint(name, f"{kind.__module__}:{kind.__qualname__}", "mcce.generators")
        for name, kind in classes.items()
    }
    kinds = dict(classes)
    monkeypatch.setattr(EntryPoint, "load", lambda point: kinds[point.name])
    groups = {"mcce.generators": Shallow, "mcce.distances": Far}
    monkeypatch.setattr(
        plugins,
        "_entry_points",
        lambda group: {n: p for n, p in points.items() if kinds[n] is groups[group]},
    )


@pytest.mark.parametrize(
    "given",
    [{"generator": "ctgan"}, {"generator": "copula"}, {"distance": "heom"}],
    ids=["ctgan", "copula", "heom"],
)
def test_without_its_package_a_name_says_what_to_install(monkeypatch, given):
    install(monkeypatch)

    with pytest.raises(MissingExtraError, match=r'mcce-lab, .* pip install "./lab"'):
        MCCE(salary, (30, 40), **given).fit(TRAIN)


@pytest.mark.parametrize(
    ("name", "message"),
    [("copula", r'mcce-lab, .* pip install "./lab"'), ("shallow", "needs gone_package, which")],
)
def test_metadata_without_their_package_say_what_to_install(monkeypatch, name, message):
    point = EntryPoint(name, "gone_package.generators:Shallow", "mcce.generators")
    monkeypatch.setattr(plugins, "_entry_points", lambda group: {name: point})

    with pytest.raises(MissingExtraError, match=message):
        MCCE(salary, (30, 40), generator=name).fit(TRAIN)


def test_a_name_that_nobody_offers_is_refused(monkeypatch):
    install(monkeypatch)

    with pytest.raises(ParameterError, match="generator must be one of"):
        MCCE(salary, (30, 40), generator="shallow").fit(TRAIN)


def test_what_a_package_offers_is_used_and_loaded_by_its_name(monkeypatch, tmp_path):
    install(monkeypatch, shallow=Shallow, far=Far)
    explainer = MCCE(salary, (30, 40), generator="shallow", distance="far", random_state=0)
    people = TRAIN.head(3)

    explainer.fit(TRAIN).save(tmp_path / "explainer.mcce")
    loaded = load(tmp_path / "explainer.mcce", salary)

    assert type(loaded.generator_) is Shallow
    assert (loaded.generator, loaded.distance) == ("shallow", "far")
    assert_same(explain(loaded, people), explain(explainer, people))


def test_a_file_needs_the_package_of_its_generator(monkeypatch, tmp_path):
    install(monkeypatch, shallow=Shallow)
    MCCE(salary, (30, 40), generator="shallow").fit(TRAIN).save(tmp_path / "explainer.mcce")
    install(monkeypatch)

    with pytest.raises(Exception, match="shallow"):
        load(tmp_path / "explainer.mcce", salary)
