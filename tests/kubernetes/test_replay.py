"""The double answers what a real API server answered: v1.33 recorded, request by request and event by event."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubernetes.process import api_server
from tests.kubernetes.replay import Replay

# What of a trace the double does not do as the real cluster did, and why. Each must still be met, else it is stale.
EXCEPTIONS: dict[str, dict[str, str]] = {
    "01-job-owner-gc": {
        "watch-configmaps: ADDED kube-root-ca.crt.object": "the double has no certificates",
    },
    "02-hand-made-pods-owned-by-job": {},
    "03-list-watch-selectors": {},
    "04-errors-and-writes": {},
    "07-rbac": {
        "version-allowed-to-all version: .body.gitCommit": "nobody built the double from a commit",
    },
    "09-job-policies": {},
    "10-pod-spec-defaults": {
        "watch-pods: MODIFIED bare.object.status": "the double has every image",
        "watch-pods: MODIFIED root-refused.object.status": "the double runs as who runs the tests",
        "log log: .body": "it says the user, the paths and the rights in the container's file system",
        "final root-refused: .body.status": "as above",
        "final root-refused: .body.metadata.resourceVersion": "as above",
    },
}
# Pods that were made beside the recording, for its watches to see.
UNRECORDED = {"07-rbac": {"after-removal"}}


@pytest.mark.parametrize("name", EXCEPTIONS)
def test_the_double_does_as_a_real_api_server_did(name: str, tmp_path: Path) -> None:
    namespace = f"trace-{name[:2]}"
    with api_server(tmp_path, pace="real") as cluster:
        for made in (namespace, f"{namespace}-other"):
            cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": made}})
        replay = Replay(cluster, name, EXCEPTIONS[name], set(UNRECORDED.get(name, ())))
        replay.run()
    assert replay.differences == []
    assert replay.used == set(EXCEPTIONS[name])
