"""Wishes of users that a master reads from its Job."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edl.cluster import Wishes
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.pods import Metadata
from edl.cluster.kubernetes.wishes import JobWishes, wishes_of
from tests.edl.cluster.kubernetes.conftest import Site
from tests.kubernetes.faults import Fault


@pytest.mark.parametrize(
    ("annotations", "found"),
    [
        (None, Wishes()),
        ({"team": "a"}, Wishes()),
        ({names.WORKERS: "3"}, Wishes(workers=3)),
        ({names.PAUSED: "true", names.WORKERS: "3"}, Wishes(workers=3, paused=True)),
        ({names.PAUSED: "false", names.WORKERS: "many"}, Wishes()),
        ({names.WORKERS: "0"}, Wishes()),
        ({names.CANCELLED: "true"}, Wishes(cancelled=True)),
        ({names.WORKERS: "-2"}, Wishes()),
    ],
)
def test_wishes_are_annotations(annotations: dict[str, str] | None, found: Wishes) -> None:
    assert wishes_of(Metadata(annotations=annotations)) == found


def test_a_master_reads_them_and_keeps_the_last_ones_while_it_cannot(
    site: Callable[..., Site], capfd: pytest.CaptureFixture[str]
) -> None:
    place = site()
    path = f"/apis/batch/v1/namespaces/{place.namespace}/jobs/{place.deployment.name}"
    wishes = JobWishes(place.double.client(), place.deployment)
    assert wishes.read() == Wishes()
    Calls(place.double.client()).ask("PATCH", path, {"metadata": {"annotations": {names.WORKERS: "5"}}})
    assert wishes.read() == Wishes(workers=5)
    place.double.go_wrong(Fault("status", f"GET {path}", status=403, times=2))
    assert wishes.read() == wishes.read() == Wishes(workers=5)
    place.double.go_wrong(Fault("cut", f"GET {path}", times=2))
    assert wishes.read() == Wishes(workers=5)
    said = capfd.readouterr()
    assert (said.out + said.err).count("have no effect, because the Job cannot be read") == 1
