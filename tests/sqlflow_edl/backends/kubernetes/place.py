"""Where whole jobs of the tests run: on the double, or in the cluster of the kubeconfig that EDL_TEST_KUBECONFIG names.

There, EDL_TEST_IMAGE is the image of all containers, and of a MariaDB which the tests start; its target is `test`. The
database is on a port of its node, where it is reached from here and from pods. All is in one namespace, which goes at
the end.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.connect import connect
from edl.data import connect as connect_source
from edl.errors import SourceError
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main
from tests.kubernetes.process import Cluster
from tests.mariadb import PASSWORD, Server

CONFIG, IMAGE = "EDL_TEST_KUBECONFIG", "EDL_TEST_IMAGE"
START_SECS = 120.0  # that a database may take in a pod
PORTS = range(31_000, 32_000)  # of a node
TEMPLATE = Path(__file__).parent / "fixtures" / "local.yaml"  # of pods that are processes of this machine

# What a pod runs that is a database; its data go with it. The server reads a statement a line there.
DATABASE = f"""set -e
mariadb-install-db --no-defaults --datadir=/tmp/data --auth-root-authentication-method=normal --skip-test-db >/dev/null
echo "CREATE USER owner@'%' IDENTIFIED BY '{PASSWORD}';" >/tmp/init
echo "GRANT ALL ON *.* TO owner@'%' WITH GRANT OPTION;" >>/tmp/init
exec mariadbd --no-defaults --datadir=/tmp/data --socket=/tmp/s --pid-file=/tmp/pid --init-file=/tmp/init \\
  --port="$1" --bind-address=0.0.0.0 --skip-name-resolve --character-set-server=utf8mb4
"""

# Small, for a node with little to give.
SETTINGS = {
    "master_cpu": "0.1",
    "worker_cpu": "0.2",
    "ps_cpu": "0.1",
    "worker_cpu_limit": "2",
    "ps_cpu_limit": "2",
    "master_memory": "512Mi",
}


@dataclass
class Place:
    """A namespace, and a database with the rows of a test.

    url: of the database, from here and from pods. double: None in a real cluster.
    """

    namespace: str
    url: str
    calls: Calls
    image: str = "sqlflow-edl:test"
    settings: Mapping[str, str] = field(default_factory=dict)
    double: Cluster | None = None

    @property
    def options(self) -> list[str]:
        """Of `sqlflow run`."""
        settings = [f"--set={name}={value}" for name, value in {**SETTINGS, **self.settings}.items()]
        where = ["--on", "kubernetes", "--namespace", self.namespace, "--image", self.image]
        return ["--source", self.url, *where, *settings]

    def query(self, sql: str) -> list[dict[str, Any]]:
        with connect_source(self.url) as source:
            reader = source.execute(sql)
            return reader.read_all().to_pylist() if reader is not None else []

    def pods(self, role: str = "") -> list[dict[str, Any]]:
        """Of jobs."""
        selector = "sqlflow-edl/role" + (f"={role}" if role else "")
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        answer = self.calls.ask("GET", path, query={"labelSelector": selector})
        return msgspec.json.decode(answer)["items"]  # type: ignore[no-any-return]

    def objects(self, group: str, plural: str, selector: str = "") -> list[dict[str, Any]]:
        """All of a kind; group: the path of its version."""
        query = {"labelSelector": selector}
        answer = self.calls.ask("GET", f"{group}/namespaces/{self.namespace}/{plural}", query=query)
        return msgspec.json.decode(answer)["items"]  # type: ignore[no-any-return]

    def pod(self, name: str, incarnation: int | None = None) -> dict[str, Any] | None:
        """Find the pod of an instance, by default of its last start; None if there is none."""
        found = {
            int(pod["metadata"]["labels"]["sqlflow-edl/incarnation"]): pod
            for pod in self.pods()
            if pod["metadata"]["labels"].get("sqlflow-edl/instance") == name
        }
        return found.get(max(found, default=-1) if incarnation is None else incarnation)

    def make(self, group: str, plural: str, name: str, **rest: Any) -> None:
        path = f"{group}/namespaces/{self.namespace}/{plural}"
        self.calls.ask("POST", path, {"metadata": {"name": name}, **rest})

    def patch(self, group: str, plural: str, found: dict[str, Any], change: dict[str, Any]) -> None:
        path = f"{group}/namespaces/{self.namespace}/{plural}/{found['metadata']['name']}"
        self.calls.ask("PATCH", path, change)

    def evict(self, pod: dict[str, Any] | None) -> None:
        """As who drains its node does."""
        assert pod is not None
        name = pod["metadata"]["name"]
        path = f"/api/v1/namespaces/{self.namespace}/pods/{name}/eviction"
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}}
        self.calls.ask("POST", path, body)

    def delete_all(self) -> None:
        """All pods of jobs at once."""
        path = f"/api/v1/namespaces/{self.namespace}/pods"
        body = {"gracePeriodSeconds": 0}
        self.calls.ask("DELETE", path, body, query={"labelSelector": "sqlflow-edl/role"})

    def delete(self, pod: dict[str, Any] | None, grace: int) -> None:
        """A grace of 0 kills it."""
        assert pod is not None
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod['metadata']['name']}"
        self.calls.ask("DELETE", path, {"gracePeriodSeconds": grace})


@pytest.fixture
def place(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Place]:
    if config := os.environ.get(CONFIG):
        monkeypatch.setenv("KUBECONFIG", config)
        with real(os.environ[IMAGE]) as found:
            yield found
        return
    cluster: Cluster = request.getfixturevalue("kubernetes")
    namespace: str = request.getfixturevalue("namespace")
    mariadb: Server = request.getfixturevalue("mariadb")
    settings = {"pod_template": str(TEMPLATE)}
    yield Place(namespace, mariadb.url(), Calls(connect()), settings=settings, double=cluster)
    cluster.ask("DELETE", f"/apis/batch/v1/namespaces/{namespace}/jobs", {"propagationPolicy": "Background"})


@contextmanager
def real(image: str) -> Iterator[Place]:
    """A new namespace of the cluster that the kubeconfig names, as long as this lasts."""
    calls, namespace = Calls(connect()), f"sqlflow-edl-test-{secrets.token_hex(3)}"
    calls.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    try:
        url = _database(calls, namespace, image)
        with connect_source(f"{url}mysql") as source:
            source.execute("CREATE DATABASE rows_of_tests")
        yield Place(namespace, f"{url}rows_of_tests", calls, image)
    finally:
        calls.ask("DELETE", f"/api/v1/namespaces/{namespace}")


def _database(calls: Calls, namespace: str, image: str) -> str:
    """Start one; its URL, up to the name of a database."""
    port = secrets.choice(PORTS)
    container = {
        "name": "mariadb",
        "image": image,
        "command": ["sh", "-c", DATABASE, "sh", str(port)],
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}],  # noqa: S108
    }
    volumes = [{"name": "tmp", "emptyDir": {}}]
    spec = {
        "containers": [container],
        "volumes": volumes,
        "hostNetwork": True,
        "terminationGracePeriodSeconds": 1,
    }
    path = f"/api/v1/namespaces/{namespace}/pods"
    calls.ask("POST", path, {"metadata": {"name": "database"}, "spec": spec})
    password = PASSWORD.replace("%", "%25")

    def url() -> str:
        host = msgspec.json.decode(calls.ask("GET", f"{path}/database"))["status"].get("hostIP", "")
        return f"mysql://owner:{password}@{host}:{port}/"

    until(lambda: _answers(url()), START_SECS)
    return url()


def _answers(url: str) -> bool:
    try:
        with connect_source(f"{url}mysql"):
            return True
    except SourceError:
        return False


def until(
    true: Callable[[], object],
    seconds: float = 60.0,
    pause: float = 0.1,
    words: Callable[[], str] = lambda: "it has not come true",
) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, words()
        time.sleep(pause)


def run_command(capsys: pytest.CaptureFixture[str], *command: str) -> str:
    """Run a command that succeeds; return its words."""
    capsys.readouterr()
    assert main(list(command)) == exit_codes.OK, capsys.readouterr().err
    return capsys.readouterr().err
