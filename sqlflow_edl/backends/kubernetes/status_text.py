"""Texts for waiting pods of a job and for the end of a job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from edl.cluster import Instance
from edl.cluster.kubernetes import memory, names, pod_state, quantities
from edl.cluster.kubernetes.pods import Pod
from edl.errors import ClusterError
from sqlflow_edl.backends.kubernetes.job_status import JobEvent, JobObjects, KubernetesJob, instance_name
from sqlflow_edl.backends.kubernetes.logs.pod import PodLog

MASTER = "the master"
SILENT = "the job is done, but the result from its master can no longer be read"
ELSEWHERE = (
    "a training with a checkpoint in its data source continues in another namespace: "
    "`sqlflow move JOB --to kubernetes --namespace NAME`"
)
LEAST_MASTER = 256 << 20  # bytes of memory for a master of unknown size
PLACE = ", as number "  # precedes the place in a queue
MOST_ASKED = 5  # pods for which events are requested at a time

# Reasons of events before a container starts that the pod itself does not show.
_TELLING = frozenset(
    {
        "FailedCreate",
        "FailedMount",
        "FailedAttachVolume",
        "FailedCreatePodSandBox",
        "FailedCreatePodContainer",
    }
)

# End of a reason of the scheduler, which repeats it for preemption; Kubernetes 1.36 says more before it than 1.33.
_OF_PREEMPTION = re.compile(r"( no new claims to deallocate,)? preemption: .*", re.DOTALL)
_POD = re.compile(r'pods? "[^"]+"')  # another one at each attempt of the Job's controller


_NO_ACCESS = re.compile(
    r"\b(401|403)\b|unauthorized|authentication required|authorization failed|denied", re.I
)


def list_waiting(objects: JobObjects, job: KubernetesJob, pods: list[Pod]) -> Iterator[tuple[str, str]]:
    """Yield the waiting instances with the reason; ask the API server for events if the pods do not give it."""
    if job.queue and job.spec.suspend:
        place = objects.queue_places(job.queue).get(job.metadata.uid, "")
        why = objects.queue_reasons({job.metadata.uid: ""}).get(job.metadata.uid, "")
        yield MASTER, _describe_queue(pod_state.waits_in_queue(job.queue), why, place)
        return
    if not any(pod.instance is None and not pod.has_ended for pod in pods):
        texts = _relevant_messages(objects.warnings("Job", job.metadata.name))
        yield from ((MASTER, _POD.sub("its pod", text)) for text in texts)
    asked = 0
    queued = {pod.metadata.uid: pod.queue_group for pod in pods if names.QUEUE_GATE in pod.gates}
    places = objects.queue_places(job.queue) if queued and job.queue else {}
    reasons = objects.queue_reasons(queued) if queued else {}
    for pod in pods:
        if pod.status.phase != "Pending" or pod.has_ended:
            continue
        name = instance_name(pod)
        if text := pod_state.pending_reason(pod):
            uid = pod.metadata.uid
            yield (
                name,
                _describe_queue(_OF_PREEMPTION.sub("", text), reasons.get(uid, ""), places.get(uid, "")),
            )
        elif asked < MOST_ASKED:
            asked += 1
            yield from (
                (name, text) for text in _relevant_messages(objects.warnings("Pod", pod.metadata.name))
            )


def _describe_queue(wait: str, why: str, place: str) -> str:
    """Return a wait with Kueue's reason and the place in the queue, as far as they are known."""
    wait = f"{wait}: {why}" if why else wait
    return f"{wait}{PLACE}{place}" if place else wait


def find_reason(waits: Iterable[tuple[str, str]]) -> str:
    """Return why the master waits, or the only pod of a program; empty if that is unknown."""
    return next((why for name, why in waits if name in (MASTER, "master", "program")), "")


def sentence(name: str, why: str) -> str:
    """Return a sentence on an instance that waits, or is silent."""
    return f"{name} {why}" if why.startswith(("waits ", "is silent")) else f"{name} waits: {why}"


def _relevant_messages(events: list[JobEvent]) -> list[str]:
    """Return the messages that matter. The first failure of a mount does not: kubelets try again within a second, and
    mostly fail only because their cache of the new ConfigMap or Secret is late.
    """
    telling = [event for event in events if event.reason in _TELLING and event.message]
    return [event.message for event in telling if event.reason != "FailedMount" or event.count != 1]


def failure(job: KubernetesJob, pods: list[Pod], job_id: str) -> ClusterError:
    """Return the error of a failed job if its master gives no reason."""
    condition = job.condition("Failed")
    reason = (condition.reason or "") if condition is not None else ""
    masters = [pod for pod in pods if pod.instance is None and pod.has_ended]
    name = instance_name(masters[-1]) if masters else "master"
    hint = f"see sqlflow logs {job_id} {name}"
    match reason:
        case "BackoffLimitExceeded":
            times = f"{job.status.failed} times" if job.status.failed > 1 else "once"
            message = f"the {name} ended {times}, and the job was given up"
        case "DeadlineExceeded":
            message = "the job exceeded its deadline"
        case "PodFailurePolicy":
            message = f"the {name} failed permanently and does not say why"
        case _:
            reason_given = (condition.message or reason) if condition is not None else ""
            message = f"the job failed: {reason_given}" if reason_given else "nothing says how the job ended"
    if masters:
        message += f"; the last time: {_end_of(masters[-1])}"
        if pod_state.ran_out_of_memory(masters[-1]):
            setting = "WITH kubernetes.master_memory" if name == "master" else "--set worker_memory=…"
            hint = f"{setting} sets its memory; {hint}"
    return ClusterError(message, hint=hint)


def no_start(name: str, why: str) -> ClusterError:
    """Return the error of a first pod that cannot start for a reason of its image or its container."""
    error = ClusterError(f"the {name} of the job cannot start: {why}")
    if _NO_ACCESS.search(why):
        error.hint = "name a Secret with credentials of the registry in kubernetes.image_pull_secrets"
    elif any(
        words in why for words in ("not found", "InvalidImageName", "is not present", "invalid reference")
    ):
        error.hint = "name an image that the nodes can pull in kubernetes.image"
    return error


def without_namespace(namespace: str) -> ClusterError:
    """Return the error of a job that ran in a namespace until that was deleted."""
    return ClusterError(f"the namespace {namespace} was deleted, and with it the job", hint=ELSEWHERE)


def hidden_job(namespace: str) -> ClusterError:
    """Return the error of a job that its user may no longer see, and that has kept its training."""
    return ClusterError(f"{hidden_remark(namespace)}; its data source has a checkpoint of it", hint=ELSEWHERE)


def hidden_remark(namespace: str) -> str:
    return f"you may no longer see jobs in the namespace {namespace}: it was deleted, or your rights were withdrawn"


def hopeless(objects: JobObjects, last: Pod, times: int, job_id: str) -> ClusterError:
    """Return the error of a job with so many masters that ended in a row without progress. last: the last of them."""
    message = f"{times} masters in a row ended without progress; the last {_describe_end(objects, last)}"
    if pod_state.ran_out_of_memory(last):
        more = quantities.memory(2 * memory.of_pod(last).size or LEAST_MASTER)
        return ClusterError(message, hint=f"WITH kubernetes.master_memory = '{more}' gives it more")
    return ClusterError(message, hint=f"the job {job_id} was deleted; its statement can be run again")


def _describe_end(objects: JobObjects, master: Pod) -> str:
    """Describe the end of a master, with the last line of its log if it has one."""
    end = (
        f"ended with {_end_of(master)}"
        if not pod_state.ran_out_of_memory(master)
        else f"ran {_end_of(master)}"
    )
    lines = [line for line in PodLog(objects, master, follow=False) if line.startswith("error: ")]
    return f"{end}: {lines[-1].removeprefix('error: ')}" if lines else end


def end_note(pod: Pod) -> str:
    """Return a note for a master that was killed, and so could not tell it; empty for any other pod."""
    if pod.instance is not None:
        return ""
    if pod_state.ran_out_of_memory(pod):
        return f"the master ran {_end_of(pod)}; WITH kubernetes.master_memory sets its memory"
    change = pod_state.to_change(pod, Instance("master", "worker"))
    return f"the master was {change.detail}; the Job starts another one" if change.reason == "killed" else ""


def _end_of(master: Pod) -> str:
    change = pod_state.to_change(master, Instance("master", "worker"))  # the text is the same for all roles
    return change.detail or str(change.reason)
