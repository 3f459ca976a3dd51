"""Dask answers as one call does, on a cluster of two processes."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from bank_files import PREDICTOR
from counting_server import CountingServer
from engine_cases import (
    POISON,
    assert_mistakes_are_named,
    assert_same_answers,
    constraints,
    explainer,
    load_deadly,
    load_predictor,
    one_call,
    people,
    poisoned,
)
from mcce import MCCE
from mcce.cli import main
from mcce.errors import ReadError
from mcce.execution import explain
from mcce.execution.dask import open_pool
from mcce.predictors import Remote

dask = pytest.importorskip("dask", reason="Dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")
COMMAND = ["explain", "bank.mcce", "lake", "--key", "customer", "--engine", "dask"]


@pytest.fixture(scope="module")
def client(importable):
    with (
        # Busy machines take longer to start a worker than Dask waits.
        dask.config.set({"distributed.deploy.lost-worker-timeout": "5 minutes"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def answer(rows: pd.DataFrame, search: str = "paper", n_partitions: int = 3, **options):
    frame = dd.from_pandas(rows, npartitions=n_partitions, sort=False)
    return explain(explainer(search), frame, key="customer", constraints=constraints(), **options)


def test_answers_are_those_of_one_call(client):
    rows = people(24)

    found = answer(rows, "balanced", load_predictor=load_predictor).compute()

    assert_same_answers(found, one_call("balanced", rows))
    assert found["customer"].drop_duplicates().tolist() == rows["customer"].tolist()


def test_an_error_in_a_run_is_raised_as_it_is(client):
    # It is a ValueError, as is that of Dask without a client.
    with pytest.raises(ReadError, match="a cell"), open_pool(abs, None):
        raise ReadError("a cell")


def test_partitions_do_not_change_answers(client):
    rows = people(40)
    expected = one_call("paper", rows)

    for n_partitions in (1, 5):
        assert_same_answers(answer(rows, n_partitions=n_partitions).compute(), expected)


def test_workers_that_die_change_nothing(client, tmp_path):
    rows = people(60)

    found = answer(rows, n_partitions=6, load_predictor=load_deadly(tmp_path)).compute()

    assert_same_answers(found, one_call("paper", rows))
    assert len(list(tmp_path.iterdir())) == 2


def test_every_partition_has_the_columns_that_were_announced(client):
    rows = people(40)
    wanted = one_call("paper", rows).query("status == 'already desired'")["customer"]
    rows = rows.sort_values("customer", ignore_index=True)
    frame = dd.from_pandas(rows, npartitions=4, sort=False)
    some = frame[frame["customer"] < rows["customer"].iloc[15]]

    found = explain(explainer(), some, key="customer", load_predictor=load_predictor)
    accepted = answer(rows[rows["customer"].isin(wanted)], n_partitions=1)

    parts = [found.partitions[at].compute() for at in range(4)]
    assert [part["customer"].nunique() for part in parts] == [10, 5, 0, 0]
    assert all(part.dtypes.equals(found._meta.dtypes) for part in parts)
    table = accepted.compute()
    assert set(table["status"]) == {"already desired"}
    assert table.dtypes.equals(found._meta.dtypes)


def test_a_key_may_be_several_columns_or_the_index(client):
    rows = people(12).assign(branch=[f"b{at % 3}" for at in range(12)])
    frame = dd.from_pandas(rows, npartitions=2, sort=False)

    by_two = explain(explainer(), frame, key=["branch", "customer"]).compute()
    by_index = explain(explainer(), frame).compute()

    whose = by_two[["branch", "customer"]].drop_duplicates()
    assert whose.to_numpy().tolist() == rows[["branch", "customer"]].to_numpy().tolist()
    assert by_index["index"].drop_duplicates().tolist() == rows.index.tolist()


def test_mistakes_are_named(client):
    assert_mistakes_are_named(explain, lambda rows: dd.from_pandas(rows, npartitions=2))
    with pytest.raises(ReadError, match=f"Column 'CreditAmount' .*{POISON}"):
        answer(poisoned(20)).compute()


BANK = pd.DataFrame({"age": [25, 36, 47, 52] * 5, "salary": range(50, 90, 2)})
PEOPLE = BANK.assign(age=99)  # so that a predictor tells them from probes of the explainer


def in_threads(model, **options):
    """Answer people with four threads of this process."""
    frame = dd.from_pandas(PEOPLE, npartitions=4, sort=False)
    explain(model, frame, **options).compute(scheduler="threads", num_workers=4)


def test_threads_call_a_predictor_one_at_a_time():
    inside, most = [], []

    def score(frame):
        inside.append(1)
        most.append(len(inside))
        time.sleep(0.01)  # long enough that others would come in
        inside.pop()
        return frame["salary"]

    in_threads(MCCE(score, (70, 100), immutable=["age"], random_state=0).fit(BANK))

    assert len(most) > 4
    assert max(most) == 1


class Meeting:
    """A predictor that is done with people only once two threads are inside."""

    thread_safe = True

    def __init__(self):
        self.lock, self.n_inside, self.met = threading.Lock(), 0, threading.Event()

    def __reduce__(self):
        return Meeting, ()  # what cannot be sent to workers is refused

    def __call__(self, frame):
        if frame["age"].eq(99).any():
            with self.lock:
                self.n_inside += 1
                if self.n_inside == 2:
                    self.met.set()
            assert self.met.wait(120)
        return frame["salary"]


def test_threads_call_a_predictor_that_is_safe_at_the_same_time():
    meeting = Meeting()
    fitted = MCCE(lambda frame: frame["salary"], (70, 100), immutable=["age"], random_state=0)
    loaded = []

    in_threads(fitted.fit(BANK), load_predictor=lambda: loaded.append(meeting) or meeting)

    assert meeting.met.is_set()
    assert len(loaded) == 1


def test_threads_share_the_limits_of_a_server():
    def score(rows):
        return [row["salary"] for row in rows]

    with CountingServer(score, lambda _: time.sleep(0.02) or 200) as server:
        model = MCCE(Remote(server.url), (70, 100), immutable=["age"], random_state=0).fit(BANK)
        server.at_a_time.clear()
        load = partial(Remote, server.url, in_flight=2, batch_size=1)
        in_threads(model, load_predictor=load)

    assert len(server.at_a_time) > len(PEOPLE)
    assert max(server.at_a_time) <= 2


def test_a_cluster_that_stays_without_workers_is_an_error(here, capsys):
    with (
        dask.config.set({"distributed.scheduler.no-workers-timeout": "200ms"}),
        distributed.LocalCluster(n_workers=0, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster),
    ):
        assert main([*COMMAND, "--predictor", "scoring:score", "-o", "answers/"]) == PREDICTOR

    assert "had no worker for too long" in " ".join(capsys.readouterr().err.split())


def test_a_cluster_serves_commands_of_other_folders_and_edited_modules(client, here, monkeypatch):
    def write(name, offset):
        """A module like any other of its name; what it was imported as is left in a file."""
        text = (here / "scoring.py").read_text()
        left = f"from pathlib import Path\nPath(__file__).with_name('{name}').touch()\n"
        Path("mybox.py").write_text(f"{left}{text}# {'x' * offset}\n")

    def command(output):
        files = [str(here / name) for name in ("bank.mcce", "lake")]
        return ["explain", *files, *COMMAND[3:], "--predictor", "mybox:score", "-o", output]

    for folder in ("a", "b"):
        (here / folder).mkdir()
        monkeypatch.chdir(here / folder)
        write("first", 0)
        assert main(command("answers.parquet")) == 0
        Path("first").unlink()
    write("second", 100)
    # Another command, in a process of its own, on the same workers.
    ended = subprocess.run(
        [sys.executable, "-m", "mcce", *command("again.parquet")],
        env={**os.environ, "DASK_SCHEDULER_ADDRESS": client.scheduler.address},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 0, ended.stderr
    assert not Path("first").exists()
    answers = [path.read_bytes() for path in here.glob("*/*.parquet") if path.parent.name in "ab"]
    assert len(answers) == 3
    assert len(set(answers)) == 1
