"""Logs of pods, read again and again."""

from __future__ import annotations

from typing import cast

import pytest

from edl.cluster.kubernetes.pods import Metadata, Pod
from sqlflow_edl.backends.kubernetes.job_status import JobObjects
from sqlflow_edl.backends.kubernetes.logs.pod import PodLog, Seen

TIMES = [
    b"2026-01-01T00:00:00.000000001Z",
    b"2026-01-01T00:00:00.000000002Z",
    b"2026-01-01T00:00:01.000000000Z",
]


@pytest.mark.parametrize("skipped", [0, 1])
def test_lines_are_new_once_from_wherever_a_log_is_read_again(skipped: int) -> None:
    first, second, third = TIMES
    read = [first, second, second]
    seen = Seen()
    assert [seen.is_new(stamp) for stamp in read] == [True, True, True]
    seen.again()
    assert not any(seen.is_new(stamp) for stamp in read[skipped:])
    assert [seen.is_new(stamp) for stamp in (second, third)] == [True, True]  # one more of the same time


def test_a_line_with_an_earlier_time_than_the_one_before_is_new_once() -> None:
    """The end of a job, on standard output, had an earlier time than the last line of standard error."""
    first, second, third = TIMES
    seen = Seen()
    assert [seen.is_new(stamp) for stamp in (first, third, second)] == [True, True, True]
    seen.again()
    assert not any(seen.is_new(stamp) for stamp in (first, third, second))


def test_lines_that_are_not_remembered_any_more_count_as_read() -> None:
    first, second, third = TIMES
    seen = Seen(most=2)
    assert all(seen.is_new(stamp) for stamp in TIMES)
    seen.again()
    assert not any(seen.is_new(stamp) for stamp in (first, second, third))


@pytest.mark.parametrize(
    ("follow", "lines"), [(True, ["{}"]), (False, ["{}", "unable to retrieve container logs"])]
)
def test_words_of_the_kubelet_are_no_lines_of_a_followed_master(follow: bool, lines: list[str]) -> None:
    class Response:
        def stream(self, _: int) -> list[bytes]:
            return [TIMES[0] + b" {}\n", b"unable to retrieve container logs"]

        def close(self) -> None: ...

    class Objects:
        def pod(self, name: str) -> None: ...

        def log(self, pod: Pod, *, follow: bool, since_secs: int | None) -> Response:
            return Response()

    assert list(PodLog(cast(JobObjects, Objects()), Pod(Metadata("m")), follow=follow)) == lines
