"""A database with models, and servers of it on sockets of this machine."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.serving.catalog import ModelCatalog
from sqlflow_edl.extensions.serving.model import ServedModel, load_model
from sqlflow_edl.extensions.serving.prediction_endpoint import Limits
from sqlflow_edl.extensions.serving.server import listen, server_of
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.sales import TRAIN, sales


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@dataclass
class Client:
    """log: what the server has said."""

    port: int
    catalog: ModelCatalog
    log: list[str]

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        """Ask once. Parts of bytes are sent one after another, and what is no bytes as JSON."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, dict):
            body, named = msgspec.json.encode(body), {"content-type": "application/json", **named}
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)) as connection:
            connection.request(method, path, body, named)
            found = connection.getresponse()
            return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a database with the models `kinds` of classes and `costs` of a number."""
    folder = tmp_path_factory.mktemp("models")
    url = f"duckdb:///{folder}/models.duckdb"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(url, create=True) as session:
            fill(session, "sales", sales())
            for _ in session.run(TRAIN):
                pass
    return url


@pytest.fixture(scope="session")
def archives(source: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("archives")
    with ModelStore(source).open() as registry:
        for name in ("kinds", "costs"):
            registry.load(name, folder / f"{name}.zip")
    return {name: folder / f"{name}.zip" for name in ("kinds", "costs")}


@pytest.fixture(scope="session")
def kinds(archives: dict[str, Path]) -> ServedModel:
    return load_model(archives["kinds"], "kinds@1")


@pytest.fixture(scope="session")
def costs(archives: dict[str, Path]) -> ServedModel:
    return load_model(archives["costs"], "costs@1")


Serve = Callable[..., "contextlib.AbstractContextManager[Client]"]


@contextlib.contextmanager
def serving(
    store: ModelStore,
    *,
    models: tuple[str, ...] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
    token: str | None = None,
    poll: float = 0.02,
) -> Iterator[Client]:
    """A server of the models, and a client of it."""
    log: list[str] = []
    catalog = ModelCatalog(store, models, log.append)
    catalog.start()
    listening: socket.socket = listen("127.0.0.1", 0)
    server = server_of(listening, catalog, limits, token=token, poll=poll, log=log.append)
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    try:
        yield Client(listening.getsockname()[1], catalog, log)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


@pytest.fixture
def serve(source: str) -> Serve:
    """A context with a server of the database, or of another one, and a client of it."""
    return lambda url=source, **settings: serving(ModelStore(url), **settings)
