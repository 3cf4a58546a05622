"""What an instance finds in its environment."""

from __future__ import annotations

import pytest

from edl.cluster.environment import environment, own_address, own_host


def test_processes_of_a_machine_listen_on_its_own_address() -> None:
    assert (own_host(), own_address()) == ("127.0.0.1", "127.0.0.1:0")


@pytest.mark.parametrize(("host", "address"), [("10.1.2.3", "10.1.2.3:7"), ("fd00::1", "[fd00::1]:7")])
def test_in_a_container_it_is_the_pods(monkeypatch: pytest.MonkeyPatch, host: str, address: str) -> None:
    monkeypatch.setenv("EDL_HOST", host)
    assert (own_host(), own_address(7)) == (host, address)


def test_the_pools_of_libraries_have_the_threads_of_the_instance() -> None:
    found = environment(3, {"MINE": "yes"})
    assert (found["OMP_NUM_THREADS"], found["PYTHONHASHSEED"], found["MINE"]) == ("3", "0", "yes")


@pytest.mark.parametrize("written", ["", "timeout:9"])
def test_a_name_server_that_does_not_answer_is_asked_again_soon_unless_somebody_says_otherwise(
    monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    monkeypatch.delenv("RES_OPTIONS", raising=False)
    if written:
        monkeypatch.setenv("RES_OPTIONS", written)
    assert environment(1)["RES_OPTIONS"] == (written or "timeout:1 attempts:3")
