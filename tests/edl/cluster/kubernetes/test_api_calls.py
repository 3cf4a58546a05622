"""Requests to the API server: which ones are repeated, and the server's words in their errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from tests.edl.cluster.kubernetes.conftest import Site
from tests.kubernetes.faults import Fault

Sites = Callable[..., Site]


@pytest.mark.soak
def test_what_the_server_refuses_is_not_repeated(site: Sites) -> None:
    place = site()
    place.double.requests()
    with pytest.raises(APIRefusedError, match='pods "none" not found') as refused:
        Calls(place.double.client()).ask("GET", f"{place.path}/none")
    assert (refused.value.status, refused.value.reason) == (404, "NotFound")
    assert len(place.double.requests()) == 1


def test_who_is_not_known_is_refused(site: Sites) -> None:
    place = site()
    with pytest.raises(APIRefusedError, match="Unauthorized"):
        Calls(place.double.client("wrong")).ask("GET", place.path)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["drop", "throttle", "status"])
def test_what_may_pass_is_repeated(site: Sites, kind: str) -> None:
    place = site()
    place.double.requests()
    place.double.go_wrong(Fault(kind, "GET.*/pods"))  # type: ignore[arg-type]
    assert b"PodList" in Calls(place.double.client()).ask("GET", place.path)
    assert sum(request.endswith("/pods") for request in place.double.requests()) == 2


@pytest.mark.soak
def test_a_server_that_is_not_there_is_given_up_after_a_while() -> None:
    from kubernetes import client

    configuration = client.Configuration(host="http://127.0.0.1:9")
    configuration.retries = False
    with pytest.raises(
        APIUnreachableError, match=r"the API server of the cluster does not answer: .*refused"
    ):
        Calls(client.ApiClient(configuration), patience=0.3).ask("GET", "/version")


def test_nobody_waits_for_a_server_when_it_is_closed(site: Sites) -> None:
    place = site()
    place.double.go_wrong(Fault("status", "GET.*/pods", status=503, times=10**6))
    calls = Calls(place.double.client(), patience=10**6)
    ended = threading.Event()

    def ask() -> None:
        with pytest.raises(APIUnreachableError):
            calls.ask("GET", place.path)
        ended.set()

    asking = threading.Thread(target=ask)
    asking.start()
    calls.close()
    assert ended.wait(30.0)
    asking.join()
