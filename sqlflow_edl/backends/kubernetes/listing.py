"""Status updates of many jobs: one request to each cluster and namespace."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from edl.cluster.kubernetes.connect import connect
from edl.cluster.kubernetes.deployment import Deployment, read_deployment
from edl.cluster.kubernetes.pod_state import waits_in_queue
from edl.errors import ClusterError, SpecError
from edl.jobs.job_folder import JobFolder
from sqlflow_edl.backends.kubernetes.handle import KubernetesJobHandle
from sqlflow_edl.backends.kubernetes.job_status import KubernetesJob, KubernetesJobList

PATIENCE = 3.0  # seconds for each cluster

Deployed = tuple[JobFolder, Deployment]


def refresh(jobs: Iterable[JobFolder]) -> dict[str, str]:
    """Record which of these jobs have ended since the last update; return remarks by job id: why its state could not be
    read, or what it waits for.
    """
    groups: dict[tuple[str, str], list[Deployed]] = {}
    for job in jobs:
        try:
            deployment_or_remarks = read_deployment(job.path)
        except SpecError:
            continue
        if deployment_or_remarks is None:
            KubernetesJobHandle(job).details()
        else:
            groups.setdefault((deployment_or_remarks.context, deployment_or_remarks.namespace), []).append(
                (job, deployment_or_remarks)
            )
    if not groups:
        return {}
    with ThreadPoolExecutor(len(groups)) as pool:
        return {
            job: remark
            for deployment_or_remarks in pool.map(_refresh, groups.values())
            for job, remark in deployment_or_remarks.items()
        }


def _refresh(group: list[Deployed]) -> dict[str, str]:
    """Update the jobs of one namespace; return remarks by job id."""
    _, first = group[0]
    remarks = {}
    try:
        by_id = {(job.metadata.labels or {}).get(names.JOB_ID): job for job in _jobs(first)}
        for folder, deployment in group:
            stored = by_id.get(deployment.job)
            if stored is not None and stored.queue and stored.spec.suspend:
                remarks[folder.id] = waits_in_queue(stored.queue)
            with contextlib.suppress(SpecError):  # the list of jobs reports a damaged status
                KubernetesJobHandle(folder).settle(stored if stored and stored.is_of(deployment) else None)
    except APIRefusedError as error:
        if not error.may_pass:
            return dict.fromkeys((folder.id for folder, _ in group), error.message)
        for folder, _ in group:
            with contextlib.suppress(SpecError):
                remarks[folder.id] = KubernetesJobHandle(folder).settle_hidden()
    except ClusterError as error:
        return dict.fromkeys((folder.id for folder, _ in group), error.message)
    return remarks


def _jobs(deployment: Deployment) -> list[KubernetesJob]:
    query: dict[str, str | int] = {"labelSelector": f"app.kubernetes.io/name={names.APP}"}
    path = f"/apis/batch/v1/namespaces/{deployment.namespace}/jobs"
    answer = Calls(connect(deployment.context), PATIENCE).ask("GET", path, query=query)
    return msgspec.json.decode(answer, type=KubernetesJobList).items
