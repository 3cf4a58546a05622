"""Agent of a job on another machine than its supervisor: `python -P -m edl.cluster.nodes.agent JOB_FOLDER`.

It offers slots to the supervisor, and starts and ends the instances that this asks for, with a forkserver as there.
When the connection ends, it ends them all, since others take their place, and offers its slots again. Its input is a
pipe from the command that started it; when the pipe ends, so does the agent. The exit code tells the end of the job.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
import time
from pathlib import Path

import msgspec

from edl import exit_codes
from edl.build import present_build
from edl.cluster import Change
from edl.cluster.environment import HOST
from edl.cluster.local.children import Children, kill_orphans
from edl.cluster.local.instances import Instances
from edl.cluster.local.launcher import LaunchSettings, launcher
from edl.cluster.local.messages import Changed, Heartbeat, Start, Stop
from edl.cluster.local.parent_watch import adopt_orphans
from edl.cluster.nodes.joining import agent_context, is_proof, make_proof
from edl.cluster.nodes.messages import (
    LONGEST,
    Ended,
    Join,
    Sorry,
    ToAgent,
    Welcome,
    to_agent_decoder,
    to_line,
)
from edl.cluster.nodes.server import BEAT_SECS, SILENCE
from edl.errors import ClusterError
from edl.jobs.cluster_folder import ClusterFolder, NodeOffer, Process
from edl.logs import add_time
from edl.tls import VARIABLE

PAUSE = 0.5  # seconds between two offers
GRACE = 2.0  # seconds for instances to leave when the job has ended

_CODES = {
    "finished": exit_codes.OK,
    "cancelled": exit_codes.INTERRUPTED,
    "interrupted": exit_codes.TERMINATED,
}


def main(arguments: list[str]) -> int:
    folder = ClusterFolder(Path(arguments[0]).absolute())
    offer = folder.offer()
    folder.write_process("supervisor", Process.of(os.getpid()))
    return asyncio.run(Agent(folder, offer).run())


class Agent:
    """Agent of one machine, from its first offer to the end of the job."""

    def __init__(self, folder: ClusterFolder, offer: NodeOffer) -> None:
        self._folder = folder
        self._offer = offer
        self._children = Children()
        self._client_gone = asyncio.Event()
        self._instances: Instances | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._joined = False

    async def run(self) -> int:
        """Take part in the job until it ends; return the exit code."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGCHLD, self._children.reap)
        loop.add_signal_handler(signal.SIGTERM, self._client_gone.set)
        loop.add_reader(0, self._watch_client)
        reading, writing = os.pipe()  # no other process has its write end
        try:
            return await self._take_part(reading)
        except ClusterError as error:
            say(error.message)
            return exit_codes.FAILED
        finally:
            if self._instances is not None:
                await self._instances.end_all(GRACE)
            loop.remove_signal_handler(signal.SIGCHLD)
            kill_orphans()
            os.close(writing)

    async def _take_part(self, lifeline: int) -> int:
        deadline = time.monotonic() + self._offer.join_secs
        while not self._client_gone.is_set():
            try:
                reader = await self._join(lifeline)
            except (OSError, TimeoutError, asyncio.IncompleteReadError, msgspec.MsgspecError) as error:
                if time.monotonic() > deadline:
                    raise ClusterError(
                        f"the first machine of the job does not answer at {self._offer.head} "
                        f"for {self._offer.join_secs:g} s: {error}"
                    ) from None
                await asyncio.sleep(PAUSE)
                continue
            ended = await self._serve(reader)
            if ended is not None:
                if ended.error:
                    say(f"the job has ended: {ended.state}: {ended.error}")
                return _CODES.get(ended.state, exit_codes.FAILED)
            say("the connection to the first machine is lost")
            if self._instances is not None:
                for change in self._instances.list():
                    self._instances.stop(change.instance, 0.0)
            deadline = time.monotonic() + self._offer.join_secs
        return exit_codes.TERMINATED

    async def _join(self, lifeline: int) -> asyncio.StreamReader:
        """Offer this machine, and prepare the job's folder. Raises ClusterError if that is refused."""
        host, _, port = self._offer.head.rpartition(":")
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection(host, int(port), ssl=agent_context(), limit=LONGEST), SILENCE
        )
        certificate = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        own_host = self._offer.host or writer.get_extra_info("sockname")[0]
        token = self._folder.join_token()
        proof = make_proof(token, "agent", certificate)
        offer = Join(proof, socket.gethostname(), own_host, self._offer.slots, present_build())
        writer.write(to_line(offer))
        line = await asyncio.wait_for(reader.readline(), SILENCE)
        if not line:
            writer.close()
            if self._joined:  # the job may have ended meanwhile
                raise ConnectionResetError("the connection was closed")
            raise ClusterError("the first machine has another join token, or serves another job")
        answer = to_agent_decoder.decode(line)
        if isinstance(answer, Sorry):
            raise ClusterError(f"the first machine refuses this one: {answer.why}")
        if not isinstance(answer, Welcome) or not is_proof(answer.proof, token, "supervisor", certificate):
            raise ClusterError(f"who answers at {self._offer.head} does not know the join token")
        self._prepare(answer, own_host, lifeline)
        self._writer = writer
        self._joined = True
        say(f"joined job {answer.job} at {self._offer.head} with {self._offer.slots} slots")
        return reader

    def _prepare(self, welcome: Welcome, own_host: str, lifeline: int) -> None:
        """Write what instances find in the job's folder; start the launcher at the first time."""
        folder = self._folder
        (folder.job / "program" / "job.json").write_bytes(welcome.spec)
        identity = folder.write_identity(welcome.identity)
        environment = {**welcome.run.environment, HOST: own_host, VARIABLE: str(identity)}
        run = msgspec.structs.replace(
            welcome.run, environment=environment, folder=self._offer.folder, threads=self._offer.threads
        )
        folder.write_run_spec(run)
        folder.write_master_address(welcome.address)
        folder.write_token(welcome.token)
        folder.mark_spread()
        if self._instances is None:
            setting = LaunchSettings(folder.job, run, lifeline, self._children, say)
            self._instances = Instances(self._children, self._notify)
            self._instances.launcher = launcher(setting, self._instances, adopting=adopt_orphans())

    async def _serve(self, reader: asyncio.StreamReader) -> Ended | None:
        """Do what the supervisor asks for; return the end of the job, or None if the connection ends before."""
        beating = asyncio.create_task(self._beat())
        gone = asyncio.create_task(self._client_gone.wait())
        try:
            while True:
                reading = asyncio.create_task(asyncio.wait_for(reader.readline(), SILENCE))
                await asyncio.wait({reading, gone}, return_when=asyncio.FIRST_COMPLETED)
                if gone.done():
                    reading.cancel()
                    return None
                if not (line := reading.result()):
                    return None
                message = to_agent_decoder.decode(line)
                if isinstance(message, Ended):
                    return message
                self._do(message)
        except (OSError, TimeoutError, ValueError, msgspec.MsgspecError):
            return None
        finally:
            beating.cancel()
            gone.cancel()
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _do(self, message: ToAgent) -> None:
        if self._instances is None:
            return
        if isinstance(message, Start):
            try:
                self._instances.start(message.instance)
            except ClusterError as error:
                self._notify(Change(message.instance, "ended", "", "failed", detail=error.message))
        elif isinstance(message, Stop):
            self._instances.stop(message.instance, message.grace)

    def _notify(self, change: Change) -> None:
        self._send(Changed(change))

    def _send(self, message: Changed | Heartbeat) -> None:
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(to_line(message))

    async def _beat(self) -> None:
        while True:
            self._send(Heartbeat())
            await asyncio.sleep(BEAT_SECS)

    def _watch_client(self) -> None:
        if not os.read(0, 4096):
            asyncio.get_running_loop().remove_reader(0)
            self._client_gone.set()


def say(text: str) -> None:
    """Write a line to the agent's log."""
    with contextlib.suppress(OSError):
        print(add_time(text), flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
