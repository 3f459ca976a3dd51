"""Uploads: the people of a file, answered in the background, with progress and files to fetch.

Everything about a job stands in a folder of its own, so that several processes can share them: who
asks for its state reads a file, and who removes the folder ends the job. The process that works on
a job touches that file now and then; once it does not, the others say that the job failed.

Always true: names of jobs cannot be guessed; jobs are few, and go after a time.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import tempfile
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from ..errors import McceError, ParameterError, ReadError, shorten
from ..files.sources import find_format
from ..kernels import CancelledError, ExpiredError
from ..runtime.replacing import replacing
from .answering import Answerer
from .engine import Engine, EngineLimits, Task
from .job_run import FILES, JobOptions, check_upload, run_job
from .refusals import RefusalError, refusal_of
from .settings import ServiceSettings

JOB_ID = re.compile(r"[A-Za-z0-9_-]{22}")
STATE, UPLOAD = "state.json", "upload"
# Progress is written at most so often, in seconds.
PERIOD = 0.3
# Seconds between two signs of life of a job, and after which it counts as dead without one.
BEAT, DEAD = 5.0, 60.0


@dataclass(frozen=True)
class JobState:
    """How far a job is."""

    state: str = "waiting"
    done: int = 0
    total: int | None = None
    error: str | None = None
    files: list[str] = field(default_factory=list)


class RemovedError(Exception):
    """The job was removed while it ran."""


class Jobs:
    """The uploads of a service."""

    def __init__(self, answerer: Answerer, settings: ServiceSettings) -> None:
        self.answerer, self.settings, self.limits = answerer, settings, settings.limits
        self.folder = settings.folder or Path(tempfile.mkdtemp(prefix="mcce-"))
        self._clean = None
        if settings.folder is None:
            self._clean = weakref.finalize(self, shutil.rmtree, self.folder, ignore_errors=True)
        seconds = self.limits.job_seconds
        # Those of this process that are not done, and when they were begun.
        self._tasks: dict[str, Task] = {}
        self._begun: dict[str, float] = {}
        self.engine = Engine(EngineLimits(1, self.limits.jobs, 1, seconds, spare=1))

    def add(self, name: str, stream: BinaryIO, options: JobOptions) -> str:
        """Begin a job."""
        format_ = _format(name)
        self.tend()
        if len(self._folders()) >= self.limits.jobs:
            refusal = RefusalError.of(429, "too many uploads are kept: remove some", "busy")
            refusal.headers["Retry-After"] = "60"
            raise refusal
        job = secrets.token_urlsafe(16)
        folder = self.folder / job
        folder.mkdir(mode=0o700)
        path = folder / f"{UPLOAD}.{format_}"
        run = partial(self._run, folder, path, name, options)
        task = Task(lambda given: [run()], None)
        try:
            with path.open("xb") as file:
                shutil.copyfileobj(stream, file)
            with _about(path, name):
                check_upload(str(path), self.answerer, options, self.limits.upload_bytes)
            self._write(folder, JobState())
            self.engine.submit(task)
        except BaseException:
            _forget(folder)
            raise
        self._tasks[job] = task
        return job

    def state(self, job: str) -> dict[str, Any]:
        """How far a job is."""
        try:
            content: dict[str, Any] = json.loads((self._find(job) / STATE).read_bytes())
        except (OSError, ValueError):
            raise _absent() from None
        return content

    def file(self, job: str, name: str) -> Path:
        """A file of a job that is done."""
        if name not in FILES or name not in self.state(job)["files"]:
            raise _absent()
        return self._find(job) / name

    def remove(self, job: str) -> None:
        """End and forget a job."""
        _forget(self._find(job))
        self._tend_own()

    def tend(self) -> None:
        """Give signs of life of the jobs of this process, and end or forget those without."""
        self._tend_own()
        for folder in self._folders():
            with suppress(OSError, RefusalError):
                age = time.time() - _last_change(folder)
                if age > self.limits.kept_seconds:
                    _forget(folder)
                elif age > DEAD and self.state(folder.name)["state"] in ("waiting", "running"):
                    self._fail(folder, "the service was ended meanwhile: send it again")

    def _tend_own(self) -> None:
        now, most = time.monotonic(), self.limits.job_seconds
        for job, task in list(self._tasks.items()):
            folder = self.folder / job
            late = now - self._begun.get(job, now) > most
            if late and folder.exists():
                self._fail(folder, f"it took longer than {most:g} s, and was stopped")
            if late or task.future.done() or not folder.exists():
                self.engine.leave(task)
                self._tasks.pop(job, None)
                self._begun.pop(job, None)
            else:
                with suppress(OSError):
                    os.utime(folder / STATE)

    def close(self) -> None:
        """End all jobs of this process and remove what it keeps."""
        self.engine.close()
        if self._clean is not None:
            self._clean()

    def _folders(self) -> list[Path]:
        return [one for one in self.folder.iterdir() if JOB_ID.fullmatch(one.name)]

    def _find(self, job: str) -> Path:
        folder = self.folder / job
        if not JOB_ID.fullmatch(job) or not folder.is_dir():
            raise _absent()
        return folder

    def _run(self, folder: Path, path: Path, name: str, options: JobOptions) -> None:
        """Answer the people of a file, and say how far it is."""
        state, written = JobState("running"), 0.0
        self._begun[folder.name] = time.monotonic()

        def show(done: int, total: int | None) -> None:
            nonlocal state, written
            if not folder.exists():
                raise RemovedError
            state = replace(state, done=done, total=total)
            if time.monotonic() - written > PERIOD:
                self._write(folder, state)
                written = time.monotonic()

        try:
            self._write(folder, state)
            with _about(path, name):
                files = run_job(self.answerer, self.settings, str(path), options, show)
            state = replace(state, state="done", files=files, total=state.done)
        except RemovedError:
            return
        except RefusalError as error:
            state = replace(state, state="failed", error=error.problems[0].msg)
        except (CancelledError, ExpiredError):
            state = replace(state, state="failed", error="it was stopped")
        except BaseException as error:
            # Predictors may also raise SystemExit. What it says may quote cells.
            state = replace(state, state="failed", error=f"unexpected {type(error).__name__}")
        path.unlink(missing_ok=True)
        with suppress(OSError, RemovedError):
            self._write(folder, state)

    def _fail(self, folder: Path, reason: str) -> None:
        """Say of a job that nobody works on that it failed."""
        for path in folder.glob(f"{UPLOAD}.*"):
            path.unlink(missing_ok=True)
        with suppress(OSError, RemovedError):
            self._write(folder, JobState("failed", error=reason))

    def _write(self, folder: Path, state: JobState) -> None:
        try:
            with replacing(folder / STATE) as stream:
                stream.write(json.dumps(asdict(state)).encode())
        except FileNotFoundError:
            raise RemovedError from None


def _forget(folder: Path) -> None:
    """Remove a job; it loses its name first, or a worker that writes its state could keep it."""
    with suppress(OSError):
        folder = folder.rename(folder.with_name(f".{folder.name}"))
    shutil.rmtree(folder, ignore_errors=True)


def _last_change(folder: Path) -> float:
    """When something happened to a job; a process that was killed early left it without a state."""
    try:
        return (folder / STATE).stat().st_mtime
    except OSError:
        return folder.stat().st_mtime


@contextmanager
def _about(path: Path, name: str) -> Iterator[None]:
    """Turn errors about an upload into refusals that call the file by its own name."""
    try:
        yield
    except McceError as error:
        message = str(error).replace(str(path), shorten(name, 100)[1:-1])
        wrong = isinstance(error, (ReadError, ParameterError))
        refusal = refusal_of(error)
        refusal.problems = [
            replace(one, loc=("body", "file"), msg=one.msg if refusal.status == 502 else message)
            for one in refusal.problems
        ]
        refusal.status = 422 if wrong else refusal.status
        raise refusal from None


def _format(name: str) -> str:
    """The format of an upload, by its name."""
    try:
        if name.lower().endswith(".gz"):
            raise ParameterError("Uploads are not compressed. Send the file itself.")
        return find_format(name)
    except ParameterError as error:
        message = str(error).replace("Say it with --format", "Formats are")
        raise RefusalError.of(422, message, "format", "body", "file") from None


def _absent() -> RefusalError:
    return RefusalError.of(404, "there is no such job or file", "absent", "path")
