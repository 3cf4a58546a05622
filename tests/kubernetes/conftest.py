"""A namespace of its own for every test, and the official client as it comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kubernetes.process import Cluster


@pytest.fixture
def namespace(kubernetes: Cluster) -> Iterator[str]:
    kubernetes.go_wrong()
    name = kubernetes.new_namespace()
    yield name
    kubernetes.go_wrong()
    kubernetes.ask("DELETE", f"/api/v1/namespaces/{name}/pods", {"gracePeriodSeconds": 0})


@pytest.fixture
def core(kubernetes: Cluster) -> Iterator[Any]:
    from kubernetes import client

    with kubernetes.client() as api:
        yield client.CoreV1Api(api)
