"""`edl run` on several machines: the same command on each, as with torchrun.

    edl run --nnodes 2 --nproc_per_node 4 --rdzv_endpoint first:29400 --token_file FILE script.py

The machine with the address of --rdzv_endpoint, or with --node_rank 0, is the first: it has the master of the job. The
others offer their slots to it (`edl.cluster.nodes`).
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from edl import exit_codes
from edl.cluster.environment import HOST
from edl.cluster.logs import open_log
from edl.cluster.nodes.joining import read_token
from edl.errors import ClusterError, SemanticError
from edl.jobs.cluster_folder import ClusterFolder, NodeOffer, NodesUse, RunSpec
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, JobInterruptedError
from edl.tls import VARIABLE as TLS
from edl.tls import issue

PORT = 29400  # torchrun's default
JOIN_SECS = 600.0  # time for the first machine to answer, and for its token to appear
LOOK_SECS = 0.2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("several machines")
    group.add_argument(
        "--nnodes",
        type=_range,
        default=(1, 1),
        metavar="N[:M]",
        help="run the same command on N machines, or on N to M; see sqlflow help elastic",
    )
    group.add_argument(
        "--rdzv_endpoint",
        "--rdzv-endpoint",
        metavar="HOST[:PORT]",
        help=f"address of the first machine, which has the master (default port: {PORT})",
    )
    group.add_argument(
        "--node_rank",
        "--node-rank",
        type=int,
        metavar="N",
        help="0: this is the first machine (default: if it has the address of --rdzv_endpoint)",
    )
    group.add_argument(
        "--token_file",
        "--token-file",
        type=Path,
        metavar="FILE",
        help="join token that all machines read; the first one makes it (default: the variable EDL_JOIN_TOKEN)",
    )
    group.add_argument(
        "--local_addr", "--local-addr", metavar="HOST", help="address of this machine for the others"
    )


def has_several(options: argparse.Namespace) -> bool:
    """Return True if the run is one of several machines. Raises SemanticError if options do not fit together."""
    several = options.nnodes[1] > 1
    if not several:
        for name in ("token_file", "local_addr"):
            if getattr(options, name) is not None:
                raise SemanticError(f"--{name} is for runs on several machines", hint="add --nnodes N")
        return False
    if options.on is not None:
        raise SemanticError(
            "--nnodes is for machines without Kubernetes", hint="with --on, --workers N makes N pods"
        )
    if options.rdzv_endpoint is None:
        raise SemanticError(
            "a run on several machines needs the address of the first one", hint="--rdzv_endpoint HOST:PORT"
        )
    return True


def is_first(options: argparse.Namespace) -> bool:
    """Return True if this machine is the first. Raises SemanticError if the endpoint's name has no address."""
    if options.node_rank is not None:
        return bool(options.node_rank == 0)
    host, _ = _endpoint(options)
    return any(map(_is_own, _addresses(host)))


def use_nodes(job: JobFolder, options: argparse.Namespace, how: RunSpec) -> RunSpec:
    """Return the RunSpec of a job that other machines join; write what they need into its folder."""
    host, port = _endpoint(options)
    address = options.local_addr or _addresses(host)[0]
    folder = ClusterFolder(job.path)
    folder.write_join_token(_wait_for_token(options.token_file, creates=True))
    folder.mark_spread()
    identity = folder.write_identity(issue())
    environment = {**how.environment, HOST: address, TLS: str(identity)}
    use = NodesUse(f"{address}:{port}", options.nnodes[1], options.workers)
    return msgspec.structs.replace(how, environment=environment, nodes=use)


def offer_node(job: JobFolder, options: argparse.Namespace, threads: int) -> None:
    """Offer this machine to the job, and return when that has ended.

    Raises ClusterError if it cannot take part, JobInterruptedError and JobCancelledError as the job ends.
    """
    host, port = _endpoint(options)
    folder = ClusterFolder(job.path)
    folder.write_join_token(_wait_for_token(options.token_file, creates=False))
    head = f"{_addresses(host)[0]}:{port}"
    folder.write_offer(
        NodeOffer(head, options.workers, threads, str(Path.cwd()), options.local_addr or "", JOIN_SECS)
    )
    log = folder.log("agent")
    output = open_log(log)
    try:
        agent = subprocess.Popen(  # noqa: S603 (our own module, in a list)
            [sys.executable, "-P", "-m", "edl.cluster.nodes.agent", str(job.path)],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    finally:
        os.close(output)
    job.owned_by(agent.pid)
    code = _wait(agent)
    if code == exit_codes.INTERRUPTED:
        raise JobCancelledError
    if code == exit_codes.TERMINATED:
        raise JobInterruptedError
    if code:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        last = lines[-1].partition(" ")[2] if lines else f"exit code {code}"
        raise ClusterError(f"this machine has left the job: {last}", hint=f"its log: {log}")


def _wait(agent: subprocess.Popen[bytes]) -> int:
    """Wait for the end of the agent; end it if this command is interrupted."""
    try:
        return agent.wait()
    finally:
        if agent.stdin is not None:
            agent.stdin.close()  # ends it
        agent.wait()


def _wait_for_token(file: Path | None, *, creates: bool) -> str:
    """Return the join token, which the first machine may still write."""
    deadline = time.monotonic() + JOIN_SECS
    while (token := read_token(file, creates=creates)) is None:
        if time.monotonic() > deadline:
            raise SemanticError(
                f"there is no join token in {file}",
                hint="the first machine writes it; do all machines see the folder?",
            )
        time.sleep(LOOK_SECS)
    return token


def _endpoint(options: argparse.Namespace) -> tuple[str, int]:
    text = options.rdzv_endpoint
    host, colon, port = text.partition(":")
    if not colon:
        return host, PORT
    if not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise SemanticError(f"--rdzv_endpoint {text} has no port", hint="such as first:29400")
    return host, int(port)


def _addresses(host: str) -> list[str]:
    """Return the addresses of a machine in IPv4, which the master and its servers listen on."""
    try:
        answers = socket.getaddrinfo(host, None, family=socket.AF_INET, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SemanticError(f"--rdzv_endpoint: {host} has no address: {error}") from None
    return list(dict.fromkeys(str(answer[4][0]) for answer in answers))


def _is_own(address: str) -> bool:
    """Return True if the address is one of this machine."""
    with socket.socket(socket.AF_INET) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
    return True


def _range(text: str) -> tuple[int, int]:
    least, colon, most = text.partition(":")
    numbers = (least, most if colon else least)
    if not all(number.isdecimal() and int(number) for number in numbers) or int(numbers[0]) > int(numbers[1]):
        raise argparse.ArgumentTypeError(f"{text} is neither a number of machines nor a range such as 2:4")
    return int(numbers[0]), int(numbers[1])
