"""A run of ``mcce serve``: from the request to the server, and whom its page offers to choose from.

Always true: a service that cannot work says so before it accepts requests; every worker makes the
same service of the same files.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from ..errors import MissingExtraError, ParameterError, shorten
from ..explainer import MCCE
from ..files.people import People
from ..report.labels import Labels
from ..report.language import languages
from ..report.receipts import Origin
from ..runtime.progress import without_warnings
from .demo import IMMUTABLE, N_TRAIN, SEED, text_dtypes, train
from .options import read_key
from .predictors import PredictorChoice
from .running import BLOCK_ROWS, ExplainerFile, PeopleFile, read_checksum
from .terminal import say, wrap

if TYPE_CHECKING:
    from ..serve.settings import Directory

LIBRARIES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
LOCAL = {"127.0.0.1", "::1", "localhost"}
# How a worker knows what to serve: it is started with nothing but the name of a function.
REQUEST, METRICS = "MCCE_SERVE_REQUEST", "PROMETHEUS_MULTIPROC_DIR"
# Connections of one process; beyond them a client is told to come back.
MOST_CONNECTIONS = 1_000
# A worker that gives no sign of life for so long is replaced. On a busy machine it takes many
# seconds to start, and a predictor may keep all of its threads waiting.
WORKER_SECONDS = 60
LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"json": {"()": "mcce.serve.middleware.JsonFormatter"}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json",
            "stream": "ext://sys.stderr",
        }
    },
    "loggers": {
        name: {"handlers": ["stderr"], "level": "INFO", "propagate": False}
        for name in ("mcce.serve", "uvicorn")
    },
}
MOST_PEOPLE = 100_000


@dataclass(frozen=True)
class Operation:
    """How the server runs; see the options of ``mcce serve``."""

    host: str = "127.0.0.1"
    port: int = 8000
    workers: int = 1
    grace: int = 20
    token_file: str | None = None
    allowed_hosts: Sequence[str] = ()

    @property
    def hosts(self) -> list[str] | None:
        """Names under which the service may be called; None is any."""
        if self.allowed_hosts:
            return list(self.allowed_hosts)
        return [*sorted(LOCAL - {"::1"}), "[::1]"] if self.host in LOCAL else None

    def read_token(self) -> str | None:
        """The secret that requests must name."""
        token = read_key(self.token_file)
        try:
            return None if token is None else token.decode("ascii")
        except UnicodeDecodeError:
            raise ParameterError("The token in --token-file must be made of ASCII.") from None


@dataclass(frozen=True)
class ServeRequest:
    """What the user asked for; see the options of ``mcce serve``."""

    explainer: ExplainerFile | None = None
    demo: bool = False
    people: PeopleFile | None = None
    labels: Sequence[str] = ()
    model: str = "mcce"
    title: str | None = None
    limits: Mapping[str, Any] = field(default_factory=dict)
    operation: Operation = Operation()
    folder: str | None = None

    def __post_init__(self) -> None:
        if self.demo == (self.explainer is not None):
            raise ParameterError(
                "mcce serve needs either a file of mcce fit and --predictor, or --demo."
            )

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The request of another process."""
        given = json.loads(text)
        explainer, people = given["explainer"], given["people"]
        if explainer is not None:
            choice = PredictorChoice(**explainer.pop("predictor"))
            explainer = ExplainerFile(predictor=choice, **explainer)
        parts = {
            "explainer": explainer,
            "people": None if people is None else PeopleFile(**people),
            "operation": Operation(**given["operation"]),
        }
        return cls(**(given | parts))

    def make_app(self) -> Any:
        """The application; every worker makes its own."""
        from ..serve import ServiceLimits, ServiceSettings, create_app

        settings = ServiceSettings(
            name=self.model,
            title=self.title,
            labels=_labels(self.labels),
            limits=ServiceLimits(**self.limits),
            token=self.operation.read_token(),
            hosts=self.operation.hosts,
            folder=None if self.folder is None else Path(self.folder),
        )
        if self.explainer is None:
            explainer, more = demo_parts()
            return create_app(explainer, replace(settings, **more))
        choice = self.explainer.predictor.shared_by(self.operation.workers)
        file = replace(self.explainer, predictor=choice)
        explainer = file.load()
        settings = replace(
            settings,
            origin=Origin(read_checksum(file.path), file.predictor.fingerprint()),
            rules=file.read_rules() or (),
            key=read_key(file.key_file),
        )
        if self.people is not None:
            settings = replace(settings, people=read_directory(explainer, self.people))
        return create_app(explainer, settings)


def run(request: ServeRequest) -> None:
    """Serve until the process is told to stop."""
    lacking = [name for name in LIBRARIES if find_spec(name) is None]
    if lacking:
        raise MissingExtraError(f'The service needs {lacking[0]}: pip install "mcce[serve]".')
    import uvicorn

    operation = request.operation
    with without_warnings(), ExitStack() as stack:
        app: Any = request.make_app()
        _greet(request)
        if operation.workers > 1:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcce-")))
            # It could be made; each worker makes its own, and this process needs none.
            app = _for_workers(request, folder)
            for name in (REQUEST, METRICS):
                stack.callback(os.environ.pop, name, None)
            gc.collect()
        uvicorn.run(
            app,
            factory=isinstance(app, str),
            host=operation.host,
            port=operation.port,
            workers=operation.workers,
            log_config=LOGGING,
            access_log=False,
            server_header=False,
            limit_concurrency=MOST_CONNECTIONS,
            timeout_graceful_shutdown=operation.grace,
            timeout_worker_healthcheck=WORKER_SECONDS,
        )


def make_worker_app() -> Any:
    """The application of a worker, which is a process of its own."""
    import warnings

    from ..errors import McceWarning

    warnings.simplefilter("ignore", McceWarning)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    return ServeRequest.from_json(os.environ[REQUEST]).make_app()


def _end_with_parent() -> None:
    """End this worker when its parent is killed: it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGTERM)


def _for_workers(request: ServeRequest, folder: Path) -> str:
    """Leave word for the workers, which share uploads and numbers in a folder."""
    for name in ("jobs", "metrics"):
        (folder / name).mkdir()
    os.environ[METRICS] = str(folder / "metrics")
    shared = replace(request, folder=str(folder / "jobs"))
    os.environ[REQUEST] = json.dumps(asdict(shared))
    return f"{__name__}:{make_worker_app.__name__}"


def _greet(request: ServeRequest) -> None:
    operation = request.operation
    if operation.host not in LOCAL and operation.token_file is None:
        say(
            wrap(
                f"mcce: warning: everybody who reaches {operation.host} may ask, and see the "
                "people of --people. Use --token-file, or a proxy that knows who asks."
            )
        )
    if sys.stderr.isatty():
        shown = f"[{operation.host}]" if ":" in operation.host else operation.host
        say(wrap(f"mcce: open http://{shown}:{operation.port}/ (Ctrl-C ends it)."))


def _labels(paths: Sequence[str]) -> Mapping[str, Labels]:
    read = [Labels.read(path) for path in paths] or [Labels()]
    made = {labels.language.code: labels for labels in read}
    if len(made) < len(read):
        raise ParameterError(
            f"--labels must be one file for each language, got {shorten(list(paths), 200)}."
        )
    return made


def read_directory(explainer: MCCE, file: PeopleFile) -> Directory:
    """The people of a file, with their names and scores."""
    from ..serve.settings import Directory

    directory = Directory(explainer)
    with file.open() as source:
        reader = file.reader(source, explainer.schema_, file.keep or ())
        for block in file.blocks(source, reader, BLOCK_ROWS):
            if block.first + block.n_rows > MOST_PEOPLE:
                raise ParameterError(
                    f"The page offers at most {MOST_PEOPLE:,} people to choose from, but "
                    f"{shorten(file.path, 200)} has more. Leave some out."
                )
            people = reader.read(block)
            directory.add(people.groups, list(_names(people)))
    return directory


def _names(people: People) -> Iterator[str]:
    """What people are called: a cell of theirs, or the number of their row from 1."""
    for row in range(people.n_rows):
        cells = [kept[row] for kept in people.kept.values()]
        named = cells and cells[0] is not None
        yield str(cells[0]) if named else f"#{people.first + row + 1}"


def demo_parts() -> tuple[MCCE, dict[str, Any]]:
    """An explainer of the bundled German Credit data, and settings that go with it."""
    from ..datasets import load_german_credit
    from ..serve.settings import Directory

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
    directory = Directory(explainer)
    directory.add([(np.arange(len(people)), people)], [f"#{label + 1}" for label in people.index])
    codes = ["en", *(code for code in languages() if code != "en")]
    return explainer, {
        "name": "german",
        "title": "German Credit",
        "labels": {code: Labels.bundled("german", code) for code in codes},
        "people": directory,
    }
