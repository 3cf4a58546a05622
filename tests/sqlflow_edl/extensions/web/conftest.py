"""A database with models that have markup as names, and requests to the pages without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from starlette.types import ASGIApp

from edl.models.registry.model_store import ModelStore
from edl.models.registry.records import ModelRecord
from sqlflow_edl.extensions.web.app import application
from sqlflow_edl.extensions.web.guard import PageAccess
from sqlflow_edl.extensions.web.model_reader import ModelReader
from sqlflow_edl.session.session import Session
from tests.databases import fill
from tests.sales import sales

MODELS = (Path(__file__).parent / "models.sql").read_text()


@dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


@dataclass
class Browser:
    """What sends requests, with the headers of a browser."""

    app: ASGIApp
    access: PageAccess

    def get(self, path: str, **headers: str) -> Answer:
        return self._ask("GET", path, b"", headers)

    def post(self, path: str, form: dict[str, str], **headers: str) -> Answer:
        return self._ask("POST", path, urlencode(form).encode(), headers)

    def _ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        return asyncio.run(self._asked(method, path, body, {"host": "localhost:8080", **headers}))

    async def _asked(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> Answer:
        from urllib.parse import unquote

        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(path),
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
            "server": ("127.0.0.1", 8080),
            "client": ("127.0.0.1", 1),
        }
        sent: list[Any] = []

        async def receive() -> Any:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        await self.app(scope, receive, send)
        found = {name.decode(): value.decode() for name, value in sent[0]["headers"]}
        return Answer(sent[0]["status"], found, b"".join(part.get("body", b"") for part in sent[1:]))


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the jobs that trained the models of `models.duckdb` in it."""
    folder = tmp_path_factory.mktemp("web")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(folder))
        with Session(f"duckdb:///{folder}/models.duckdb", create=True) as session:
            fill(session, "sales", sales())
            for _ in session.run(MODELS):
                pass
        with ModelStore(f"duckdb:///{folder}/models.duckdb").open() as registry:
            failed = ModelRecord(
                "DNNClassifier", "torch", 7, {}, "SELECT 1 TO TRAIN DNNClassifier LABEL x INTO broken"
            )
            registry.record_failure("broken", failed, "the <i>loss</i> is not finite")
    return folder


@pytest.fixture(scope="session")
def source(home: Path) -> str:
    return f"duckdb:///{home}/models.duckdb"


@pytest.fixture
def here(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the pages find the jobs of `home`."""
    monkeypatch.setenv("XDG_STATE_HOME", str(home))


@pytest.fixture
def browse(source: str, here: None) -> Iterator[Callable[..., Browser]]:
    """Return a browser of the pages."""

    def made(token: str | None = None, *, local: bool = True) -> Browser:
        access = PageAccess(token, local=local)
        return Browser(application(ModelReader(ModelStore(source)), source, access), access)

    yield made


@pytest.fixture
def browser(browse: Callable[..., Browser]) -> Browser:
    return browse()
