"""``mcce serve``: an explainer behind HTTP, and a page where anybody can ask.

Always true: a service that cannot work says so before it accepts requests; every worker makes the
same service of the same files.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from .. import serve
from ..errors import McceWarning, ParameterError, missing_extra, shorten
from ..explainer import MCCE
from ..files.people_reader import People
from ..report.labels import Labels
from ..report.language import languages
from ..report.receipts import Origin
from ..runtime.progress import without_warnings
from ..serve.settings import Directory, ServiceLimits, ServiceSettings
from .arguments import ServeArguments, from_dict
from .demo import fit_demo, load_demo
from .inputs import (
    BLOCK_ROWS,
    load_explainer,
    open_people,
    read_checksum,
    read_key,
    read_rules_file,
)
from .predictors import predictor_checksum, split_limits
from .terminal import notify

SERVICE_PACKAGES = ("fastapi", "uvicorn", "python_multipart", "prometheus_client")
LOCAL = {"127.0.0.1", "::1", "localhost"}
# A worker is started with the name of a function alone, and reads the rest from here.
ARGUMENTS, METRICS = "MCCE_SERVE_ARGUMENTS", "PROMETHEUS_MULTIPROC_DIR"
# Connections of one process; further clients have to come back.
MAX_CONNECTIONS = 1_000
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
MAX_PAGE_PEOPLE = 100_000


def run(arguments: ServeArguments) -> None:
    """Serve until the process is stopped."""
    if arguments.demo == bool(arguments.explainer.path and arguments.predictor.name):
        raise ParameterError(
            "mcce serve needs either a file of mcce fit and --predictor, or --demo."
        )
    lacking = [name for name in SERVICE_PACKAGES if find_spec(name) is None]
    if lacking:
        raise missing_extra(lacking[0], "serve", "The service")
    import uvicorn

    _check_port(arguments.host, arguments.port)
    with without_warnings(), ExitStack() as stack:
        app: Any = _make_app(arguments)
        _greet(arguments)
        if arguments.workers > 1:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="mcce-")))
            # The settings work. Each worker makes its own application; this process needs none.
            app = _for_workers(arguments, folder)
            for name in (ARGUMENTS, METRICS):
                stack.callback(os.environ.pop, name, None)
            gc.collect()
        uvicorn.run(
            app,
            factory=isinstance(app, str),
            host=arguments.host,
            port=arguments.port,
            workers=arguments.workers,
            log_config=LOGGING,
            access_log=False,
            server_header=False,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=arguments.grace,
            timeout_worker_healthcheck=WORKER_SECONDS,
        )


def _check_port(host: str, port: int) -> None:
    """Raise if the service could not listen, before the explainer is loaded."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise ParameterError(
            f"mcce serve cannot listen on {shorten(host)} at port {port}: {error.strerror}. Choose "
            "another --port or --host, or end what uses this one."
        ) from None


def make_worker_app() -> Any:
    """The application of a worker, which is a process of its own."""
    warnings.simplefilter("ignore", McceWarning)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    content, folder = json.loads(os.environ[ARGUMENTS])
    return _make_app(from_dict(ServeArguments, content), Path(folder))


def _end_with_parent() -> None:
    """End this worker when its parent is killed: it would keep the port."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        signal.raise_signal(signal.SIGTERM)


def _for_workers(arguments: ServeArguments, folder: Path) -> str:
    """Set what the workers read when they start; they share uploads and metrics in a folder."""
    for name in ("jobs", "metrics"):
        (folder / name).mkdir()
    os.environ[METRICS] = str(folder / "metrics")
    os.environ[ARGUMENTS] = json.dumps([asdict(arguments), str(folder / "jobs")])
    return f"{__name__}:{make_worker_app.__name__}"


def _make_app(arguments: ServeArguments, folder: Path | None = None) -> Any:
    """The application; every worker makes its own, with a folder that they share."""
    settings = ServiceSettings(
        title=arguments.title,
        labels=_labels(arguments.labels or ()),
        limits=ServiceLimits(
            people=arguments.max_people,
            seconds=arguments.seconds,
            threads=arguments.threads,
            queue=arguments.queue,
            batch=arguments.batch,
            patience=arguments.patience,
        ),
        token=_read_token(arguments.token_file),
        hosts=_hosts(arguments),
        folder=folder,
    )
    made = _make_demo(settings) if arguments.demo else _make_service(arguments, settings)
    return serve.create_app(*made)


def _make_service(
    arguments: ServeArguments, settings: ServiceSettings
) -> tuple[MCCE, ServiceSettings]:
    """The explainer of a file, and settings that go with it."""
    predictor = split_limits(arguments.predictor, arguments.workers)
    file, key_file = arguments.explainer, arguments.run.key_file
    # A search has one thread.
    explainer = load_explainer(file, predictor, replace(arguments.run, jobs=1))
    people = arguments.people
    directory = None if people is None else _read_directory(explainer, people, arguments)
    return explainer, replace(
        settings,
        origin=Origin(read_checksum(file.path), predictor_checksum(predictor)),
        rules=read_rules_file(file.rules) or (),
        key=read_key(key_file),
        people=directory,
    )


def _make_demo(settings: ServiceSettings) -> tuple[MCCE, ServiceSettings]:
    """An explainer of the bundled German Credit data, and settings that go with it."""
    german, train, people, predictor = load_demo()
    explainer = fit_demo(predictor, train, german.rules, n_counterfactuals=3, diversity=0.8)
    people = people.iloc[np.argsort(predictor.predict(people), kind="stable")]
    directory = Directory(explainer)
    directory.add([(np.arange(len(people)), people)], [f"#{label + 1}" for label in people.index])
    codes = ["en", *(code for code in languages() if code != "en")]
    return explainer, replace(
        settings,
        title="German Credit",
        labels={code: Labels.bundled("german", code) for code in codes},
        people=directory,
    )


def _hosts(arguments: ServeArguments) -> list[str] | None:
    """Names under which the service may be called; None is any."""
    if arguments.allowed_hosts:
        return arguments.allowed_hosts
    return [*sorted(LOCAL - {"::1"}), "[::1]"] if arguments.host in LOCAL else None


def _read_token(path: str | None) -> str | None:
    """The secret that requests must name."""
    token = read_key(path)
    try:
        return None if token is None else token.decode("ascii")
    except UnicodeDecodeError:
        raise ParameterError("The token in --token-file must be made of ASCII.") from None


def _greet(arguments: ServeArguments) -> None:
    host = arguments.host
    if host not in LOCAL and arguments.token_file is None:
        notify(
            f"warning: everybody who reaches {host} may ask, and see the "
            "people of --people. Use --token-file, or a proxy that knows who asks."
        )
    if sys.stderr.isatty():
        shown = f"[{host}]" if ":" in host else host
        notify(f"open http://{shown}:{arguments.port}/ (Ctrl-C ends it).")


def _labels(paths: Sequence[str]) -> Mapping[str, Labels]:
    read = [Labels.read(path) for path in paths] or [Labels()]
    made = {labels.language.code: labels for labels in read}
    if len(made) < len(read):
        raise ParameterError(
            f"--labels must be one file for each language, got {shorten(list(paths), 200)}."
        )
    return made


def _read_directory(explainer: MCCE, path: str, arguments: ServeArguments) -> Directory:
    """The people of a file, with their names and scores."""
    directory, keep = Directory(explainer), [arguments.name] if arguments.name else []
    table, schema = arguments.table, explainer.schema_
    with open_people(path, schema, table, lambda names: keep) as (source, reader):
        for block in reader.blocks(source, BLOCK_ROWS):
            if block.first + block.n_rows > MAX_PAGE_PEOPLE:
                raise ParameterError(
                    f"The page offers at most {MAX_PAGE_PEOPLE:,} people to choose from, but "
                    f"{shorten(path, 200)} has more. Leave some out."
                )
            directory.add(block.groups, list(_names(block)))
    return directory


def _names(people: People) -> Iterator[str]:
    """The names of people: a cell of each, or the number of the row from 1."""
    for row in range(people.n_rows):
        cells = [kept[row] for kept in people.kept.values()]
        named = cells and cells[0] is not None
        yield str(cells[0]) if named else f"#{people.first + row + 1}"
