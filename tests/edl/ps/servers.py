"""Parameter servers in threads of the test, with a channel to each, and the calls that tests make most."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import numpy as np

from edl.checkpoints.folder import SharedFolder
from edl.embeddings import Optimizer, TableSpec
from edl.ps import messages as msg
from edl.ps import partitioning
from edl.ps.channel import ServerChannel
from edl.ps.checkpoint.content import Dense, Manifest, Mode, ModelDefinition, Progress
from edl.ps.server import Server
from edl.ps.servicer import serve
from edl.tasks.task import Task

TOKEN = "secret"  # noqa: S105
SGD = Optimizer("torch", "sgd", {"momentum": 0.0})
ADAM = Optimizer("torch", "adam", {"beta_1": 0.9, "beta_2": 0.999, "epsilon": 1e-8, "amsgrad": 0.0})
ADAGRAD = Optimizer("torch", "adagrad", {"initial_accumulator_value": 0.5, "epsilon": 1e-10, "lr_decay": 0.0})
DENSE = (Dense("kernel", (4, 3)), Dense("bias", (3,)), Dense("scale", ()))
STATE = (Dense("mean", (2,)),)
TABLES = (TableSpec("users", 2), TableSpec("items", 4, "zeros"))
ASYNC, SYNC = Mode("async"), Mode("sync", 1)
SECONDS = 30.0


def definition(optimizer: Optimizer = SGD, **changes: Any) -> ModelDefinition:
    fields = {"dense": DENSE, "tables": TABLES, "state": STATE, "seed": 5} | changes
    return ModelDefinition(optimizer, **fields)


def first_values() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(7)
    return {one.name: rng.normal(size=one.shape).astype(np.float32) for one in (*DENSE, *STATE)}


def progress(lease: int, rows: int, of: int = 100) -> Progress:
    return Progress(Task(lease, "train", 0, of, 1, attempt=lease), rows, rows, float(rows), float(rows))


class Servers:
    """So many servers, of one generation. calls: everything that is said to server i is `say(i, …)`."""

    def __init__(self, count: int) -> None:
        self.store = SharedFolder(Path("/"))  # cuts of these tests are named by their whole path
        self.servers = [Server(TOKEN, self.store) for _ in range(count)]
        self._served = [serve(server, "127.0.0.1:0", TOKEN) for server in self.servers]
        self.addresses = tuple(f"127.0.0.1:{port}" for _, port in self._served)
        self.channels = [ServerChannel(address, TOKEN) for address in self.addresses]
        self.generation = 0
        self._sequences = itertools.count(1)

    def close(self) -> None:
        for channel in self.channels:
            channel.close()
        for server, (served, _) in zip(self.servers, self._served, strict=True):
            server.close()
            served.stop(None).wait()

    def replace(self, index: int) -> None:
        """The server is gone, and a new one has its place at another address."""
        self.channels[index].close()
        self.servers[index].close()
        grpc_server: grpc.Server = self._served[index][0]
        grpc_server.stop(None).wait()
        self.servers[index] = Server(TOKEN, self.store)
        self._served[index] = serve(self.servers[index], "127.0.0.1:0", TOKEN)
        address = f"127.0.0.1:{self._served[index][1]}"
        self.addresses = (*self.addresses[:index], address, *self.addresses[index + 1 :])
        self.channels[index] = ServerChannel(address, TOKEN)

    def call(self, index: int, header: Any, kind: Any, arrays: Sequence[np.ndarray] = ()) -> tuple[Any, Any]:
        return self.channels[index].call(header, arrays, kind, SECONDS)

    def arrange(
        self,
        mode: Mode = ASYNC,
        restore: str = "",
        lives: Sequence[int] = (),
        manifest: Manifest | None = None,
    ) -> None:
        for index in range(len(self.servers)):
            epoch = lives[index] if lives else 0
            order = msg.Arrange(index, self.generation, epoch, self.addresses, mode, restore, manifest)
            self.call(index, order, msg.Arranged)

    def define(self, model: ModelDefinition) -> None:
        placement = partitioning.Placement(model.dense, len(self.servers))
        values = first_values()
        for index in range(len(self.servers)):
            arrays = [placement.flat(values, index)]
            if index == 0:
                arrays.append(partitioning.Layout(model.state).flat(values))
            self.call(index, msg.Define(self.generation, model), msg.Defined, arrays)

    def open(self) -> None:
        for index in range(len(self.servers)):
            self.call(index, msg.Open(self.generation), msg.Done)

    # All servers at once ------------------------------------------------------------------------------------

    def push(
        self,
        model: ModelDefinition,
        gradients: dict[str, np.ndarray],
        rows: dict[str, tuple[np.ndarray, np.ndarray]],
        *,
        instance: str = "worker-0",
        incarnation: int = 0,
        sequence: int = 0,
        count: int = 10,
        rate: float = 0.1,
        ticket: int = 0,
        state: np.ndarray | None = None,
        progress: Progress | None = None,
        private: bytes = b"",
        earlier: int = 0,
        computed_on: int = -1,
    ) -> list[msg.Pushed]:
        """Gradients of parameters and of rows by name, to those that have them."""
        placement = partitioning.Placement(model.dense, len(self.servers))
        sequence = sequence or next(self._sequences)
        split = {name: partitioning.split(ids, len(self.servers)) for name, (ids, _) in rows.items()}
        answers = []
        for index in range(len(self.servers)):
            first = index == 0
            arrays = [placement.flat(gradients, index)]
            for name, parts in split.items():
                arrays += [parts[index].ids, parts[index].of(rows[name][1])]
            if first and state is not None:
                arrays.append(state)
            header = msg.Push(
                self.generation, instance, incarnation, sequence, rate, count, tuple(rows),
                state=first and state is not None, ticket=ticket, progress=progress,
                private=private if first else b"", earlier=earlier, earlier_rows=earlier * count,
                computed_on=computed_on,
            )  # fmt: skip
            answers.append(self.call(index, header, msg.Pushed, arrays)[0])
        return answers

    def pull(self, model: ModelDefinition, ids: dict[str, np.ndarray], **more: Any) -> dict[str, np.ndarray]:
        """Parameters and rows by name, and `state`."""
        placement = partitioning.Placement(model.dense, len(self.servers))
        split = {name: partitioning.split(each, len(self.servers)) for name, each in ids.items()}
        found: dict[str, np.ndarray] = {}
        blocks: dict[str, list[np.ndarray]] = {name: [] for name in ids}
        for index in range(len(self.servers)):
            header = msg.Pull(self.generation, tuple(ids), dense=True, state=index == 0, **more)
            _, arrays = self.call(index, header, msg.Pulled, [parts[index].ids for parts in split.values()])
            found |= placement.unflat(arrays[0], index)
            for name, block in zip(ids, arrays[1:], strict=False):
                blocks[name].append(block)
            if index == 0:
                found["state"] = arrays[-1]
        return found | {name: partitioning.join_blocks(split[name], blocks[name]) for name in ids}


@contextmanager
def servers(count: int) -> Iterator[Servers]:
    running = Servers(count)
    try:
        yield running
    finally:
        running.close()


@contextmanager
def training_servers(count: int, model: ModelDefinition, mode: Mode = ASYNC) -> Iterator[Servers]:
    """Servers that are arranged, defined and open."""
    with servers(count) as running:
        running.arrange(mode)
        running.define(model)
        running.open()
        yield running
