"""Workers are killed, and nothing is lost, comes twice or changes."""

from __future__ import annotations

import pytest

LIBRARIES = {
    "dask-frame": "distributed",
    "dask-tasks": "distributed",
    "ray-frame": "ray.data",
    "ray-tasks": "ray.data",
}
# Ray warns of its own defaults.
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::DeprecationWarning:ray")]


@pytest.mark.parametrize("way", LIBRARIES)
def test_workers_that_are_killed_change_nothing(importable, way):
    pytest.importorskip(LIBRARIES[way], reason=f"{way} needs {LIBRARIES[way]}")
    from kill_workers import trial

    equal, n_killed = trial(way, n_kills=2, n_partitions=16, seed=4)

    assert equal
    assert n_killed == 2
