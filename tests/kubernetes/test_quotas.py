"""What a quota of a namespace allows, in the words of a real server."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.pods import pod, until, watched

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


def asking(name: str, **requests: str) -> dict[str, Any]:
    body = pod(name, "sleep 60")
    body["spec"]["containers"][0]["resources"] = {"requests": requests}
    return body


def quota(core: Any, namespace: str, **hard: str) -> None:
    core.create_namespaced_resource_quota(namespace, {"metadata": {"name": "few"}, "spec": {"hard": hard}})


def refusal(core: Any, namespace: str, body: dict[str, Any]) -> str:
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_pod(namespace, body)
    assert refused.value.status == 403
    return str(refused.value.body)


def test_a_pod_beyond_the_quota_is_refused_with_what_is_exceeded(core: Any, namespace: str) -> None:
    quota(core, namespace, pods="2", cpu="1", memory="3Gi")
    core.create_namespaced_pod(namespace, asking("a", cpu="60m", memory="101Mi"))
    told = refusal(core, namespace, asking("b", cpu="1520m", memory="3524Mi"))
    assert (
        "exceeded quota: few, requested: cpu=1520m,memory=3524Mi, used: cpu=60m,memory=101Mi, "
        "limited: cpu=1,memory=3Gi"
    ) in told
    assert "must specify cpu for: main; memory for: main" in refusal(core, namespace, pod("c", "true"))


def test_a_pod_that_has_gone_counts_no_more(core: Any, namespace: str) -> None:
    quota(core, namespace, pods="1")
    created = core.create_namespaced_pod(namespace, pod("a", "sleep 0.2"))
    assert "requested: pods=1, used: pods=1, limited: pods=1" in refusal(core, namespace, pod("b", "true"))
    until(core, namespace, created, "Succeeded")
    core.create_namespaced_pod(namespace, pod("b", "true"))


def test_a_job_whose_pod_is_refused_says_so_and_tries_again(core: Any, namespace: str) -> None:
    quota(core, namespace, pods="0")
    batch = client.BatchV1Api(core.api_client)
    spec = {"template": {"spec": pod("", "true")["spec"]}}
    job = batch.create_namespaced_job(namespace, {"metadata": {"name": "j"}, "spec": spec})
    said = None
    while said is None:
        events = core.list_namespaced_event(namespace, field_selector="involvedObject.name=j").items
        said = next((event for event in events if event.reason == "FailedCreate"), None)
    assert said.type == "Warning"
    assert said.message.startswith('Error creating: pods "j-') and "exceeded quota: few" in said.message
    core.delete_namespaced_resource_quota("few", namespace)
    jobs = watched(batch.list_namespaced_job, namespace, job, "DELETED")
    assert any(event["object"].status.succeeded for event in jobs)


def test_objects_are_counted_too(core: Any, namespace: str) -> None:
    quota(core, namespace, **{"count/secrets": "1"})
    core.create_namespaced_secret(namespace, {"metadata": {"name": "a"}})
    with pytest.raises(ApiException) as refused:
        core.create_namespaced_secret(namespace, {"metadata": {"name": "b"}})
    told = str(refused.value.body)
    assert "exceeded quota: few, requested: count/secrets=1, used: count/secrets=1" in told
    core.create_namespaced_pod(namespace, pod("a", "true"))  # is not limited
