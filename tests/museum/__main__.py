"""Write pieces of the museum that it lacks: `python -m tests.museum`. What is there is never written again."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path

import pytest

from edl.data import connect
from edl.errors import SQLFlowError
from edl.jobs import job_folder
from edl.models.registry.factory import open_registry
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.session.session import Session
from tests import mariadb, postgresql
from tests.databases import Databases
from tests.maxcompute import process
from tests.museum import collection, interrupted, orders, registries
from tests.museum.collection import FOLDER, MODELS, MODULES, SPECS
from tests.museum.registries import RENAMED, STORE
from tests.museum.tables import TABLES
from tests.searches import short


def main() -> int:
    for name, draw in TABLES.items():
        if not (path := FOLDER / "tables" / f"{name}.arrow").exists():
            collection.write_table(path, draw())
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", folder)
        patch.setenv(PATH_VARIABLE, str(MODULES))
        home = Path(folder)
        failed = write_models(home) | write_specs()
        if not interrupted.JOB.exists():
            interrupted.write(home)
        for store, save in ((STORE, registries.save), (RENAMED, registries.save_and_rename)):
            if not store.exists():
                with connect("duckdb:") as source:
                    save(open_registry(source, str(store)))
        write_sources(home)
        return failed


@contextmanager
def filled_session() -> Iterator[Session]:
    """Session with the tables and the models of the museum, in memory."""
    with Session("duckdb:") as session, short(trials=2):
        collection.fill_tables(session)
        for archive in sorted(MODELS.glob("*.zip")):
            collection.store(archive, session)
        yield session


def write_models(folder: Path) -> int:
    """Train the models that have statements but no archive. Return 1 if one of them failed."""
    failed = 0
    lacking = [name for name in collection.names() if not (MODELS / f"{name}.zip").exists()]
    with filled_session() as session:
        for name in lacking:
            archive = folder / f"{name}.zip"
            train, *uses = collection.statements(name)
            try:
                for result in session.run(train):
                    print(f"{name}: {result.message}", flush=True)
                session.registry.load(name, archive)
                made = list(session.run(uses[0]))[-1].to_arrow() if uses else collection.predict(archive)
            except SQLFlowError as error:
                print(f"{name}: {error} ({error.hint})", file=sys.stderr)
                failed = 1
                continue
            collection.write_table(MODELS / f"{name}.arrow", made)
            shutil.copy(archive, MODELS)
    return failed


def write_specs() -> int:
    """Run the statements that have no JobSpec yet, and keep the one of their job. Return 1 if one of them failed."""
    failed = 0
    lacking = [name for name in collection.names(SPECS) if not (SPECS / f"{name}.json").exists()]
    with filled_session() as session:
        for name in lacking:
            try:
                for _ in session.run(collection.statements(name, SPECS)[0]):
                    pass
            except SQLFlowError as error:
                print(f"{name}: {error} ({error.hint})", file=sys.stderr)
                failed = 1
                continue
            shutil.copy(job_folder.jobs()[-1].program / "job.json", SPECS / f"{name}.json")
            print(f"{name}: {job_folder.jobs()[-1].status().kind}", flush=True)
    return failed


def write_sources(home: Path) -> None:
    """Write the digests of pinned rows and the registries that the museum lacks; a server starts if it is needed."""
    if not (orders.ORDERS / "typed.csv").exists():
        orders.write_files()
    with ExitStack() as servers:
        starts = {
            "mysql": cache(lambda: servers.enter_context(mariadb.running(made(home / "mariadb")))),
            "postgres": cache(lambda: servers.enter_context(postgresql.running(made(home / "postgresql")))),
            "maxcompute": cache(lambda: servers.enter_context(process.running())),
        }
        databases = servers.enter_context(Databases(made(home / "files"), lambda name: starts[name]()))
        for name in orders.SOURCES:
            if not (orders.ORDERS / f"{name}.json").exists():
                url = f"{name}:{orders.ORDERS}/typed.{name}" if name in orders.FILES else databases.url(name)
                with connect(url, create=name not in orders.FILES) as source:
                    query = orders.make_table(source, name)
                    orders.write(name, orders.measure(source, query, home / "pinned"))
                print(f"order: {name}", flush=True)
        for name in registries.DATABASES:
            if not registries.path_of(name).exists():
                url = databases.url(name)
                with connect(url, create=True) as source:
                    registries.save(open_registry(source))
                registries.write(name, registries.dump(name, url))
                print(f"registry: {name}", flush=True)


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


if __name__ == "__main__":
    sys.exit(main())
