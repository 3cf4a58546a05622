"""Check of the nodes of a group: what it says, and of whom."""

from __future__ import annotations

import numpy as np
import pytest

from edl.extensions.elastic import member
from edl.extensions.elastic.member import LIMIT_SECS, measure_product, node_findings

NAMES = ("worker-0", "worker-1", "worker-2")


class Sums:
    """Group in which the other members are as fast as they are said to be."""

    rank, timeout = 0, 60.0

    def __init__(self, *others: float) -> None:
        self._others = others

    def gather(self, own: np.ndarray) -> np.ndarray:
        return np.array([own, *([each, 0] for each in self._others)])

    def sum(self, array: np.ndarray) -> None:
        self.summed = array.nbytes, self.timeout


def test_nodes_that_are_about_as_fast_are_not_mentioned() -> None:
    assert node_findings(NAMES, (0.001, 0.002, 0.0029), 0.1) == []
    assert node_findings(NAMES[:2], (0.0001, 0.0008), 0.1) == []  # noise of short times


@pytest.mark.parametrize("count", [2, 3])
def test_a_node_that_is_much_slower_than_most_is_named_with_both_times(count: int) -> None:
    seconds = (0.001, 0.0105, 0.0012)[:count]
    [line] = node_findings(NAMES[:count], seconds, 0.1)
    assert line.startswith("worker-1 is slow: a matrix product takes 10.5 ms there, and 1.")


def test_a_slow_sum_is_said_of_the_network() -> None:
    assert node_findings(NAMES, (0.001,) * 3, 2.5) == [
        "the network is slow: the sum of a megabyte over 3 workers takes 2.5 s"
    ]


def test_the_first_member_logs_what_it_finds_and_the_sum_has_a_time_limit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(member, "measure_product", lambda: 0.001)
    group = Sums(0.05, 0.001)
    assert member.check_nodes(group, NAMES, 2) == (2, 0, 0)  # type: ignore[arg-type]
    assert "worker-1 is slow" in capsys.readouterr().err
    assert group.summed == (1 << 20, LIMIT_SECS)


def test_a_process_is_measured_once() -> None:
    assert measure_product() == measure_product() > 0
