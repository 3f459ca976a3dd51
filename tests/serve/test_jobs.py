"""Uploads: progress, files, and what becomes of those that fail, end or are forgotten."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import time

import pandas as pd
import pytest

from mcce import MCCE
from mcce.serve import ServiceLimits, ServiceSettings, create_app
from served_bank import FAILING, HELD, approval, customers, declined, fitted, person, running, until

pytestmark = pytest.mark.filterwarnings("ignore::mcce.McceWarning")

NASTY = '<img src=x onerror=alert(1)>, "quoted"\n& so on'


@pytest.fixture(scope="module")
def service(explainer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("uploads")
    settings = ServiceSettings(folder=folder, limits=ServiceLimits(jobs=2, job_people=50))
    with running(create_app(explainer, settings)) as client:
        yield client, folder


@pytest.fixture
def uploads(service):
    """A service that keeps few uploads and has none, and its folder."""
    client, folder = service
    yield client, folder
    for job in folder.iterdir():
        client.delete(f"/jobs/{job.name}")


def upload(client, content, file="people.csv", **options):
    return client.post("/jobs", files={"file": (file, content)}, data=options)


def csv_of(people):
    return people.to_csv(index=False).encode()


def add(client, **cells):
    """Upload two people; the name of the job."""
    begun = upload(client, csv_of(declined(2).assign(**cells)))
    assert begun.status_code == 202, begun.text
    return begun.json()["id"]


def state_of(client, job, *wanted):
    """The state of a job, once it is one of those."""

    def found():
        state = client.get(f"/jobs/{job}").json()
        return state if state["state"] in wanted else None

    return until(found)


def ended(client, job):
    return state_of(client, job, "done", "failed")


def table_of(client, job):
    return pd.read_csv(io.BytesIO(client.get(f"/jobs/{job}/answers.csv").content))


def test_an_upload_gives_the_answers_of_the_library_and_a_report(uploads, explainer):
    client, folder = uploads
    people = declined(12).assign(Number=[f"C-{at}" for at in range(12)])

    begun = upload(client, csv_of(people), n_counterfactuals="1")
    state = ended(client, begun.json()["id"])
    job = f"/jobs/{begun.json()['id']}"
    answers = table_of(client, begun.json()["id"])
    report = client.get(f"{job}/report.html")

    assert begun.status_code == 202
    assert state["state"] == "done", state
    assert state["done"] == state["total"] == 12
    result = explainer.finalize(explainer.explain(people.drop(columns="Number")))
    best = result.frame.xs(1, level="rank")
    first = answers[answers["rank"] == 1].set_index("factual")
    assert list(first.index) == list(best.index) == list(range(12))
    pd.testing.assert_frame_equal(
        first[best.columns], best, check_dtype=False, check_names=False, check_index_type=False
    )
    assert report.headers["content-disposition"].startswith("attachment")
    assert "default-src 'none'" in report.headers["content-security-policy"]
    assert client.delete(job).status_code == 204
    assert client.get(job).status_code == 404
    assert list(folder.iterdir()) == []


def test_a_file_of_semicolons_is_read_and_who_got_nothing_is_listed(uploads):
    client, _ = uploads
    people = pd.concat([declined(12), customers().iloc[[-1]].assign(age=30, salary=90_000)])
    people = people.assign(Number=[f"C-{at}" for at in range(13)])
    held = json.dumps([{"frozen": ["salary", "savings", "owns <b>home</b>"]}])

    content = people.to_csv(index=False, sep=";", decimal=",").encode()
    begun = upload(client, content, rules=held, name="Number")
    summary = ended(client, begun.json()["id"])["summary"]

    assert summary["counts"] == {"no answer": 12, "already desired": 1}
    # The first ten.
    assert [one["name"] for one in summary["without"]] == [f"C-{at}" for at in range(10)]
    assert summary["without"][0]["row"] == 1
    assert {one["reason_kind"] for one in summary["without"]} <= {"proven", "ruled_out", "refused"}


def test_names_and_rules_of_an_upload_are_kept(uploads):
    client, _ = uploads
    people = declined(5).assign(Number=[NASTY] * 5)
    rules = json.dumps([{"frozen": ["salary"]}])

    begun = upload(client, csv_of(people), rules=rules, name="Number", language="nb")
    job = begun.json()["id"]
    state = ended(client, job)
    answers, report = table_of(client, job), client.get(f"/jobs/{job}/report.html").text

    assert state["state"] == "done", state
    assert set(answers["Number"].dropna()) == {NASTY}
    assert "<img" not in report
    assert "onerror=alert(1)" in report
    assert answers["rank"].isna().all()


def test_a_file_that_is_no_table_of_people_is_refused(uploads):
    client, folder = uploads
    cases = [
        (b"", "people.csv", "is empty"),
        (b"a,b\n1,2\n", "people.csv", "lacks the columns"),
        (b"age\n1", "people.txt", "format"),
        (b"age\n1", "people.csv.gz", "not compressed"),
        (b"no parquet", "people.parquet", "people.parquet"),
        (b"\xff\xfe\x00", "people.csv", "UTF-8"),
        (csv_of(declined(0)), "people.csv", "no people"),
        (csv_of(declined(2)) + b"1,2\n", "people.csv", "Row 3"),
        (b'{"age": 1, "age": 2}', "people.jsonl", "a key twice"),
    ]
    for content, name, message in cases:
        answer = upload(client, content, name)

        assert answer.status_code == 422, name
        assert message in answer.json()["detail"][0]["msg"]
        assert str(folder) not in answer.text
    assert list(folder.iterdir()) == []


def test_a_request_that_does_not_fit_is_refused(uploads):
    client, _ = uploads
    for options in ({"rules": "{"}, {"search": "x"}, {"more": "1"}):
        answer = upload(client, csv_of(declined(2)), **options)
        assert answer.status_code == 422
        assert answer.json()["detail"][0]["loc"][1] in options
    assert client.post("/jobs", data={"file": "x"}).status_code == 415
    assert client.post("/jobs", files={"other": ("a.csv", b"x")}).status_code == 422
    for content in (b"", b"--x\r\nnone--x--\r\n", b"--x\r\n"):
        headers = {"Content-Type": "multipart/form-data; boundary=x"}
        assert client.post("/jobs", content=content, headers=headers).status_code == 422
    for job in ("x", "A" * 22, "%2e%2e%2fsecret"):
        assert client.get(f"/jobs/{job}").status_code == 404
        assert client.get(f"/jobs/{job}/answers.csv").status_code == 404
        assert client.delete(f"/jobs/{job}").status_code in (404, 405)


@pytest.mark.parametrize("ending", ["parquet", "pq"])
def test_a_file_that_grows_when_it_is_read_is_refused(explainer, tmp_path, ending):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    content = io.BytesIO()
    rows = pd.concat([customers()] * 50)
    how = {"index": False, "compression": "zstd", "use_dictionary": False}
    rows.assign(note="x" * 1000).to_parquet(content, **how)
    limits = ServiceLimits(upload_bytes=400_000)
    assert len(content.getvalue()) < limits.upload_bytes
    settings = ServiceSettings(folder=tmp_path, limits=limits)
    with running(create_app(explainer, settings)) as client:
        answer = upload(client, content.getvalue(), f"people.{ending}")
        larger = upload(client, b"x" * 400_001)

    assert answer.status_code == 422
    assert "once it is uncompressed" in answer.json()["detail"][0]["msg"]
    assert larger.status_code == 413
    assert list(tmp_path.iterdir()) == []


def test_a_cell_that_does_not_fit_ends_the_job_with_its_place(uploads):
    client, folder = uploads
    people = declined(3).astype(object)
    people.loc[1, "age"] = "secret"

    state = ended(client, upload(client, csv_of(people)).json()["id"])

    assert state["state"] == "failed"
    assert "row 2" in state["error"]
    assert "secret" not in state["error"]
    assert str(folder) not in state["error"]


def test_too_many_people_and_too_many_jobs_are_refused(uploads):
    client, _ = uploads
    larger = upload(client, csv_of(declined(51)))
    whole = ended(client, upload(client, csv_of(declined(50))).json()["id"])
    add(client)
    third = upload(client, csv_of(declined(2)))

    # Before any work starts, and nothing of it is kept.
    assert larger.status_code == 422
    assert "at most 50 people" in larger.json()["detail"][0]["msg"]
    assert whole["state"] == "done"
    assert third.status_code == 429
    assert third.headers["retry-after"]


def test_a_job_ends_whatever_its_predictor_raises(gate, tmp_path):
    app = create_app(fitted(gate), ServiceSettings(folder=tmp_path))
    with running(app) as client:
        for error in (SystemExit, KeyboardInterrupt, ValueError):

            def broken(rows, error=error):
                raise error("salary 40000")

            gate.broken = broken
            job = add(client, age=FAILING)
            state = ended(client, job)

            assert state["state"] == "failed"
            assert error.__name__ in state["error"]
            assert "40000" not in state["error"]
            assert not list((tmp_path / job).glob("upload*"))


def test_a_removed_job_stops_and_the_service_leaves_nothing(gate, tmp_path):
    with running(create_app(fitted(gate), ServiceSettings(folder=tmp_path))) as client:
        gate.close()
        job = add(client, age=HELD)
        assert gate.entered.wait(120)
        client.delete(f"/jobs/{job}")
        gate.opened.set()
        other = add(client)
        assert ended(client, other)["state"] == "done"
        assert client.post("/score", json={"people": [person()]}).status_code == 200
        client.delete(f"/jobs/{other}")

    # A job that goes on asks more than once.
    assert gate.n_calls(HELD) == 1 < gate.n_calls(int(declined(1)["age"].iloc[0]))
    assert list(tmp_path.iterdir()) == []


def test_removed_jobs_leave_the_queue(gate, tmp_path):
    settings = ServiceSettings(folder=tmp_path, limits=ServiceLimits(jobs=3))
    with running(create_app(fitted(gate), settings)) as client:
        gate.close()
        jobs = [add(client, age=HELD)]
        assert gate.entered.wait(120)
        for _ in range(4):
            client.delete(f"/jobs/{add(client)}")
        # As another process removes one.
        shutil.rmtree(tmp_path / add(client))
        jobs += [add(client), add(client)]
        states = [client.get(f"/jobs/{job}").json()["state"] for job in jobs]
        gate.opened.set()
        in_the_end = [ended(client, job)["state"] for job in jobs]

    assert states == ["running", "waiting", "waiting"]
    assert in_the_end == ["done"] * 3


def make_old(folder, pid=None):
    """What a process that was killed long ago left in a folder of uploads."""
    folder.mkdir()
    if pid is not None:
        state = {"state": "running", "done": 0, "total": 9, "error": None}
        state |= {"files": [], "summary": None, "pid": pid}
        (folder / "state.json").write_text(json.dumps(state))
        (folder / "upload.csv").write_text("")
    long_ago = time.time() - 300
    os.utime(folder, (long_ago, long_ago))
    return folder


@pytest.mark.slow
def test_uploads_go_after_their_time_but_not_while_they_wait(gate, tmp_path):
    settings = ServiceSettings(folder=tmp_path, limits=ServiceLimits(kept_seconds=0.5))
    with running(create_app(fitted(gate), settings)) as client:
        gate.close()
        jobs = [add(client, age=HELD), add(client)]
        assert gate.entered.wait(120)
        # Each time that the service forgets something old, it has looked at these jobs as well.
        for _ in range(3):
            old = make_old(tmp_path / ("A" * 22))
            until(lambda old=old: not old.exists())
        states = [client.get(f"/jobs/{job}").json()["state"] for job in jobs]
        gate.opened.set()
        # Nobody sends another.
        until(lambda: not list(tmp_path.iterdir()))

    assert states == ["running", "waiting"]


@pytest.mark.slow
def test_a_job_that_hangs_fails_in_time_and_others_are_answered(gate, tmp_path):
    settings = ServiceSettings(folder=tmp_path, limits=ServiceLimits(job_seconds=15))
    with running(create_app(fitted(gate), settings)) as client:
        gate.close()
        hanging, other = add(client, age=HELD), add(client)

        assert "longer than 15 s" in state_of(client, hanging, "failed")["error"]
        assert ended(client, other)["state"] == "done"
        assert not list((tmp_path / hanging).glob("upload*"))
        gate.opened.set()


@pytest.mark.skipif(os.name != "posix", reason="whether a process lives is asked by a signal")
def test_a_job_of_a_process_that_was_killed_says_that_it_failed(explainer, tmp_path):
    other = subprocess.Popen([sys.executable, "-c", ""])
    other.wait()
    # Also one that had the number that this process has now.
    pids = {"A": other.pid, "B": os.getpid()}
    killed = [make_old(tmp_path / (name * 22), pid) for name, pid in pids.items()]
    with running(create_app(explainer, ServiceSettings(folder=tmp_path))) as client:
        job = add(client)
        states = [client.get(f"/jobs/{one.name}").json() for one in killed]
        assert ended(client, job)["state"] == "done"

    for one, state in zip(killed, states, strict=True):
        assert state["state"] == "failed"
        assert "send it again" in state["error"]
        assert not list(one.glob("upload*"))


def test_columns_that_have_names_of_ours_keep_them(tmp_path):
    def score(rows):
        return approval(rows.rename(columns={"rank": "salary"}))

    people = customers().rename(columns={"salary": "rank"})
    explainer = MCCE(score, (0.5, 1.0), immutable=["age"], random_state=0).fit(people)
    with running(create_app(explainer, ServiceSettings(folder=tmp_path))) as client:
        job = upload(client, csv_of(people.head(5))).json()["id"]
        assert ended(client, job)["state"] == "done"
        table = table_of(client, job)

    assert {"mcce_rank", "rank"} <= set(table.columns)
