"""End of a job, told from the cluster if the master does not tell it."""

from __future__ import annotations

from typing import cast

import msgspec
import pytest

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.pods import Metadata, Pod, PodCondition
from sqlflow_edl.backends.kubernetes.job_status import JobEvent, JobObjects, JobStatus, KubernetesJob
from sqlflow_edl.backends.kubernetes.status_text import end_note, failure, list_waiting, no_start


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("BackoffLimitExceeded", "…", "the master ended 7 times, and the job was given up"),
        ("DeadlineExceeded", "…", "the job exceeded its deadline"),
        ("PodFailurePolicy", "…", "the master failed permanently and does not say why"),
        ("Else", "the words of the cluster", "the job failed: the words of the cluster"),
    ],
)
def test_the_condition_of_a_failed_job_is_said_in_words(reason: str, message: str, said: str) -> None:
    condition = PodCondition("Failed", "True", reason, message)
    error = failure(KubernetesJob(Metadata(), status=JobStatus([condition], failed=7)), [], "20260101-a")
    assert error.message == said
    assert error.hint == "see sqlflow logs 20260101-a master"


def test_a_pod_that_is_refused_again_and_again_is_the_same_wait() -> None:
    class Objects:
        def warnings(self, kind: str, name: str) -> list[JobEvent]:
            why = 'Error creating: pods "{}" is forbidden: exceeded quota: few'
            return [
                JobEvent("Warning", "FailedCreate", why.format(f"{name}-{number}")) for number in range(3)
            ]

    told = set(list_waiting(cast(JobObjects, Objects()), KubernetesJob(Metadata("job")), []))
    assert told == {("the master", "Error creating: its pod is forbidden: exceeded quota: few")}


def test_a_mount_that_fails_once_is_not_told() -> None:
    late = 'MountVolume.SetUp failed for volume "secrets" : failed to sync secret cache: timed out waiting'
    absent = 'MountVolume.SetUp failed for volume "code" : configmap "x" not found'

    class Objects:
        def warnings(self, kind: str, name: str) -> list[JobEvent]:
            return [
                JobEvent("Warning", "FailedMount", late, 1),
                JobEvent("Warning", "FailedMount", absent, 2),
            ]

    pod = msgspec.convert(
        {
            "metadata": {"name": "m", "labels": names.labels("job", "id", "master")},
            "status": {"phase": "Pending"},
        },
        Pod,
    )
    assert list(list_waiting(cast(JobObjects, Objects()), KubernetesJob(Metadata("job")), [pod])) == [
        ("master", absent)
    ]


@pytest.mark.parametrize("claims", ["", "no new claims to deallocate, "])
def test_what_the_scheduler_says_of_preemption_is_left_out(claims: str) -> None:
    why = "0/1 nodes are available: 1 node(s) were unschedulable."
    message = (
        f"{why} {claims}preemption: 0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}
    pod = msgspec.convert(
        {
            "metadata": {"name": "m", "labels": names.labels("job", "id", "master")},
            "status": {"phase": "Pending", "conditions": [condition]},
        },
        Pod,
    )
    told = list_waiting(cast(JobObjects, object()), KubernetesJob(Metadata("job")), [pod])
    assert ("master", why) in told


def master(reason: str, code: int) -> Pod:
    """A pod of a master that has ended, and might take 1 GiB."""
    container = {"name": "master", "resources": {"limits": {"memory": "1Gi"}}}
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return msgspec.convert(
        {
            "metadata": {"name": "m", "labels": names.labels("job", "id", "master")},
            "spec": {"containers": [container]},
            "status": {"phase": "Failed", "containerStatuses": [{"name": "master", "state": state}]},
        },
        Pod,
    )


def test_masters_that_were_killed_or_ran_out_of_memory_are_told_with_what_helps() -> None:
    pods = [master("Error", 1), master("OOMKilled", 137)]
    told = "the master ran out of memory (limit 1Gi); WITH kubernetes.master_memory sets its memory"
    assert list(map(end_note, pods)) == ["", told]
    assert end_note(master("Error", 137)) == "the master was killed by SIGKILL; the Job starts another one"
    condition = PodCondition("Failed", "True", "BackoffLimitExceeded", "…")
    error = failure(KubernetesJob(Metadata(), status=JobStatus([condition], failed=2)), pods, "20260101-a")
    assert error.message.endswith("; the last time: out of memory (limit 1Gi)")
    assert error.hint.startswith("WITH kubernetes.master_memory sets its memory; ")


@pytest.mark.parametrize(
    ("why", "hint"),
    [
        (
            "ErrImagePull: failed to authorize: … 401 Unauthorized",
            "name a Secret with credentials of the registry",
        ),
        (
            "ErrImagePull: pull access denied, repository does not exist",
            "name a Secret with credentials of the registry",
        ),
        ("ErrImagePull: team/models:8: not found", "name an image that the nodes can pull"),
        ("CreateContainerError: no such device", ""),
    ],
)
def test_a_registry_that_refuses_is_told_with_the_setting_for_its_credentials(why: str, hint: str) -> None:
    error = no_start("master", why)
    assert error.message == f"the master of the job cannot start: {why}"
    assert (error.hint or "").startswith(hint)
    assert bool(error.hint) == bool(hint)
