"""A PostgreSQL server of the tests' own: its data in a folder, on a port of this machine.

`running` is a server of this process, `shared` one that all processes of a test run use. PostgreSQL refuses to run as
root: there it is the system's user `postgres`, to whom its folder belongs.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.shared_server import free_port, port_of, serve

PASSWORD = "Geheim-%47"  # noqa: S105 (of the user who may do everything; looked for in all that is written)
START_SECS = 30.0
MISSING = "PostgreSQL is not installed: apt-get install postgresql"
USER = "postgres"  # of the system, in place of root
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "shared_buffers": "64MB",
    "max_wal_size": "4GB",
    # nothing here has to outlive the machine
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}


def programs() -> Path | None:
    """The folder of the server's programs; Debian has one for each version."""
    found = shutil.which("initdb")
    if found:
        return Path(found).parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    return versions[-1].parent if versions else None


def is_installed() -> bool:
    return programs() is not None


@dataclass
class Server:
    """A server that runs. Every caller of `url` gets a database of its own."""

    port: int
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def url(
        self,
        database: str | None = None,
        *,
        user: str = "owner",
        password: str = PASSWORD,
        port: int = 0,
        options: str = "",
    ) -> str:
        """port: of a proxy before the server."""
        name = database or self.database()
        secret = password.replace("%", "%25")
        return f"postgresql://{user}:{secret}@127.0.0.1:{port or self.port}/{name}{options}"

    def database(self) -> str:
        name = f"d{os.getpid()}_{next(self.numbers)}"
        self.run(f"CREATE DATABASE {name} STRATEGY file_copy")
        return name

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """Run statements as the user who may do everything; the rows of the last."""
        from edl.sources.postgresql.driver import psycopg

        place = {"host": "127.0.0.1", "port": self.port, "user": "owner", "password": PASSWORD}
        with psycopg.connect(**place, dbname=database, autocommit=True) as connection:
            cursor = connection.cursor()
            for statement in statements:
                cursor.execute(statement)
            return cursor.fetchall() if cursor.description else []


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """The server of all processes that name this folder; it is gone when none uses it any more."""
    with port_of(folder, "tests.postgresql") as port:
        yield Server(port)


@contextlib.contextmanager
def running(folder: Path, *, files: Sequence[Path] = (), **settings: str) -> Iterator[Server]:
    """A server with its log in `folder`; it is gone at the end. files: copied beside its data, for `settings`."""
    found = programs()
    assert found is not None
    account = pwd.getpwnam(USER) if os.getuid() == 0 else pwd.getpwuid(os.getuid())
    as_account = (
        {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    )
    with tempfile.TemporaryDirectory(prefix="postgresql-", ignore_cleanup_errors=True) as made:
        data = Path(made) / "data"
        secret = Path(made) / "password"
        secret.write_text(PASSWORD, encoding="utf-8")
        os.chown(made, account.pw_uid, account.pw_gid)
        os.chown(secret, account.pw_uid, account.pw_gid)
        with (folder / "server.log").open("wb") as log:
            subprocess.run(
                [found / "initdb", f"--pgdata={data}", "--username=owner", f"--pwfile={secret}", "--no-sync",
                 "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C.UTF-8"],
                stdout=log, stderr=log, check=True, cwd=made, **as_account,
            )  # fmt: skip
            for file in files:
                copied = Path(shutil.copy(file, data))
                copied.chmod(0o600)
                os.chown(copied, account.pw_uid, account.pw_gid)
            port = free_port()
            chosen = {**_SETTINGS, **settings, "port": str(port), "unix_socket_directories": made}
            server = subprocess.Popen(
                [found / "postgres", f"-D{data}", *(f"-c{name}={value}" for name, value in chosen.items())],
                stdout=log, stderr=log, cwd=made, **as_account,
            )  # fmt: skip
            try:
                started = Server(port)
                _wait(started, server)
                yield started
            finally:
                server.send_signal(signal.SIGQUIT)  # at once, with its children
                server.wait()


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    from edl.sources.postgresql.driver import psycopg

    deadline = time.monotonic() + START_SECS
    while True:
        try:
            server.run("SELECT 1")
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    serve(running)
