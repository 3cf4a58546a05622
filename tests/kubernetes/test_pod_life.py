"""How pods of the double start, wait, fail and end, and what is said of them meanwhile."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
from kubernetes import watch

from tests.kubernetes.pods import pod, until, watched
from tests.kubernetes.process import Cluster

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


def seen(core: Any, namespace: str, since: Any, is_wanted: Callable[[Any], bool]) -> Any:
    """The pod that was created, as soon as it is so."""
    with contextlib.closing(watched(core.list_namespaced_pod, namespace, since, "DELETED")) as events:
        for event in events:
            found = event["object"]
            if found.metadata.name == since.metadata.name and is_wanted(found):
                return found
    raise AssertionError(f"pod {since.metadata.name} never was so")


def waits_for(reason: str) -> Callable[[Any], bool]:
    def is_wanted(found: Any) -> bool:
        statuses = found.status.container_statuses or []
        return any(one.state.waiting and one.state.waiting.reason == reason for one in statuses)

    return is_wanted


def reasons(core: Any, namespace: str, name: str) -> list[str]:
    found = core.list_namespaced_event(namespace, field_selector=f"involvedObject.name={name}").items
    return [event.reason for event in found]


def test_a_container_that_fails_is_started_again_until_it_succeeds(core: Any, namespace: str) -> None:
    body = pod("p", "echo x >> /runs/n; test $(wc -l < /runs/n) = 3")
    body["spec"]["restartPolicy"] = "OnFailure"
    body["spec"]["volumes"] = [{"name": "runs", "emptyDir": {}}]
    body["spec"]["containers"][0]["volumeMounts"] = [{"name": "runs", "mountPath": "/runs"}]
    created = core.create_namespaced_pod(namespace, body)
    seen(core, namespace, created, waits_for("CrashLoopBackOff"))
    [status] = until(core, namespace, created, "Succeeded").status.container_statuses
    assert status.restart_count == 2
    assert reasons(core, namespace, "p") == ["Scheduled", "Pulled", "Created", "Started", "BackOff"]


def test_a_pod_whose_image_is_missing_tries_again_and_again_until_it_is_deleted(
    core: Any, namespace: str
) -> None:
    body = pod("p", "true")
    body["spec"]["containers"][0]["image"] = "missing/model:1"
    created = core.create_namespaced_pod(namespace, body)
    for reason in ("ErrImagePull", "ImagePullBackOff", "ErrImagePull"):
        found = seen(core, namespace, created, waits_for(reason))
        assert found.status.phase == "Pending"
        created = found
    [status] = found.status.container_statuses
    assert status.state.waiting.message.startswith(
        'failed to pull and unpack image "docker.io/missing/model:1"'
    )
    assert {"Pulling", "Failed", "BackOff"} <= set(reasons(core, namespace, "p"))
    core.delete_namespaced_pod("p", namespace)
    *_, last = watched(core.list_namespaced_pod, namespace, found, "DELETED")
    [status] = last["object"].status.container_statuses
    assert status.state.terminated.reason == "ContainerStatusUnknown"


@pytest.mark.parametrize("needs_it_as", ["variable", "volume"])
def test_a_pod_waits_for_the_map_that_it_needs(core: Any, namespace: str, needs_it_as: str) -> None:
    body = pod("p", "cat /conf/word || echo $word")
    container = body["spec"]["containers"][0]
    if needs_it_as == "volume":
        body["spec"]["volumes"] = [{"name": "conf", "configMap": {"name": "late"}}]
        container["volumeMounts"] = [{"name": "conf", "mountPath": "/conf"}]
        waits, event = "ContainerCreating", "FailedMount"
    else:
        container["env"] = [
            {"name": "word", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "word"}}}
        ]
        waits, event = "CreateContainerConfigError", "Failed"
    created = core.create_namespaced_pod(namespace, body)
    seen(core, namespace, created, waits_for(waits))
    said = watch.Watch().stream(core.list_namespaced_event, namespace, timeout_seconds=10)
    with contextlib.closing(said):
        assert any(one["object"].reason == event for one in said)
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "late"}, "data": {"word": "here\n"}})
    until(core, namespace, created, "Succeeded")
    assert "here" in core.read_namespaced_pod_log("p", namespace)


def test_init_containers_run_one_after_the_other_and_before_the_others(core: Any, namespace: str) -> None:
    body = pod("p", "cat /scratch/log")
    mounts = [{"name": "work", "mountPath": "/scratch"}]
    body["spec"]["volumes"] = [{"name": "work", "emptyDir": {}}]
    body["spec"]["containers"][0]["volumeMounts"] = mounts
    init = pod("p", "")["spec"]["containers"][0] | {"volumeMounts": mounts}
    scripts = {"first": "sleep 0.2; echo first >> /scratch/log", "second": "echo second >> /scratch/log"}
    body["spec"]["initContainers"] = [
        init | {"name": name, "command": ["sh", "-c", script]} for name, script in scripts.items()
    ]
    created = core.create_namespaced_pod(namespace, body)
    until(core, namespace, created, "Succeeded")
    assert core.read_namespaced_pod_log("p", namespace) == "first\nsecond\n"


def test_a_pod_fails_whose_init_container_does(core: Any, namespace: str) -> None:
    body = pod("p", "echo never")
    init = {**body["spec"]["containers"][0], "name": "first", "command": ["sh", "-c", "exit 4"]}
    body["spec"]["initContainers"] = [init]
    found = until(core, namespace, core.create_namespaced_pod(namespace, body), "Failed")
    [first], [main] = found.status.init_container_statuses, found.status.container_statuses
    assert (first.state.terminated.exit_code, main.state.waiting.reason) == (4, "PodInitializing")


def test_a_pod_is_ready_as_soon_as_its_probe_succeeds(core: Any, namespace: str) -> None:
    body = pod("p", "while ! test -e /flag/up; do sleep 0.1; done; touch /flag/ready; sleep 60")
    body["spec"]["volumes"] = [{"name": "flag", "emptyDir": {}}]
    container = body["spec"]["containers"][0]
    container["volumeMounts"] = [{"name": "flag", "mountPath": "/flag"}]
    script = "test -e /flag/ready || { touch /flag/up; exit 1; }"
    container["readinessProbe"] = {"exec": {"command": ["sh", "-c", script]}, "periodSeconds": 1}
    created = core.create_namespaced_pod(namespace, body)
    [status] = until(core, namespace, created, "Running").status.container_statuses
    assert not status.ready
    seen(core, namespace, created, lambda found: (found.status.container_statuses or [status])[0].ready)


def test_a_pod_that_runs_longer_than_it_may_is_ended(core: Any, namespace: str) -> None:
    body = pod("p", "sleep 60")
    body["spec"] |= {"activeDeadlineSeconds": 1, "terminationGracePeriodSeconds": 0}
    found = until(core, namespace, core.create_namespaced_pod(namespace, body), "Failed")
    assert found.status.reason == "DeadlineExceeded"
    assert found.status.container_statuses[0].state.terminated.exit_code == 137


@pytest.mark.parametrize(
    ("policy", "script"),
    [
        ("File", "echo the last words > /dev/termination-log"),
        ("FallbackToLogsOnError", "echo the last words"),
    ],
)
def test_what_a_container_said_at_its_end_is_in_its_status(
    core: Any, namespace: str, policy: str, script: str
) -> None:
    body = pod("p", f"{script}; exit 1")
    body["spec"]["containers"][0]["terminationMessagePolicy"] = policy
    found = until(core, namespace, core.create_namespaced_pod(namespace, body), "Failed")
    assert found.status.container_statuses[0].state.terminated.message == "the last words\n"


def test_a_program_that_is_not_there_is_an_error_of_the_start(core: Any, namespace: str) -> None:
    body = pod("p", "")
    body["spec"]["containers"][0]["command"] = ["no-such-program"]
    found = until(core, namespace, core.create_namespaced_pod(namespace, body), "Failed")
    ended = found.status.container_statuses[0].state.terminated
    assert (ended.reason, ended.exit_code) == ("StartError", 128)
    assert 'exec: "no-such-program": executable file not found in $PATH' in ended.message


def test_what_a_container_leaves_running_ends_with_it(core: Any, namespace: str) -> None:
    created = core.create_namespaced_pod(
        namespace, pod("p", "sh -c 'echo begun; sleep 60; echo late' & sleep 0.2")
    )
    until(core, namespace, created, "Succeeded")
    lines = core.read_namespaced_pod_log("p", namespace, follow=True, _preload_content=False)
    assert b"".join(lines.stream()) == b"begun\n"  # and its log has ended


def test_a_log_is_told_from_a_moment_on_with_the_time_of_every_line(
    kubernetes: Cluster, core: Any, namespace: str
) -> None:
    created = core.create_namespaced_pod(namespace, pod("p", "echo one; sleep 0.3; printf 'two\\nthree'"))
    until(core, namespace, created, "Succeeded")
    told = core.read_namespaced_pod_log("p", namespace, timestamps=True).splitlines()
    times, lines = zip(*(line.split(" ") for line in told), strict=True)
    assert lines == ("one", "two", "three")
    assert list(times) == sorted(times)
    answer = core.api_client.rest_client.pool_manager.request(
        "GET",
        f"{kubernetes.url}/api/v1/namespaces/{namespace}/pods/p/log?sinceTime={times[1]}",
        headers={"Authorization": f"Bearer {kubernetes.administrator}"},
    )
    assert answer.data == b"two\nthree"
