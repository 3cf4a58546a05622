"""Sources for the tests: DuckDB, one of every kind in turn, and what fills them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from edl import tls
from edl.data import Source, connect

if TYPE_CHECKING:
    from tests.mariadb import Server
    from tests.maxcompute.process import Running
    from tests.postgresql import Server as PostgreSQL

GIVEN = "a,k\n1,x\n2,y\n"  # the file of a source of files


@pytest.fixture
def source() -> Iterator[Source]:
    with connect("duckdb:") as opened:
        yield opened


@pytest.fixture
def sqlite() -> Iterator[Source]:
    with connect("sqlite:") as opened:
        yield opened


@pytest.fixture(params=["plain", "encrypted"])
def calls(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of this process, and of those that it starts, are plain, and encrypted in the next test."""
    if request.param == "encrypted":
        from tests.certificates import identity_of_a_job  # needs a package that a machine with a GPU may lack

        monkeypatch.setenv(tls.VARIABLE, identity_of_a_job(tmp_path / "identity"))


SCHEMES = ("duckdb", "sqlite", "csv", "mysql", "postgres", "maxcompute")
FIXTURES = {"mysql": "mariadb", "postgres": "postgresql", "maxcompute": "maxcompute"}  # of servers


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a database of a scheme without tables, to be copied: that is cheaper than to make one."""
    folder = tmp_path_factory.mktemp("empty")

    @cache
    def made(scheme: str) -> Path:
        connect(f"{scheme}:{folder / scheme}", create=True).close()
        return folder / scheme

    return made


@pytest.fixture
def new_url(
    request: pytest.FixtureRequest, tmp_path: Path, empty_database: Callable[[str], Path]
) -> Callable[[str], str]:
    """Makes a source of a scheme, in a file or a database of its own."""

    def make(scheme: str) -> str:
        if scheme in FIXTURES:
            server: Server | PostgreSQL | Running = request.getfixturevalue(FIXTURES[scheme])
            return server.url()
        path = tmp_path / f"source/given.{scheme}"
        path.parent.mkdir()
        if scheme == "csv":
            path.write_text(GIVEN, encoding="utf-8")
        else:
            shutil.copy(empty_database(scheme), path)
        return f"{scheme}:{path}"

    return make


@pytest.fixture(params=SCHEMES)
def url(request: pytest.FixtureRequest, new_url: Callable[[str], str]) -> str:
    """A source of each kind, in a file or a database of its own."""
    return new_url(request.param)


@pytest.fixture
def any_source(url: str) -> Iterator[Source]:
    with connect(url) as opened:
        yield opened


@pytest.fixture
def in_another_process() -> Callable[[str], str]:
    """Runs a Python program to its end and gives what it printed."""

    def run(program: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout

    return run
