"""A model, servers in threads of the test, and workers that train the model on them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from edl import frameworks
from edl.frameworks import Minibatches
from edl.models.weights import loads, save
from edl.program import Program
from edl.ps.checkpoint.content import Mode
from edl.spec import Cluster
from edl.tasks.protocol import Servers as Known
from edl.tasks.task import Report, Task, TaskType
from edl.worker.strategies.factory import on_servers
from edl.worker.strategies.ps_base import ServerStrategy
from tests.edl.frameworks.adapter_cases import program
from tests.edl.ps.servers import TOKEN, Servers

SIZE = 16
ROWS = 200 * SIZE
rng = np.random.default_rng(11)
FEATURES: dict[str, Any] = {
    "x": rng.normal(size=(ROWS, 1)).astype(np.float32),
    "f0": rng.integers(0, 300, ROWS),
    "f1": rng.integers(0, 300, ROWS),
}
LABELS = (np.sin(FEATURES["f0"] / 50) + FEATURES["x"][:, 0])[:, None].astype(np.float32)

# Two embeddings, BatchNorm, dropout and Adam.
MODELS = {
    "keras": """

from edl.keras import Embedding


def custom_model():
    kinds = {"x": ((1,), "float32"), "f0": ((), "int64"), "f1": ((), "int64")}
    inputs = {name: keras.Input(shape, dtype=dtype, name=name) for name, (shape, dtype) in kinds.items()}
    both = Embedding("both", 4, "sum")([inputs["f0"], inputs["f1"]])
    one = Embedding("one", 2, initial="normal")(inputs["f0"])
    hidden = keras.layers.Concatenate()([inputs["x"], both, one])
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(8, activation="tanh")(hidden))
    return keras.Model(inputs, keras.layers.Dense(1)(keras.layers.Dropout(0.2, seed=3)(hidden)))


def optimizer():
    return keras.optimizers.Adam()
""",
    "torch": """

from edl.torch import Embedding


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = Embedding("both", 4, "sum")
        self.one = Embedding("one", 2, initial="normal")
        self.hidden = nn.Linear(7, 8)
        self.output = nn.Sequential(nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 1))

    def forward(self, features):
        vectors = [features["x"], self.both(features["f0"], features["f1"]), self.one(features["f0"])]
        return self.output(torch.tanh(self.hidden(torch.cat(vectors, dim=1))))


def optimizer(parameters):
    return torch.optim.Adam(parameters)
""",
}


def subject(
    folder: Path, framework: str, append: str = "", replace: Mapping[str, str] | None = None
) -> Program:
    text = MODELS[framework]
    for old, new in (replace or {}).items():
        assert old in text
        text = text.replace(old, new)
    return program(folder, framework, append=text + append)


def part(first: int, last: int) -> Minibatches:
    """The minibatches [first, last)."""
    some = slice(first * SIZE, last * SIZE)
    return Minibatches({name: array[some] for name, array in FEATURES.items()}, LABELS[some], SIZE)


def create(model: Program, seed: int = 1) -> frameworks.Adapter:
    first = part(0, 1)
    return frameworks.create(
        model, {name: array[:2] for name, array in first.features.items()}, LABELS[:2], seed=seed
    )


class Place:
    """Knows where the servers are; a test moves them."""

    def __init__(self, servers: Servers) -> None:
        self.changed = threading.Condition()
        self.servers: Known | None = None
        self.ended = False
        self.store = servers.store
        self.tell(servers)

    def tell(self, servers: Servers) -> None:
        with self.changed:
            number = self.servers.number + 1 if self.servers else 1
            self.servers = Known(number, servers.generation, servers.addresses, ready=True)
            self.changed.notify_all()

    def wait_for_servers(self, after: int, seconds: float) -> Known | None:
        def found() -> bool:
            return self.servers is not None and self.servers.ready and self.servers.number > after

        with self.changed:
            return self.servers if self.changed.wait_for(found, seconds) else None

    def is_over(self, kind: TaskType) -> bool:
        return self.ended


class OneWorker:
    """A strategy of one worker, and the steps that it takes."""

    def __init__(
        self,
        model: Program,
        place: Place,
        folder: Path,
        cluster: Cluster,
        *,
        name: str = "worker-0",
        incarnation: int = 0,
        seed: int = 1,
        start: Callable[[], Mapping[str, Any] | None] = lambda: None,
    ) -> None:
        self.adapter = create(model, seed)
        self.leaving = threading.Event()
        self.lease = 0
        self._folder = folder
        folder.mkdir(exist_ok=True)
        place.store.folder = folder
        self.strategy: ServerStrategy = on_servers(
            cluster, self.adapter, place, TOKEN, (name, incarnation),
            start=start, store=place.store, leaving=self.leaving,
        )  # fmt: skip

    def train(self, first: int, last: int, rates: Any = None) -> np.ndarray:
        """A task of the minibatches [first, last)."""
        self.lease += 1
        task = Task(self.lease, "train", first * SIZE, last * SIZE, 1, attempt=self.lease)
        return self.strategy.train(part(first, last), Report(task), rates)

    def weights(self) -> dict[str, np.ndarray]:
        """As they would go into an archive."""
        return self.weights_of(0)

    def weights_of(self, epoch: int) -> dict[str, np.ndarray]:
        file = self._folder / "weights"
        save(self.strategy.weights(epoch), file)
        return loads(file.read_bytes())


@contextmanager
def arranged(count: int, kind: str = "async", grads_to_wait: int = 1) -> Iterator[tuple[Servers, Place]]:
    """Servers that wait for a model."""
    running = Servers(count)
    try:
        running.arrange(Mode(kind, grads_to_wait))  # type: ignore[arg-type]
        yield running, Place(running)
    finally:
        running.close()


def cluster(strategy: Any, *, workers: int = 1, local_steps: int = 1, grads_to_wait: int = 1) -> Cluster:
    return Cluster(workers, 2, strategy, local_steps, grads_to_wait)


def close(found: Mapping[str, Any], expected: Mapping[str, Any], tolerance: float) -> None:
    """Names, ids and numbers are the same."""
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=tolerance, atol=tolerance, err_msg=name)
