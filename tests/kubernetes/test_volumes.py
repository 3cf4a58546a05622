"""What the containers of the double's pods find: volumes, their environment, the API server."""

from __future__ import annotations

from typing import Any

import pytest
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException

from tests.kubernetes.pods import phases, pod, until

pytestmark = pytest.mark.soak  # of the double alone: every change has the tests of what talks to it


def mounted(body: dict[str, Any], *volumes: dict[str, Any]) -> dict[str, Any]:
    """The pod with volumes, each at a path of its name."""
    body["spec"]["volumes"] = list(volumes)
    body["spec"]["containers"][0]["volumeMounts"] = [
        {"name": one["name"], "mountPath": f"/{one['name']}"} for one in volumes
    ]
    return body


def said(core: Any, namespace: str, body: dict[str, Any]) -> str:
    """What the pod's command wrote, when it has succeeded."""
    created = core.create_namespaced_pod(namespace, body)
    until(core, namespace, created, "Succeeded")
    return str(core.read_namespaced_pod_log(body["metadata"]["name"], namespace))


def test_a_pod_finds_its_volumes_and_its_environment(core: Any, namespace: str) -> None:
    core.create_namespaced_config_map(
        namespace, {"metadata": {"name": "conf"}, "data": {"a.txt": "from a map\n"}}
    )
    core.create_namespaced_secret(
        namespace, {"metadata": {"name": "keys"}, "stringData": {"k": "from a secret"}}
    )
    script = "cat /etc/conf/a.txt; cat /etc/keys/sub/k; echo; cd /scratch && echo $NAME is $RANK > f && cat /scratch/f"
    body = pod("p", script)
    body["metadata"]["labels"] = {"rank": "3"}
    body["spec"]["volumes"] = [
        {"name": "conf", "configMap": {"name": "conf"}},
        {"name": "keys", "secret": {"secretName": "keys", "items": [{"key": "k", "path": "sub/k"}]}},
        {"name": "work", "emptyDir": {}},
    ]
    [container] = body["spec"]["containers"]
    paths = {"conf": "/etc/conf", "keys": "/etc/keys", "work": "/scratch"}
    container["volumeMounts"] = [{"name": name, "mountPath": path} for name, path in paths.items()]
    container["env"] = [
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "RANK", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['rank']"}}},
        {"name": "NAME", "value": "pod $(POD)"},
    ]
    created = core.create_namespaced_pod(namespace, body)
    assert phases(core, namespace, created, "Succeeded")[-1] == "Succeeded"
    assert core.read_namespaced_pod_log("p", namespace) == "from a map\nfrom a secret\npod p is 3\n"


def test_one_volume_has_the_keys_of_several_maps_and_secrets_with_modes_of_their_own(
    core: Any, namespace: str
) -> None:
    for name in "ab":
        data = {f"{name}.txt": f"of {name}\n", "left": "out"}
        core.create_namespaced_config_map(namespace, {"metadata": {"name": name}, "data": data})
    core.create_namespaced_secret(namespace, {"metadata": {"name": "a"}, "stringData": {"k": "secret\n"}})
    sources = [
        *({"configMap": {"name": n, "items": [{"key": f"{n}.txt", "path": f"{n}/{n}.txt"}]}} for n in "ab"),
        {"secret": {"name": "a", "items": [{"key": "k", "path": "k", "mode": 0o400}]}},
    ]
    script = "cd /all; cat a/* b/* k; stat -L -c %a a/a.txt k; ls"
    body = mounted(pod("p", script), {"name": "all", "projected": {"sources": sources}})
    assert said(core, namespace, body) == "of a\nof b\nsecret\n644\n400\na\nb\nk\n"


def test_a_folder_under_another_mount_is_the_one_that_is_mounted_there(core: Any, namespace: str) -> None:
    body = mounted(pod("p", 'echo x > /tmp/f; echo y > /tmp/in/g; cat "$AT"/f; ls /tmp/in'), {"name": "tmp"})
    body["spec"]["volumes"] = [{"name": name, "emptyDir": {}} for name in ("tmp", "in")]
    [container] = body["spec"]["containers"]
    container["volumeMounts"].append({"name": "in", "mountPath": "/tmp/in"})  # noqa: S108 - in the pod
    container["env"] = [{"name": "AT", "value": "/tmp"}]  # noqa: S108
    assert said(core, namespace, body) == "x\ng\n"


def test_pods_that_mount_the_same_claim_share_its_folder(core: Any, namespace: str) -> None:
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    core.create_namespaced_persistent_volume_claim(namespace, {"metadata": {"name": "c"}, "spec": claim})
    volume = {"name": "shared", "persistentVolumeClaim": {"claimName": "c"}}
    assert said(core, namespace, mounted(pod("writer", "echo kept > /shared/f"), volume)) == ""
    assert said(core, namespace, mounted(pod("reader", "cat /shared/f"), volume)) == "kept\n"


def test_a_pod_knows_its_address_before_it_starts(core: Any, namespace: str) -> None:
    body = pod("p", "echo $HOST")
    field = {"fieldRef": {"fieldPath": "status.podIP"}}
    body["spec"]["containers"][0]["env"] = [{"name": "HOST", "valueFrom": field}]
    created = core.create_namespaced_pod(namespace, body)
    found = until(core, namespace, created, "Succeeded")
    assert core.read_namespaced_pod_log("p", namespace) == f"{found.status.pod_ip}\n"


def test_a_pod_with_a_token_finds_the_api_server_as_its_account(core: Any, namespace: str) -> None:
    path = said(core, namespace, pod("p", "echo $KUBECONFIG")).strip()
    [context], _ = config.list_kube_config_contexts(path)
    assert context["context"]["namespace"] == namespace
    with config.new_client_from_config(path) as api, pytest.raises(ApiException) as refused:
        client.CoreV1Api(api).list_namespaced_pod(namespace)
    assert refused.value.status == 403
    assert f"system:serviceaccount:{namespace}:default" in refused.value.body


@pytest.mark.parametrize("of", ["pod", "account"])
def test_a_pod_without_a_token_does_not(core: Any, namespace: str, of: str) -> None:
    body = pod("p", "echo ${KUBECONFIG:-none}")
    if of == "pod":
        body["spec"]["automountServiceAccountToken"] = False
    else:
        account = {"metadata": {"name": "a"}, "automountServiceAccountToken": False}
        core.create_namespaced_service_account(namespace, account)
        body["spec"]["serviceAccountName"] = "a"
    assert said(core, namespace, body) == "none\n"
