"""A master and workers that do what a test tells them, line by line, over a socket of the test's."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from edl import exit_codes
from edl.cluster import Instance, Order
from edl.cluster.local.cluster import ProcessCluster
from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder


class Actor:
    """Says who it is, then answers each line."""

    def __init__(self, job: Path, **who: Any) -> None:
        self.job = job
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(os.environ["STAGE"])
        who |= {"pid": os.getpid(), "session": os.getsid(0), "threads": os.environ["OMP_NUM_THREADS"]}
        who["colour"] = os.environ.get("COLOUR")
        self.socket.sendall(json.dumps(who).encode() + b"\n")

    def play(self) -> int:
        for line in self.socket.makefile():
            order = json.loads(line)
            answer = getattr(self, order.pop("do"))(**order)
            self.socket.sendall(json.dumps(answer).encode() + b"\n")
        return exit_codes.OK

    def exit(self, code: int) -> None:
        os._exit(code)

    def leave(self, code: int) -> None:
        sys.exit(code)

    def crash(self) -> None:
        os.abort()

    def raise_(self) -> None:
        raise RuntimeError("as it was told")

    def ignore(self) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

    def drain(self, code: int) -> None:
        signal.signal(signal.SIGTERM, lambda *_: os._exit(code))

    def spawn(self, *, session: bool) -> int:
        command = [sys.executable, "-c", "import signal; signal.pause()"]
        return subprocess.Popen(command, start_new_session=session).pid


class Worker(Actor):
    def train(self, folder: str) -> dict[str, float | None]:
        from edl.jobs.job_folder import JobFolder
        from edl.program import read_spec
        from edl.run import job_runner

        job = JobFolder(Path(folder))
        with job_runner.load_program(job.program, read_spec(job.program), threads=1) as program:
            done = job_runner.run_job(
                program, job, None, observer=lambda event: None, cancelled=threading.Event()
            )
        return done.figures


class Master(Actor):
    def __init__(self, job: Path, port: int, descriptor: int, arguments: list[str]) -> None:
        self.cluster = ProcessCluster(descriptor)
        self.changes = self.cluster.watch()
        self.server = socket.socket()
        self.server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        self.server.bind(("127.0.0.1", port))
        self.server.listen()
        room = msgspec.to_builtins(self.cluster.room)
        super().__init__(
            job, name="master", relaunches=self.cluster.relaunches, room=room, arguments=arguments
        )

    def start(self, name: str, incarnation: int = 0) -> str:
        try:
            self.cluster.start(Instance(name, "worker", incarnation))
        except ClusterError as error:
            return error.message
        return ""

    def stop(self, name: str, incarnation: int, grace: float) -> None:
        self.cluster.stop(Instance(name, "worker", incarnation), grace)

    def want(self, least: int, most: int) -> None:
        self.cluster.want(least, most)

    def list(self) -> Any:
        return msgspec.to_builtins(self.cluster.list())

    def changed(self, count: int) -> Any:
        """The next changes."""
        return msgspec.to_builtins([*itertools.islice(self.changes, count)])

    def obey(self, code: int) -> None:
        """End with this code when the cluster orders the end of the job."""

        def wait() -> None:
            for change in self.changes:
                if isinstance(change, Order):
                    os._exit(code)

        threading.Thread(target=wait, daemon=True).start()

    def close(self) -> Any:
        """The changes that are left when the cluster is closed."""
        self.cluster.close()
        return msgspec.to_builtins([*self.changes])

    def beat(self) -> None:
        """Show signs of life from now on, ten times a second."""
        pause = threading.Event()

        def beat() -> None:
            while not pause.wait(0.1):
                self.cluster.beat()

        self.cluster.beat()
        threading.Thread(target=beat, daemon=True).start()

    def write(self, file: str, line: str) -> None:
        """A line into a file of the cluster's folder."""
        with (ClusterFolder(self.job).path / file).open("a") as out:
            out.write(line + "\n")


def work(job: Path, instance: Instance) -> int:
    return Worker(job, name=instance.name, incarnation=instance.incarnation, role=instance.role).play()


def main(arguments: Sequence[str]) -> int:
    job, _, port, _, descriptor, *more = arguments
    return Master(Path(job), int(port), int(descriptor), more).play()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
