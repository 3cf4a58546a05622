"""Spark's Thrift server, which speaks the protocol of HiveServer2."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.shared_server import free_port

VARIABLE = "SPARK_HOME"
MISSING = f"no Spark (pip install pyspark, or {VARIABLE}=…, and Java)"
START_SECS = 180

_SERVER = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


def home() -> str | None:
    """Return the folder of Spark."""
    found = importlib.util.find_spec("pyspark")
    return os.environ.get(VARIABLE) or (str(Path(found.origin).parent) if found and found.origin else None)


@contextmanager
def running(spark: str, folder: Path) -> Iterator[int]:
    """Run the server with its tables in `folder`, and yield its port."""
    port = free_port()
    settings = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.catalogImplementation": "hive",
    }
    command = [f"{spark}/bin/spark-submit", "--master", "local[1]", "--driver-memory", "1g"]
    command += [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    command += ["--class", _SERVER, "spark-internal", "--hiveconf", f"hive.server2.thrift.port={port}"]
    command += ["--hiveconf", "hive.server2.thrift.bind.host=127.0.0.1"]
    environment = {**os.environ, "SPARK_HOME": spark, "SPARK_LOCAL_IP": "127.0.0.1"}
    with (
        (folder / "spark.log").open("wb") as log,
        subprocess.Popen(
            command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True
        ) as process,
    ):
        try:
            _wait(port, process)
            yield port
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def _wait(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except OSError:
            assert process.poll() is None, "Spark ended"
            assert time.monotonic() < deadline, "Spark does not start"
            time.sleep(0.2)


def make_database(port: int, name: str) -> None:
    from impala.dbapi import connect

    connection = connect(host="127.0.0.1", port=port, user="test", password="test", auth_mechanism="PLAIN")  # noqa: S106
    cursor = connection.cursor(user="test")
    for statement in (f"DROP DATABASE IF EXISTS {name} CASCADE", f"CREATE DATABASE {name}"):
        cursor.execute(statement)
    cursor.close()
    connection.close()
