"""What becomes of pods, as a real cluster told it: the recorded traces, and what they do not show."""

from __future__ import annotations

import copy
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from edl.cluster import Change, Instance
from edl.cluster.kubernetes.pod_state import is_unscheduled, obstacle, report_deleted_pod, to_change
from edl.cluster.kubernetes.pods import Pod

TRACES = Path(__file__).parents[3] / "kubernetes" / "traces"
WORKER = Instance("worker-0", "worker")
NODE = "node-1"
HIGHER = "a pod of higher priority replaces it"
EVICTED = "it was evicted"
Pods = list[tuple[str, Pod]]  # types of events, and what they tell of


@cache
def recorded(name: str) -> dict[str, Pods]:
    """The pods of a trace by name, version by version."""
    found: dict[str, Pods] = {}
    specs: dict[str, Any] = {}
    for line in (TRACES / f"{name}.jsonl").read_text().splitlines():
        event = json.loads(line).get("event", {})
        told = event.get("object", {})
        if told.get("kind") == "Pod" and event["type"] != "BOOKMARK":
            if isinstance(told["spec"], str):  # the same as before
                told["spec"] = specs[told["metadata"]["uid"]]
            specs[told["metadata"]["uid"]] = told["spec"]
            found.setdefault(told["metadata"]["name"], []).append((event["type"], msgspec.convert(told, Pod)))
    return found


def course(pods: Pods) -> list[Change]:
    """What is told, up to the first end; what is told twice once."""
    found: list[Change] = []
    for kind, pod in pods:
        change = (report_deleted_pod if kind == "DELETED" else to_change)(pod, WORKER)
        if not found or found[-1] != change:
            found.append(change)
        if change.state == "ended":
            break
    return found


@pytest.mark.parametrize(
    ("trace", "pod", "states", "end"),
    [
        ("05", "exit0", "pending ended", ("done", 0, "exit code 0")),
        ("05", "exit3", "pending ended", ("lost", 3, "exit code 3")),
        ("05", "sleep3", "pending running ended", ("done", 0, "exit code 0")),
        ("05", "killed", "pending ended", ("failed", 1, "exit code 1")),
        ("05", "oom", "pending ended", ("out of memory", -9, "out of memory (limit 100Mi)")),
        ("05", "message", "pending ended", ("failed", 1, "exit code 1: the last word")),
        (
            "05",
            "init-fails",
            "pending ended",
            ("failed", None, "its init container i ended with exit code 4"),
        ),
        ("05", "init-ok", "pending running ended", ("done", 0, "exit code 0")),
        ("05", "two-containers", "pending ended", ("done", 0, "exit code 0")),
        (
            "05",
            "deadline",
            "pending running ended",
            (
                "failed",
                -9,
                "it exceeded the deadline of its pod: Pod was active on the node longer than the specified deadline",
            ),
        ),
        (
            "05",
            "image-missing",
            "pending ended",
            ("lost", None, "The container could not be located when the pod was terminated"),
        ),
        (
            "05",
            "unschedulable",
            "pending ended",
            ("lost", None, "its pod was deleted, and its exit code is unknown"),
        ),
        ("06", "graceful", "pending running ended", ("failed", 7, "exit code 7")),
        ("06", "stubborn", "pending running ended", ("killed", -9, "killed by SIGKILL")),
        (
            "06",
            "force",
            "pending running ended",
            ("lost", None, "its pod was deleted, and its exit code is unknown"),
        ),
        ("06", "exits0", "pending running ended", ("done", 0, "exit code 0")),
        ("06", "ev1", "pending running ended", ("preempted", 7, EVICTED)),
        ("06", "low", "pending running ended", ("preempted", 7, HIGHER)),
        ("06", "high", "pending running ended", ("done", 0, "exit code 0")),
    ],
)
def test_what_became_of_a_recorded_pod(trace: str, pod: str, states: str, end: tuple[Any, ...]) -> None:
    [name] = [path.stem for path in TRACES.glob(f"{trace}-*")]
    told = course(recorded(name)[pod])
    assert list(dict.fromkeys(change.state for change in told)) == states.split()
    assert (told[-1].reason, told[-1].exit_code, told[-1].detail) == end


def test_a_command_that_cannot_be_run_is_said_in_the_runtimes_words() -> None:
    *_, end = course(recorded("05-pod-phases")["start-error"])
    assert (end.reason, end.exit_code) == ("failed", 128)
    assert end.detail.startswith("exit code 128: failed to create containerd task")
    assert end.detail.endswith("/no/such/program: no such file or directory: unknown")


def test_where_a_pod_is_is_told_as_soon_as_it_has_a_node() -> None:
    told = course(recorded("05-pod-phases")["sleep3"])
    assert told[0].place == ""
    assert {change.place for change in told[1:]} == {f"pod sleep3 on {NODE}"}


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        ("unschedulable", "0/1 nodes are available: 1 Insufficient cpu."),
        ("node-selector", "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector."),
        ("image-never", "ErrImageNeverPull: Container image"),
        ("image-bad-name", "InvalidImageName: Failed to apply default image tag"),
        ("cm-missing", 'CreateContainerConfigError: configmap "absent" not found'),
    ],
)
def test_why_a_pod_waits_is_told_in_the_clusters_words(pod: str, words: str) -> None:
    details = [to_change(each, WORKER).detail for _, each in recorded("05-pod-phases")[pod]]
    assert any(detail.startswith(words) for detail in details)


@pytest.mark.parametrize(
    ("pod", "final"),
    [("image-missing", False), ("image-never", True), ("image-bad-name", True), ("cm-missing", False)],
)
def test_what_keeps_a_container_from_starting_is_an_obstacle(pod: str, final: bool) -> None:
    found = [obstacle(each) for _, each in recorded("05-pod-phases")[pod]]
    assert found[0] is None
    assert final in {each.final for each in found if each is not None}


def test_only_who_waits_for_a_node_is_unscheduled() -> None:
    pods = recorded("06-delete-evict-preempt")["high"]
    waited = [is_unscheduled(pod) for _, pod in pods]
    assert waited.index(True) < len(waited) - 1
    assert not is_unscheduled(pods[-1][1])
    assert not is_unscheduled(pods[0][1])  # nobody has looked at it yet


def test_who_is_stopped_by_us_was_stopped_however_it_ends() -> None:
    [failed] = [pod for kind, pod in recorded("06-delete-evict-preempt")["dflt"] if kind == "DELETED"]
    [forced] = [pod for kind, pod in recorded("06-delete-evict-preempt")["force"] if kind == "DELETED"]
    assert report_deleted_pod(failed, WORKER, stopped=True).reason == "stopped"
    assert report_deleted_pod(failed, WORKER, stopped=True).exit_code == 7
    assert report_deleted_pod(forced, WORKER, stopped=True).reason == "stopped"


def pod_that(
    status: str = "", message: str = "", target: str = "", code: int | None = 137, **more: Any
) -> Pod:
    """A pod that failed. target: reason of its DisruptionTarget; code: of its container."""
    conditions = [{"type": "DisruptionTarget", "status": "True", "reason": target, "message": "m"}]
    state = {"terminated": {"exitCode": code, "reason": "Error"}} if code is not None else {}
    told = {
        "phase": "Failed",
        "reason": status,
        "message": message,
        "conditions": conditions if target else [],
        "containerStatuses": [{"name": "main", "state": state}],
        **more,
    }
    return msgspec.convert({"metadata": {"name": "p"}, "status": told}, Pod)


LOW_MEMORY = "The node was low on resource: memory. Container main was using 9Gi, request is 1Gi"


@pytest.mark.parametrize(
    ("pod", "reason", "detail"),
    [
        (pod_that(target="PreemptionByScheduler"), "preempted", HIGHER),
        (pod_that(target="EvictionByEvictionAPI", code=4), "preempted", EVICTED),
        (pod_that(target="DeletionByTaintManager"), "lost", "its node is unreachable or being drained"),
        (
            pod_that(target="DeletionByTaintManager", code=4),
            "preempted",
            "its node is unreachable or being drained",
        ),
        (pod_that(target="DeletionByPodGC", code=None), "lost", "its node is gone"),
        (pod_that(target="SomethingNew"), "preempted", "m"),
        (
            pod_that("Evicted", LOW_MEMORY, "TerminationByKubelet"),
            "preempted",
            f"its node evicted it: {LOW_MEMORY}",
        ),
        (
            pod_that(
                "Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
            ),
            "failed",
            "its node evicted it: Pod ephemeral local storage usage exceeds the total limit of containers 1Gi.",
        ),
        (pod_that("NodeLost"), "lost", "its node is gone"),
        (pod_that("Shutdown", "Node is shutting."), "preempted", "its node shuts down: Node is shutting."),
        (
            pod_that("OutOfcpu", "Pod was rejected", code=None),
            "failed",
            "OutOfcpu: Pod was rejected",
        ),
        (pod_that(code=143), "killed", "killed by SIGTERM"),
        (pod_that(code=139), "failed", "killed by SIGSEGV"),
        (pod_that(code=4), "preempted", "exit code 4"),
        (pod_that(code=255), "failed", "exit code 255"),
        (pod_that(code=None), "failed", "its pod failed before it ran"),
    ],
)
def test_who_ended_a_pod_is_told_apart(pod: Pod, reason: str, detail: str) -> None:
    change = to_change(pod, WORKER)
    assert (change.state, change.reason, change.detail) == ("ended", reason, detail)


def test_of_words_that_are_too_long_the_beginning_and_the_end_are_told() -> None:
    detail = to_change(pod_that("Evicted", "x" * 10_000 + " no route to host"), WORKER).detail
    assert len(detail) == 300
    assert detail.startswith("its node evicted it: xxx")
    assert detail.endswith("x no route to host")


def test_a_child_that_ran_out_of_memory_alone_is_no_end_of_its_parent() -> None:
    pod = copy.deepcopy(next(each for _, each in recorded("05-pod-phases")["sleep3"] if each.has_ended))
    assert pod.end is not None
    pod.end.reason = "OOMKilled"
    assert to_change(pod, WORKER).reason == "done"


@pytest.mark.parametrize(
    ("gates", "labels", "words"),
    [
        (["kueue.x-k8s.io/admission"], {"kueue.x-k8s.io/queue-name": "team-a"}, "waits in queue team-a"),
        (["mine", "kueue.x-k8s.io/admission"], {"kueue.x-k8s.io/queue-name": "q"}, "waits in queue q"),
        (["a", "b"], {}, "waits until its scheduling gate is removed: a, b"),
        ([], {"kueue.x-k8s.io/queue-name": "q"}, ""),  # Kueue has just removed it
    ],
)
def test_a_pod_with_gates_says_what_it_waits_for(
    gates: list[str], labels: dict[str, str], words: str
) -> None:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "SchedulingGated",
        "message": "Scheduling is …",
    }
    told = {
        "metadata": {"name": "p", "labels": labels},
        "spec": {"schedulingGates": [{"name": name} for name in gates]},
        "status": {"phase": "Pending", "conditions": [condition]},
    }
    pod = msgspec.convert(told, Pod)
    assert to_change(pod, WORKER) == Change(WORKER, "pending", detail=words)
    assert not is_unscheduled(pod)


def test_a_pod_that_kueue_preempts_is_preempted() -> None:
    condition = {
        "type": "TerminationTarget",
        "status": "True",
        "reason": "Preempted",
        "message": "to accommodate w",
    }
    pod = msgspec.convert(
        {"metadata": {"name": "p"}, "status": {"phase": "Running", "conditions": [condition]}}, Pod
    )
    change = report_deleted_pod(pod, WORKER)
    assert (change.reason, change.detail) == ("preempted", "Kueue ended it: to accommodate w")
