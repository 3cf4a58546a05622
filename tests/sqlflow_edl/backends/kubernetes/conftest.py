"""A namespace of the double as a user finds it, through a kubeconfig; and a play in it, for tests that ask for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sqlflow_edl.backends.kubernetes.following import START_LOOK
from tests.kubernetes.process import Cluster
from tests.sqlflow_edl.backends.kubernetes.kubeconfig import write_kubeconfig
from tests.sqlflow_edl.backends.kubernetes.play import Play, Told


@pytest.fixture(autouse=True)
def frequent_polls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are polled as often as while they start, so that no test waits for a poll."""
    monkeypatch.setattr("sqlflow_edl.backends.kubernetes.following.CALM_LOOK", START_LOOK)


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """kubeconfig(url, token, namespace): a file with one context, that KUBECONFIG names from then on."""

    def write(url: str, token: str, namespace: str = "") -> Path:
        path = tmp_path / "kubeconfig"
        write_kubeconfig(path, url, token, namespace)
        monkeypatch.setenv("KUBECONFIG", str(path))
        return path

    return write


@pytest.fixture
def namespace(kubernetes: Cluster, kubeconfig: Callable[..., Path]) -> str:
    """A new one, which the user's context names; the user is the administrator."""
    kubernetes.go_wrong()
    name = kubernetes.new_namespace()
    kubeconfig(kubernetes.url, kubernetes.administrator, name)
    return name


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def play(kubernetes: Cluster, namespace: str, tmp_path: Path) -> Iterator[Play]:
    made = Play(kubernetes, namespace, tmp_path / "pipe")
    yield made
    kubernetes.go_wrong()
    made.close()
    kubernetes.ask(
        "DELETE", f"/apis/batch/v1/namespaces/{namespace}/jobs", {"propagationPolicy": "Background"}
    )
