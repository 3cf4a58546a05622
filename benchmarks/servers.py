"""Parameter servers alone: rows pulled and pushed per second, update logs, pause by a checkpoint, replacement time.

Servers and clients are processes. Ids follow a Zipf distribution (1.05, of a million), each once in a call.
Rows are 16 numbers, updated by Adagrad. A client's next call begins when all servers have answered the previous
one, so its own work (decoding, splitting ids, joining rows) is part of the figures.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import get_args

import numpy as np
import numpy.typing as npt

from benchmarks.table import Row
from edl.checkpoints.folder import SharedFolder
from edl.embeddings import Optimizer, TableSpec
from edl.ps import messages as msg
from edl.ps import partitioning
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint import manifests
from edl.ps.checkpoint.content import Dense, Mode, ModelDefinition, Shard
from edl.ps.server import Server
from edl.ps.servicer import serve
from edl.ps.store import warm_up
from edl.spec.job import DurableUpdates

TABLE, DIM, SECONDS = 1_000_000, 16, 60.0
TOKEN = "benchmark"  # noqa: S105 - of servers that run for seconds
SIZES = (1_000, 10_000, 40_000)
AIMS = {"pull": 5e6, "push": 3e6}  # rows/s at 40,000 rows a call
PLAIN = Mode()
MODEL = ModelDefinition(
    Optimizer("keras", "adagrad", {"initial_accumulator_value": 0.1, "epsilon": 1e-7}),
    dense=(Dense("kernel", (1000, 100)),),
    tables=(TableSpec("t", DIM),),
)
Ids = npt.NDArray[np.int64]


def measure(folder: Path, rounds: int, rows: int) -> list[Row]:
    table: list[Row] = []
    calls = max(rows // 10_000, 5)
    for servers in (1, 2):
        for clients in (1, 2):
            found: dict[tuple[str, int], list[float]] = {}
            with running(servers) as addresses:
                fill(addresses)
                for _ in range(rounds):
                    for what, size, rate in measured(addresses, clients, calls):
                        found.setdefault((what, size), []).append(rate)
            for (what, size), rates in found.items():
                table.append(_rate(what, size, servers, clients, rates))
    return [
        *table,
        *_durable(folder, rounds, calls),
        *_checkpoint(folder, rounds),
        *_back(folder, rounds),
        *_followed(folder, rounds),
    ]


def _durable(folder: Path, rounds: int, calls: int) -> list[Row]:
    """Measure pushes to a server that logs them, as a ratio to one that does not."""
    kinds = get_args(DurableUpdates)
    rates: dict[tuple[str, int], list[float]] = {}
    for number in range(rounds):
        for kind in kinds:
            mode, place = Mode(durable_updates=kind), folder / f"{kind}-{number}"
            with running(1, mode=mode, folder=place) as addresses:
                for _, size, rate in measured(addresses, 2, calls, ("push",)):
                    rates.setdefault((kind, size), []).append(rate)
            shutil.rmtree(place, ignore_errors=True)
    return [
        Row(
            f"servers: push {size:,} rows, 1 servers, 2 clients, durable_updates = {kind}",
            f"{np.median(rates[kind, size]):,.0f} rows/s",
            [ours / plain for ours, plain in zip(rates[kind, size], rates["none", size], strict=True)],
        )
        for kind in kinds[1:]
        for size in SIZES
    ]


def _rate(what: str, size: int, servers: int, clients: int, rates: Sequence[float]) -> Row:
    name = f"servers: {what} {size:,} rows, {servers} servers, {clients} clients"
    rate = float(np.median(rates))
    aimed = (size, servers, clients) == (SIZES[-1], 1, 1)
    return Row(name, f"{rate:,.0f} rows/s", value=rate, least=AIMS[what] if aimed else None)


def _checkpoint(folder: Path, rounds: int) -> list[Row]:
    """Measure the longest wait of a pull while a checkpoint copies 128 MB; others take a millisecond."""
    blocked, usual, size = [], [], 0
    with running(1) as addresses, connected(addresses) as (channel,):
        fill(addresses)
        ids = np.arange(100)
        for number in range(rounds):
            waits: list[float] = []
            cut = threading.Event()

            def take(number: int = number, cut: threading.Event = cut) -> None:
                order = msg.TakeCheckpoint(0, str(folder / f"cut-{number}"))
                channel.call(order, (), msg.CheckpointTaken, SECONDS)
                cut.set()

            usual.append(_seconds(channel, ids))
            thread = threading.Thread(target=take)
            thread.start()
            while not cut.is_set() or len(waits) < 10:
                waits.append(_seconds(channel, ids))
            thread.join()
            blocked.append(max(waits))
            channel.call(
                msg.TakeCheckpoint(0, str(folder / f"cut-{number}"), wait=True),
                (),
                msg.CheckpointTaken,
                SECONDS,
            )
        size = channel.call(msg.Status(), (), msg.Figures, SECONDS)[0].bytes
    worst = float(np.median(blocked))
    name = f"servers: a checkpoint of {size >> 20} MB blocks"
    return [
        Row(name, f"{worst:.3f} s", value=worst, most=0.2),
        Row("… a pull without one", f"{np.median(usual):.4f} s"),
    ]


def _back(folder: Path, rounds: int) -> list[Row]:
    """Time a process from its start to its first answer with rows of the checkpoint; machine code is cached."""
    took = []
    for _ in range(rounds):
        began = time.perf_counter()
        with running(1, restore=str(folder / "cut-0")) as addresses, connected(addresses) as (channel,):
            _seconds(channel, np.arange(100))
            took.append(time.perf_counter() - began)
    seconds = float(np.median(took))
    return [
        Row(
            "servers: from start to the first answer of a replacement",
            f"{seconds:.2f} s",
            value=seconds,
            most=3,
        )
    ]


def _followed(folder: Path, rounds: int) -> list[Row]:
    """Time from the last push to two servers to the first answer of the three that follow them."""
    took = []
    with running(2) as before, connected(before) as old:
        fill(before)
        for number in range(rounds):
            name = str(folder / f"last-{number}")
            with started(3) as after, connected(after) as new:
                began = time.perf_counter()
                order = msg.TakeCheckpoint(0, name, last=True)
                taken, _ = old[0].call(order, (), msg.CheckpointTaken, SECONDS)
                shards = [_written(channel, name) for channel in old]
                manifest = manifests.manifest_of(name, taken.version, PLAIN, shards)
                manifests.write_manifest(SharedFolder(Path("/")), name, manifest)
                arranging = [
                    channel.begin(msg.Arrange(index, 1, 0, tuple(after), PLAIN, name), (), SECONDS)
                    for index, channel in enumerate(new)
                ]
                for each in arranging:
                    each.result(msg.Arranged)
                pull(new, np.arange(100), generation=1)
                took.append(time.perf_counter() - began)
            shutil.rmtree(name)
    seconds = f"{np.median(took):.2f} s"
    return [Row(f"servers: 2 → 3, with {TABLE:,} rows, without progress", seconds)]


def _written(channel: ServerChannel, name: str) -> Shard:
    """Wait for a server's file of the checkpoint, as a master does."""
    while name not in (written := channel.call(msg.Status(), (), msg.Figures, SECONDS)[0].written):
        time.sleep(0.05)
    return written[name]


def _seconds(channel: ServerChannel, ids: Ids) -> float:
    began = time.perf_counter()
    channel.call(msg.Pull(0, ("t",)), [ids], msg.Pulled, SECONDS)
    return time.perf_counter() - began


# Servers and clients ----------------------------------------------------------------------------------------


@contextmanager
def started(count: int, folder: Path = Path("/")) -> Iterator[list[str]]:
    """Start servers in processes, with checkpoints in the folder, and yield their addresses."""
    with ExitStack() as stack:
        processes = [stack.enter_context(_process("serve", str(folder))) for _ in range(count)]
        yield [_line(process) for process in processes]


@contextmanager
def running(
    count: int, restore: str = "", mode: Mode = PLAIN, folder: Path = Path("/")
) -> Iterator[list[str]]:
    """Start servers that are arranged and open, and yield their addresses."""
    with started(count, folder) as addresses:
        with connected(addresses) as channels:
            for index, channel in enumerate(channels):
                order = msg.Arrange(index, 0, 0, tuple(addresses), mode, restore)
                channel.call(order, (), msg.Arranged, SECONDS)
                flat = np.zeros(partitioning.Placement(MODEL.dense, count).sizes[index], np.float32)
                channel.call(msg.Define(0, MODEL), [flat], msg.Defined, SECONDS)
                channel.call(msg.Open(0), (), msg.Done, SECONDS)
        yield addresses


def fill(addresses: Sequence[str]) -> None:
    """Create all rows of the table."""
    with connected(addresses) as channels:
        for sequence, ids in enumerate(np.array_split(np.arange(TABLE), 10), start=1):
            push(channels, ids, np.zeros((len(ids), DIM), np.float32), "filler", sequence)


@contextmanager
def connected(addresses: Sequence[str]) -> Iterator[list[ServerChannel]]:
    with ExitStack() as stack:
        yield [stack.enter_context(ServerChannel(address, TOKEN)) for address in addresses]


def measured(
    addresses: Sequence[str], clients: int, calls: int, operations: Iterable[str] = AIMS
) -> Iterator[tuple[str, int, float]]:
    """Measure clients side by side: yield operation, rows per call and total rows per second."""
    with ExitStack() as stack:
        processes = [
            stack.enter_context(_process("client", f"client-{i}", str(calls), *addresses))
            for i in range(clients)
        ]
        for process in processes:
            _line(process)  # the client is ready
        for what in operations:
            for size in SIZES:
                for process in processes:
                    _say(process, json.dumps([what, size]))
                yield what, size, sum(float(_line(process)) for process in processes)


def _process(*arguments: str) -> subprocess.Popen[str]:
    """Start a process that ends with its standard input."""
    command = [sys.executable, "-m", "benchmarks.servers", *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def _say(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def _serve(folder: Path) -> None:
    warm_up()  # before it registers, as servers of a job
    _, port = serve(Server(TOKEN, SharedFolder(folder)), "127.0.0.1:0", TOKEN)
    print(f"127.0.0.1:{port}", flush=True)
    sys.stdin.read()


def _client(name: str, calls: int, addresses: Sequence[str]) -> None:
    """Print the rows per second of each request (operation, rows per call) on standard input."""
    rng = np.random.default_rng(len(name) + int(name[-1]))
    sequence = 0
    with connected(addresses) as channels:
        print("ready", flush=True)
        for line in sys.stdin:
            what, size = json.loads(line)
            minibatches = [zipf(rng, size) for _ in range(8)]
            gradients = rng.normal(size=(size, DIM)).astype(np.float32)
            count = max(5, min(calls * SIZES[-1] // size, 20 * calls))
            for number in range(-2, count):  # the first two are not counted
                if number == 0:
                    began = time.perf_counter()
                ids = minibatches[number % len(minibatches)]
                if what == "pull":
                    pull(channels, ids)
                else:
                    sequence += 1
                    push(channels, ids, gradients, name, sequence)
            print(count * size / (time.perf_counter() - began), flush=True)


def pull(channels: Sequence[ServerChannel], ids: Ids, generation: int = 0) -> npt.NDArray[np.float32]:
    parts = partitioning.split(ids, len(channels))
    pending = [
        channel.begin(msg.Pull(generation, ("t",)), [part.ids], SECONDS)
        for channel, part in zip(channels, parts, strict=True)
    ]
    return partitioning.join_blocks(parts, [one.result(msg.Pulled)[1][0] for one in pending])


def push(
    channels: Sequence[ServerChannel], ids: Ids, gradients: npt.NDArray[np.float32], name: str, sequence: int
) -> None:
    push = msg.Push(0, name, 0, sequence, 0.01, len(ids), ("t",))
    none = np.empty(0, np.float32)
    pending = [
        channel.begin(push, [none, part.ids, part.of(gradients)], SECONDS)
        for channel, part in zip(channels, partitioning.split(ids, len(channels)), strict=True)
    ]
    for one in pending:
        one.result(msg.Pushed)


def zipf(rng: np.random.Generator, size: int) -> Ids:
    """Draw distinct ids of a million by a Zipf distribution."""
    keys = rng.gumbel(size=TABLE) - 1.05 * np.log(np.arange(1, TABLE + 1))
    return np.ascontiguousarray(rng.permutation(np.argpartition(-keys, size)[:size]))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _serve(Path(sys.argv[2]))
    else:
        _client(sys.argv[2], int(sys.argv[3]), sys.argv[4:])
