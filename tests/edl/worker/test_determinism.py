"""Training is a function of rows, settings and seed, in both frameworks; how fast it runs changes no bit."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.jobs.events import Figures
from edl.spec import Rows
from edl.worker import loop, trainer
from edl.worker.loop import StepsPerCall
from tests.edl.programs import FRAMEWORKS, Events, loaded, rows_of, simple

RATE = "\n\ndef learning_rate(steps):\n    return 0.01 * 0.98 ** steps\n"
WEIGHTED = """

def feed(batch, mode):
    weights = abs(batch.column("x").to_numpy())
    return FEATURES.transform(batch), LABEL.transform(batch, mode), weights
"""
EDITS = {
    "keras": {
        "keras.optimizers.Adam(lr)": "keras.optimizers.Adam(lr, global_clipnorm=0.5)",
        "(concatenated(FEATURES, inputs))": (
            "(concatenated(FEATURES, inputs))\n    hidden = keras.layers.Dropout(0.2)(hidden)"
        ),
    },
    "torch": {
        "torch.optim.Adam(parameters, lr, fused=True)": (
            "clipped(torch.optim.Adam(parameters, lr, fused=True), global_clipnorm=0.5)"
        ),
        "import Concatenated": "import Concatenated, clipped",
        "torch.relu(self.hidden(self.features(features)))": (
            "F.dropout(torch.relu(self.hidden(self.features(features))), 0.2, self.training)"
        ),
    },
}


def slow(count: Iterator[int]) -> float:
    """A clock by which every call takes a second, so that calls stay at one step."""
    return float(next(count))


def fast() -> float:
    """A clock by which nothing takes time, so that calls grow."""
    return 0.0


Weights = dict[str, Any]


@pytest.fixture(scope="module", params=FRAMEWORKS)
def train(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Train on 300 rows, 60 of them held out, with all that a program can have: the weights and the curve."""
    draw = np.random.default_rng(1)
    x = draw.normal(size=300)
    data = pa.table({"x": x, "y": 3 * x + draw.normal(size=300)})
    rows = Rows(True, 300, 240, 60)

    def run(clock: Callable[[], float], seed: int = 1) -> tuple[Weights, list[tuple[float | None, Figures]]]:
        folder = tmp_path_factory.mktemp("job")
        program = loaded(
            simple(
                folder / "program",
                request.param,
                rows=rows,
                replace=EDITS[request.param],
                append=RATE + WEIGHTED,
                epochs=4,
                batch_size=16,
                seed=seed,
                keep="best",
                early_stopping=2,
            )
        )
        reader = rows_of(folder / "rows", data)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(loop, "StepsPerCall", partial(StepsPerCall, clock))
            outcome, adapter = trainer.train(
                program, reader, rows, observer=Events(), cancelled=threading.Event()
            )
        return adapter.get_weights(), [(row.loss, row.metrics) for row in outcome.curve]

    return run


def same(one: Weights, other: Weights) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


def test_the_figures_and_weights_do_not_depend_on_the_pace(train: Callable[..., Any]) -> None:
    weights, curve = train(partial(slow, itertools.count()))
    quick, its_curve = train(fast)
    assert same(weights, quick)
    assert [row[1] for row in curve] == [row[1] for row in its_curve]
    assert [row[0] for row in curve] == pytest.approx([row[0] for row in its_curve], rel=1e-12)


def test_the_same_seed_gives_the_same_weights_and_another_does_not(train: Callable[..., Any]) -> None:
    first, again, other = train(fast)[0], train(fast)[0], train(fast, seed=2)[0]
    assert same(first, again)
    assert not same(first, other)
