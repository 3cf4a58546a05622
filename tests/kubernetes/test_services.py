"""Services of the double: their names in what containers are told, and connections that reach the pod of now."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest

from tests.kubernetes.pods import pod, until

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it

SERVE = """
import os, socket
with socket.create_server((os.environ["HOST"], 7000)) as server:
    print("listening", flush=True)
    while True:
        connection = server.accept()[0]
        with connection, connection.makefile("rw") as lines:
            for line in lines:
                lines.write(os.environ["HOSTNAME"] + ": " + line)
                lines.flush()
"""


def server(name: str) -> dict[str, Any]:
    """A pod that says its name before every line that it is sent."""
    body = pod(name, "")
    body["metadata"]["labels"] = {"app": "served"}
    body["spec"]["terminationGracePeriodSeconds"] = 0
    [container] = body["spec"]["containers"]
    container["command"] = ["python", "-c", SERVE]
    field = {"fieldRef": {"fieldPath": "status.podIP"}}
    container["env"] = [{"name": "HOST", "valueFrom": field}]
    return body


def serve(core: Any, namespace: str, name: str) -> None:
    """Until it listens."""
    created = core.create_namespaced_pod(namespace, server(name))
    until(core, namespace, created, "Running")
    lines = core.read_namespaced_pod_log(name, namespace, follow=True, _preload_content=False)
    assert next(lines.stream()) == b"listening\n"
    lines.close()


def asked(address: tuple[str, int]) -> str:
    with socket.create_connection(address) as connection, connection.makefile("rw") as lines:
        lines.write("hello\n")
        lines.flush()
        return lines.readline()


@pytest.fixture(params=["headless", "with an address"])
def address(core: Any, namespace: str, request: pytest.FixtureRequest) -> tuple[str, int]:
    """What a pod is told of a Service whose name is in its environment."""
    spec: dict[str, Any] = {"selector": {"app": "served"}, "ports": [{"port": 7777, "targetPort": 7000}]}
    if request.param == "headless":
        spec |= {"clusterIP": "None", "publishNotReadyAddresses": True}
    core.create_namespaced_service(namespace, {"metadata": {"name": "found"}, "spec": spec})
    body = pod("asks", f"echo $AT; echo other.{namespace}.svc found.{namespace}.svc.cluster.local")
    at = {"name": "AT", "value": f"found.{namespace}.svc:7777"}
    body["spec"]["containers"][0]["env"] = [at]
    until(core, namespace, core.create_namespaced_pod(namespace, body), "Succeeded")
    told, other, long = core.read_namespaced_pod_log("asks", namespace).split()
    host, port = told.split(":")
    assert re.fullmatch(r"127\.\d+\.\d+\.\d+", host)
    assert (other, long) == (f"other.{namespace}.svc", host)
    return host, int(port)


def test_the_name_of_a_service_leads_to_the_pod_that_is_there(
    core: Any, namespace: str, address: tuple[str, int]
) -> None:
    with pytest.raises(ConnectionError):
        asked(address)
    serve(core, namespace, "one")
    assert asked(address) == "one: hello\n"
    core.delete_namespaced_pod("one", namespace)
    serve(core, namespace, "two")
    assert asked(address) == "two: hello\n"
    core.delete_namespaced_service("found", namespace)
