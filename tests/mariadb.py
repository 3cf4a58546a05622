"""A MariaDB server of the tests' own: its data in a folder, on a port of this machine.

`running` is a server of this process, `shared` one that all processes of a test run use.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pymysql

from tests.shared_server import free_port, port_of, serve

PASSWORD = "Geheim-%47"  # noqa: S105 (of the user who may do everything; looked for in all that is written)
START_SECS = 30.0
MISSING = "MariaDB is not installed: apt-get install mariadb-server"


def is_installed() -> bool:
    return all(map(shutil.which, ("mariadbd", "mariadb-install-db", "my_print_defaults")))


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
        return f"mysql://{user}:{password.replace('%', '%25')}@127.0.0.1:{port or self.port}/{name}{options}"

    def database(self) -> str:
        name = f"d{os.getpid()}_{next(self.numbers)}"
        self.run(f"CREATE DATABASE {name}")
        return name

    def run(self, *statements: str) -> list[tuple[object, ...]]:
        """Run statements as the user who may do everything; the rows of the last."""
        with contextlib.closing(self.connect()) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def connect(self, **arguments: object) -> pymysql.Connection:  # type: ignore[type-arg]
        return pymysql.connect(
            host="127.0.0.1",
            port=self.port,
            user="owner",
            password=PASSWORD,
            autocommit=True,
            ssl_disabled=True,  # a context of TLS takes 30 ms
            **arguments,
        )


@contextlib.contextmanager
def shared(folder: Path) -> Iterator[Server]:
    """The server of all processes that name this folder; it is gone when none uses it any more."""
    with port_of(folder, "tests.mariadb") as port:
        yield Server(port)


@contextlib.contextmanager
def running(folder: Path, *options: str) -> Iterator[Server]:
    """A server with its data in `folder`, which it alone uses; it is gone at the end. options: more of its own."""
    user = pwd.getpwuid(os.getuid()).pw_name
    init = folder / "init.sql"
    init.write_text(
        f"CREATE USER owner@'127.0.0.1' IDENTIFIED BY '{PASSWORD}';\n"
        "GRANT ALL ON *.* TO owner@'127.0.0.1' WITH GRANT OPTION;\n",
        encoding="utf-8",
    )
    data = folder / "data"
    common = ["--no-defaults", f"--user={user}", f"--datadir={data}", "--innodb-log-file-size=16M"]
    with (folder / "server.log").open("wb") as log:
        subprocess.run(
            ["mariadb-install-db", *common, "--auth-root-authentication-method=normal", "--skip-test-db",
             "--innodb-flush-method=nosync", "--innodb-doublewrite=0"],
            stdout=log, stderr=log, check=True,
        )  # fmt: skip
        port = free_port()
        server = subprocess.Popen(
            [
                "mariadbd", *common, f"--port={port}", "--bind-address=127.0.0.1", f"--socket={folder / 's'}",
                f"--init-file={init}", "--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=128M",
                f"--tmpdir={folder}",  # a server that starts clears it, so it must not be that of another
                f"--pid-file={folder / 'pid'}", "--skip-name-resolve", "--performance-schema=0",
                "--character-set-server=utf8mb4",
                # nothing here has to outlive the machine
                "--debug-no-sync", "--innodb-flush-method=nosync", "--innodb-doublewrite=0",
                "--innodb-file-per-table=0", *options,
            ],
            stdout=log, stderr=log,
        )  # fmt: skip
        try:
            found = Server(port)
            _wait(found, server)
            yield found
        finally:
            server.kill()
            server.wait()
            shutil.rmtree(data, ignore_errors=True)


def _wait(server: Server, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECS
    while True:
        try:
            server.run("SELECT 1")
            return
        except pymysql.err.Error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


if __name__ == "__main__":
    serve(running)
