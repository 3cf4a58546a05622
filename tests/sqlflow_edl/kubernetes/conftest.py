"""A namespace of the double as a user finds it, through a kubeconfig; and a play in it, for tests that ask for one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.kubernetes.process import Cluster
from tests.sqlflow_edl.kubernetes.play import Play, Told


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """kubeconfig(url, token, namespace): a file with one context, that KUBECONFIG names from then on."""

    def write(url: str, token: str, namespace: str = "") -> Path:
        place: dict[str, Any] = {
            "cluster": "c",
            "user": "u",
            **({"namespace": namespace} if namespace else {}),
        }
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "here",
            "contexts": [{"name": "here", "context": place}],
            "clusters": [{"name": "c", "cluster": {"server": url}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        path = tmp_path / "kubeconfig"
        path.write_text(yaml.safe_dump(config))
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
