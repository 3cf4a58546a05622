"""The double answers what a real API server answered: v1.33 recorded, request by request and event by event."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.kubernetes.process import api_server
from tests.kubernetes.recording import Known
from tests.kubernetes.replay import Replay

TORN_DOWN = "the node told of the pod's end before it had taken all of it down"
INIT = "the first process of a container cannot kill itself, a process of the double can"
TRIES = "how often it is tried to start or to place a pod is up to how busy all are"
ONE_STREAM = "the double has one stream for a container's output and errors: a line of both is one line"
NO_LIMITS = "the double's pods run out of memory when a test says so"
# Each difference must still be met, else it is stale.
TRACES: dict[str, Known] = {
    "01-job-owner-gc": Known(
        {"watch-configmaps: ADDED kube-root-ca.crt.object": "the double has no certificates"},
    ),
    "02-hand-made-pods-owned-by-job": Known(races={"watch-pods 2035": TORN_DOWN}),
    "03-list-watch-selectors": Known(),
    "04-errors-and-writes": Known(),
    "05-pod-phases": Known(
        {
            "watch-pods: MODIFIED killed.object.status.containerStatuses[0].state.terminated.exitCode": INIT,
            "final-list pods: .body.items[10].status.containerStatuses[0].state.terminated.exitCode": INIT,
            "watch-pods: MODIFIED oom.object.status": NO_LIMITS,
            "final-list pods: .body.items[14].status": NO_LIMITS,
            "events events: .body.items: 2 items recorded, 1 here": TRIES,
            **{f"events events: .body.items[{number}].count": TRIES for number in range(1, 5)},
        },
        races={"watch-pods 3118": "the node saw two containers first when one of them had ended"},
        late=frozenset({"watch-pods 3006", "watch-pods 3219", "watch-pods 3224"}),
        hurry=0.5,
        passing=frozenset(f"watch-pods {number}" for number in (2867, 2978, 3114, 3137, 3220, 3223)),
        words={"python3": "true"},
    ),
    "06-delete-evict-preempt": Known(hurry=0.3, cores="2"),
    "07-rbac": Known(
        {"version-allowed-to-all version: .body.gitCommit": "nobody built the double from a commit"},
        unrecorded=frozenset({"after-removal"}),  # its watches see it
    ),
    "08-logs": Known(
        {"tail-2 log: .body": ONE_STREAM, "timestamps log: .body": ONE_STREAM},
        hurry=0.3,
        words={
            "sleep 0.7": "sleep 3",  # so that it is followed in time
            "echo tick; sleep 1": "echo tick; sleep 0.3",
            'echo err >&2; printf "no newline"': 'printf "no newline"; echo err >&2',  # as they came
        },
    ),
    "09-job-policies": Known(
        {"watch-pods: MODIFIED eff-0-cgtmw.object.status.phase": "as in its race"},
        races={
            "watch-pods 2036": TORN_DOWN,
            "watch-pods 2476": "the node saw a pod run that ended at once",
        },
        was_busy=True,
    ),
    "10-pod-spec-defaults": Known(
        {
            "watch-pods: MODIFIED bare.object.status": "the double has every image",
            "watch-pods: MODIFIED root-refused.object.status": "the double runs as who runs the tests",
            "log log: .body": "it says the user, the paths and the rights in the container's file system",
            "final root-refused: .body.status": "as above",
            "final root-refused: .body.metadata.resourceVersion": "as above",
        }
    ),
}
SHORT = ("03-list-watch-selectors", "04-errors-and-writes", "07-rbac")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.soak]) for name in TRACES]
)
def test_the_double_does_as_a_real_api_server_did(name: str, tmp_path: Path) -> None:
    namespace = f"trace-{name[:2]}"
    with api_server(tmp_path, pace="real") as cluster:
        for made in (namespace, f"{namespace}-other"):
            cluster.ask("POST", "/api/v1/namespaces", {"metadata": {"name": made}})
        if TRACES[name].cores:
            cluster.capacity(cpu=TRACES[name].cores)
        words = {"/tmp/ok": str(tmp_path / "ok")}  # noqa: S108 - in a pod
        known = replace(TRACES[name], words=words | TRACES[name].words)
        replay = Replay(cluster, name, known)
        replay.run()
    assert replay.differences == []
    assert replay.met == TRACES[name].all()
