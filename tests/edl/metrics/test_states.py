"""States of metrics over the wire."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from edl import metrics
from edl.errors import SpecError


def test_a_state_comes_back_as_it_was() -> None:
    labels, scores = np.array([0, 1, 2, 1]), np.random.default_rng(0).dirichlet(np.ones(3), 4)
    for metric in (metrics.AUC(exact=True), metrics.F1(), metrics.Accuracy()):
        state = metric.update(metric.zero(), labels, scores)
        again = metrics.load(metrics.dump(state))
        assert len(again) == len(state)
        assert all(np.array_equal(a, b) for a, b in zip(again, state, strict=True))
        assert metric.result(metric.merge(again, metric.zero())) == metric.result(state)


def test_the_state_of_no_rows_comes_back() -> None:
    assert metrics.load(metrics.dump(metrics.RMSE().zero())) == ()


def test_a_loaded_state_may_be_written_to() -> None:
    (array,) = metrics.load(metrics.dump((np.zeros(3),)))
    array += 1
    assert array.sum() == 3


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x00",
        b"not msgpack",
        msgspec.msgpack.encode([[[2], b"\0" * 8]]),
        msgspec.msgpack.encode([[[-1, -1], b"\0" * 8]]),
        msgspec.msgpack.encode([[["a"], b""]]),
    ],
)
def test_a_damaged_state_is_refused(data: bytes) -> None:
    with pytest.raises(SpecError, match="not the state of a metric"):
        metrics.load(data)
