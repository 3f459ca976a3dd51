"""Uploads: progress, files, and what becomes of those that fail, end or are forgotten."""

from __future__ import annotations

import io
import json
import os
import shutil
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from mcce import MCCE
from mcce.runtime.replacing import replacing
from mcce.serve import Limits, ServiceSettings, create_app
from mcce.serve.answering import Answerer
from mcce.serve.job_run import JobOptions
from mcce.serve.jobs import DEAD, Jobs
from served_bank import approval, customers, fitted, person, running

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")


@pytest.fixture(scope="module")
def explainer() -> Any:
    return fitted()


@pytest.fixture
def client(explainer: Any, tmp_path: Path) -> Any:
    settings = ServiceSettings(folder=tmp_path, limits=Limits(jobs=2, job_people=50))
    with running(create_app(explainer, settings)) as client:
        yield client


def upload(client: Any, content: bytes, file: str = "people.csv", **options: str) -> Any:
    return client.post("/jobs", files={"file": (file, content)}, data=options)


def csv_of(people: pd.DataFrame) -> bytes:
    return people.to_csv(index=False).encode()


def ended(client: Any, job: str) -> dict[str, Any]:
    for _ in range(400):
        state: dict[str, Any] = client.get(f"/jobs/{job}").json()
        if state["state"] in ("done", "failed"):
            return state
        time.sleep(0.05)
    pytest.fail("the job does not end")


def test_an_upload_gives_the_answers_of_the_library_and_a_report(
    client: Any, explainer: Any, tmp_path: Path
) -> None:
    people = customers(12).assign(Number=[f"C-{at}" for at in range(12)])

    begun = upload(client, csv_of(people), n_counterfactuals="1")
    state = ended(client, begun.json()["id"])
    job = f"/jobs/{begun.json()['id']}"
    answers = pd.read_csv(io.BytesIO(client.get(f"{job}/answers.csv").content))
    report = client.get(f"{job}/report.html")

    assert begun.status_code == 202
    assert state["state"] == "done", state
    assert state["done"] == state["total"] == 12
    assert "answers.csv" in state["files"]
    result = explainer.explain(people.drop(columns="Number"))
    first = answers[answers["rank"] == 1]
    assert list(first["factual"]) == list(result.people.index[result.people.status == "answered"])
    assert report.headers["content-disposition"].startswith("attachment")
    assert "default-src 'none'" in report.headers["content-security-policy"]
    assert client.delete(job).status_code == 204
    assert client.get(job).status_code == 404
    assert list(tmp_path.iterdir()) == []


def test_an_upload_may_name_people_and_have_rules(client: Any) -> None:
    people = customers(5).assign(Number=["<b>x</b>"] * 5)
    rules = json.dumps([{"frozen": ["salary"]}])

    begun = upload(client, csv_of(people), rules=rules, name="Number", language="nb")
    state = ended(client, begun.json()["id"])

    assert state["state"] == "done", state
    report = client.get(f"/jobs/{begun.json()['id']}/report.html").text
    assert "<b>x</b>" not in report


@pytest.mark.parametrize(
    ("content", "name", "message"),
    [
        (b"", "people.csv", "is empty"),
        (b"a,b\n1,2\n", "people.csv", "lacks the columns"),
        (b"age\n1", "people.txt", "format"),
        (b"age\n1", "people.csv.gz", "not compressed"),
        (b"no parquet", "people.parquet", "people.parquet"),
        (b"\xff\xfe\x00", "people.csv", "UTF-8"),
    ],
)
def test_a_file_that_is_no_table_of_people_is_refused(
    client: Any, tmp_path: Path, content: bytes, name: str, message: str
) -> None:
    answer = upload(client, content, name)

    assert answer.status_code == 422, answer.text
    assert message in answer.json()["detail"][0]["msg"]
    assert str(tmp_path) not in answer.text
    assert list(tmp_path.iterdir()) == []


def test_a_cell_that_does_not_fit_ends_the_job_with_its_place(client: Any, tmp_path: Path) -> None:
    people = customers(3).astype(object)
    people.loc[1, "age"] = "secret"

    state = ended(client, upload(client, csv_of(people)).json()["id"])

    assert state["state"] == "failed"
    assert "row 2" in state["error"]
    assert "secret" not in state["error"]
    assert str(tmp_path) not in state["error"]


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
def test_a_job_ends_whatever_its_predictor_raises(
    error: type[BaseException], tmp_path: Path
) -> None:
    raises: list[bool] = []

    def predictor(rows: pd.DataFrame) -> Any:
        if raises:
            raise error("salary 40000")
        return approval(rows)

    app = create_app(fitted(predictor), ServiceSettings(folder=tmp_path))
    with running(app) as client:
        raises.append(True)
        job = upload(client, csv_of(customers(5))).json()["id"]
        state = ended(client, job)

        assert state["state"] == "failed"
        assert error.__name__ in state["error"]
        assert "40000" not in state["error"]
        assert not list((tmp_path / job).glob("upload*"))


def test_too_many_people_and_too_many_jobs_are_refused(client: Any) -> None:
    state = ended(client, upload(client, csv_of(customers(60))).json()["id"])
    upload(client, csv_of(customers(2)))
    third = upload(client, csv_of(customers(2)))

    assert state["state"] == "failed"
    assert "at most 50 people" in state["error"]
    assert third.status_code == 429
    assert third.headers["retry-after"]


@pytest.mark.parametrize("options", [{"rules": "{"}, {"search": "x"}, {"more": "1"}])
def test_options_that_do_not_fit_are_refused(client: Any, options: dict[str, str]) -> None:
    answer = upload(client, csv_of(customers(2)), **options)

    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][1] in options


@pytest.mark.parametrize("job", ["x", "A" * 22, "%2e%2e%2fsecret"])
def test_a_job_that_there_is_not_is_not_found(client: Any, job: str) -> None:
    assert client.get(f"/jobs/{job}").status_code == 404
    assert client.get(f"/jobs/{job}/answers.csv").status_code == 404
    assert client.delete(f"/jobs/{job}").status_code in (404, 405)


def test_a_file_that_grows_when_it_is_read_is_refused(explainer: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    content = io.BytesIO()
    rows = pd.concat([customers()] * 50)
    how = {"index": False, "compression": "zstd", "use_dictionary": False}
    rows.assign(note="x" * 1000).to_parquet(content, **how)
    limits = Limits(upload_bytes=400_000)
    settings = ServiceSettings(folder=tmp_path, limits=limits)
    assert len(content.getvalue()) < limits.upload_bytes
    with running(create_app(explainer, settings)) as client:
        answer = upload(client, content.getvalue(), "people.parquet")

    assert answer.status_code == 422
    assert "once it is uncompressed" in answer.json()["detail"][0]["msg"]
    assert list(tmp_path.iterdir()) == []


def test_a_request_without_a_file_is_refused(client: Any) -> None:
    assert client.post("/jobs", data={"file": "x"}).status_code == 415
    assert client.post("/jobs", files={"other": ("a.csv", b"x")}).status_code == 422
    for content in (b"", b"--x\r\nnone--x--\r\n", b"--x\r\n"):
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        assert client.post("/jobs", content=content, headers=headers).status_code == 422


def test_a_removed_job_stops_and_the_service_leaves_nothing(tmp_path: Path) -> None:
    calls, go_on = [], threading.Event()

    def slow(rows: Any) -> Any:
        calls.append(len(rows))
        go_on.wait(0.1)
        return approval(rows)

    settings = ServiceSettings(folder=tmp_path)
    with running(create_app(fitted(slow), settings)) as client:
        job = upload(client, csv_of(customers(40))).json()["id"]
        time.sleep(0.5)
        client.delete(f"/jobs/{job}")
        time.sleep(0.5)
        n_calls = len(calls)
        time.sleep(0.5)
        assert len(calls) <= n_calls + 1
        assert client.post("/score", json={"people": [person()]}).status_code == 200

    assert list(tmp_path.iterdir()) == []


def test_a_job_is_removed_though_a_worker_writes_its_state(explainer: Any, tmp_path: Path) -> None:
    jobs = Jobs(Answerer.make(explainer), ServiceSettings(folder=tmp_path))
    folder = tmp_path / ("A" * 22)

    def write() -> None:
        with suppress(FileNotFoundError):
            while True:
                with replacing(folder / "state.json") as stream:
                    stream.write(b"{}")

    for _ in range(50):
        folder.mkdir()
        worker = threading.Thread(target=write, daemon=True)
        worker.start()
        jobs.remove(folder.name)
        worker.join(5)

        assert not worker.is_alive()
        assert list(tmp_path.iterdir()) == []


def test_an_upload_goes_after_its_time_though_nobody_sends_another(
    explainer: Any, tmp_path: Path
) -> None:
    killed = tmp_path / ("A" * 22)
    killed.mkdir()
    limits = Limits(kept_seconds=2.0)
    with running(create_app(explainer, ServiceSettings(folder=tmp_path, limits=limits))) as client:
        job = upload(client, csv_of(customers(2))).json()["id"]
        before = {folder.name for folder in tmp_path.iterdir()}
        for _ in range(100):
            if not list(tmp_path.iterdir()):
                break
            time.sleep(0.1)

    assert before == {job, killed.name}
    assert list(tmp_path.iterdir()) == []


def test_columns_that_have_names_of_ours_keep_them(tmp_path: Path) -> None:
    def score(rows: Any) -> Any:
        return approval(rows.rename(columns={"rank": "salary"}))

    people = customers().rename(columns={"salary": "rank"})
    explainer = MCCE(score, (0.5, 1.0), immutable=["age"], random_state=0).fit(people)
    with running(create_app(explainer, ServiceSettings(folder=tmp_path))) as client:
        job = upload(client, csv_of(people.head(5))).json()["id"]
        assert ended(client, job)["state"] == "done"
        table = pd.read_csv(io.BytesIO(client.get(f"/jobs/{job}/answers.csv").content))

    assert {"mcce_rank", "rank"} <= set(table.columns)


class Gate:
    """A black box that waits for people who are 33 while it is closed."""

    def __init__(self) -> None:
        self.open = threading.Event()
        self.open.set()

    def __call__(self, rows: Any) -> Any:
        if (rows["age"] == 33).any():
            self.open.wait(20)
        return approval(rows)


@pytest.fixture
def gate() -> Any:
    made = Gate()
    yield made
    made.open.set()


def jobs_of(predictor: Any, folder: Path, **limits: Any) -> Jobs:
    settings = ServiceSettings(folder=folder, limits=Limits(**limits))
    made = Jobs(Answerer.make(fitted(predictor)), settings)
    if isinstance(predictor, Gate):
        predictor.open.clear()
    return made


def add(jobs: Jobs, **cells: Any) -> str:
    content = csv_of(customers(2).assign(**cells))
    return jobs.add("people.csv", io.BytesIO(content), JobOptions())


def state_of(jobs: Jobs, job: str, *wanted: str) -> dict[str, Any]:
    for _ in range(400):
        jobs.tend()
        state = jobs.state(job)
        if state["state"] in wanted:
            return state
        time.sleep(0.02)
    pytest.fail(f"the job stays {state}")


def test_removed_jobs_leave_the_queue(gate: Any, tmp_path: Path) -> None:
    jobs = jobs_of(gate, tmp_path, jobs=3)
    hanging = add(jobs, age=33)
    while jobs.engine.n_waiting:
        time.sleep(0.01)

    for _ in range(4):
        jobs.remove(add(jobs))
    # As another process removes one.
    shutil.rmtree(tmp_path / add(jobs))
    last = [add(jobs), add(jobs)]

    assert jobs.engine.n_waiting == 2
    gate.open.set()
    for job in (hanging, *last):
        assert state_of(jobs, job, "done", "failed")["state"] == "done"
    jobs.close()


def test_a_job_that_hangs_fails_in_time_and_others_are_answered(gate: Any, tmp_path: Path) -> None:
    jobs = jobs_of(gate, tmp_path, job_seconds=3)
    hanging, other = add(jobs, age=33), add(jobs)

    assert "longer than 3 s" in state_of(jobs, hanging, "failed")["error"]
    assert state_of(jobs, other, "done", "failed")["state"] == "done"
    assert not list((tmp_path / hanging).glob("upload*"))
    jobs.close()


def test_a_job_that_waits_is_not_forgotten(gate: Any, tmp_path: Path) -> None:
    jobs = jobs_of(gate, tmp_path, kept_seconds=0.4)
    hanging, waiting = add(jobs, age=33), add(jobs)

    for _ in range(8):
        time.sleep(0.1)
        jobs.tend()

    assert jobs.state(hanging)["state"] == "running"
    assert jobs.state(waiting)["state"] == "waiting"
    jobs.close()


def test_a_job_of_a_process_that_was_killed_says_that_it_failed(gate: Any, tmp_path: Path) -> None:
    other, killed = jobs_of(approval, tmp_path), jobs_of(gate, tmp_path)
    job = add(killed, age=33)
    state_of(killed, job, "running")
    other.tend()
    before = other.state(job)["state"]
    long_ago = time.time() - 2 * DEAD
    os.utime(tmp_path / job / "state.json", (long_ago, long_ago))

    other.tend()

    assert before == "running"
    assert other.state(job)["state"] == "failed"
    assert not list((tmp_path / job).glob("upload*"))
