"""The admission policy of the docs, evaluated by the reference implementation of its language."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from cel_expr_python import cel
from kubernetes_validate import utils

from edl.cluster import Instance
from edl.cluster.kubernetes import pod_manifests
from edl.cluster.kubernetes.deployment import Deployment
from tests.sqlflow_edl.backends.kubernetes import jobs
from tests.sqlflow_edl.backends.kubernetes.test_objects import VERSIONS, everything

Object = dict[str, Any]
NAMES = ("object", "oldObject", "request", "variables")


class Policy:
    """Admission by the first document of the file."""

    def __init__(self, file: Path) -> None:
        self.documents = list(yaml.safe_load_all(file.read_text(encoding="utf-8")))
        self._spec = self.documents[0]["spec"]
        language = cel.NewEnv(variables=dict.fromkeys(NAMES, cel.Type.DYN))
        self._compiled = {text: language.compile(text) for text in self._expressions()}

    def _expressions(self) -> set[str]:
        parts = ("matchConditions", "variables", "validations")
        return {each["expression"] for part in parts for each in self._spec[part]}

    def variable(self, name: str, expression: str) -> None:
        """As an operator edits it."""
        [found] = [each for each in self._spec["variables"] if each["name"] == name]
        found["expression"] = expression
        language = cel.NewEnv(variables=dict.fromkeys(NAMES, cel.Type.DYN))
        self._compiled[expression] = language.compile(expression)

    def refusals(self, user: str, operation: str, pod: Object) -> list[str]:
        """The messages of what refuses the request."""
        namespace = pod["metadata"]["namespace"]
        asked = {"operation": operation, "namespace": namespace, "userInfo": {"username": user}}
        before, after = (pod, None) if operation == "DELETE" else (None, pod)
        data: Object = {"request": asked, "object": after, "oldObject": before, "variables": {}}
        if not all(self._value(each, data) for each in self._spec["matchConditions"]):
            return []
        for each in self._spec["variables"]:
            data["variables"][each["name"]] = self._value(each, data)
        return [each["message"] for each in self._spec["validations"] if not self._value(each, data)]

    def _value(self, each: Object, data: Object) -> Any:
        return self._compiled[each["expression"]].eval(data=data).plain_value()


@pytest.fixture
def policy(repository: Path) -> Policy:
    return Policy(repository / "samples" / "kubernetes" / "admission-policy.yaml")


def deployment(settings: Any = None) -> Deployment:
    return jobs.deployment(jobs.objects(jobs.with_workers(2, servers=1), settings))


def pod(of: Deployment, role: Any = "worker") -> Object:
    """As the API server sees it."""
    made = pod_manifests.pod(of, Instance(f"{role}-0", role, 3), workers=2)
    made["metadata"]["namespace"] = of.namespace
    return made


def account(of: Deployment, name: str = "") -> str:
    return f"system:serviceaccount:{of.namespace}:{name or of.name}"


@pytest.mark.variants(3)
@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_one_of_the_published_schema(policy: Policy, version: str) -> None:
    for document in policy.documents:
        utils.validate(document, version, strict=True)


@pytest.mark.parametrize("role", ["worker", "ps"])
@pytest.mark.parametrize("operation", ["CREATE", "DELETE"])
def test_a_master_does_what_it_has_to(policy: Policy, role: str, operation: str) -> None:
    job = deployment()
    assert policy.refusals(account(job), operation, pod(job, role)) == []
    assert policy.refusals(account(job, "sqlflow-master"), operation, _with_account(pod(job, role))) == []


def _with_account(made: Object) -> Object:
    made["spec"]["serviceAccountName"] = "sqlflow-master"
    return made


def test_what_settings_and_templates_name_is_permitted_by_editing(policy: Policy) -> None:
    job = deployment(everything())
    refused = policy.refusals(account(job), "CREATE", pod(job))
    assert refused == [
        "the pods of a master mount the files and secrets of its job, and permitted claims and Secrets"
    ]
    policy.variable("claims", "['scratch', 'data']")
    policy.variable("images", "['team/models:', 'helper:1']")
    assert policy.refusals(account(job), "CREATE", pod(job)) == []


def test_others_are_not_restricted(policy: Policy) -> None:
    job = deployment()
    stranger = pod(job)
    stranger["metadata"]["labels"] = {}
    for user in ("ann", account(job, "default"), "system:serviceaccount:kube-system:job-controller"):
        assert policy.refusals(user, "DELETE", stranger) == []


def volume(**source: Any) -> Callable[[Object], None]:
    return lambda made: made["spec"]["volumes"].append({"name": "x", **source})


def spec(**fields: Any) -> Callable[[Object], None]:
    return lambda made: made["spec"].update(fields)


def container(**fields: Any) -> Callable[[Object], None]:
    return lambda made: made["spec"]["containers"][0].update(fields)


def reference(field: str, source: Object) -> Callable[[Object], None]:
    return container(**{field: [source]})


def init_container(made: Object) -> None:
    found = copy.deepcopy(made["spec"]["containers"][0])
    found.update(name="prepare", envFrom=[{"secretRef": {"name": "passwords"}}])
    made["spec"]["initContainers"] = [found]


def labels(**changed: str) -> Callable[[Object], None]:
    names = {"job": "app.kubernetes.io/instance", "role": "sqlflow-edl/role"}
    return lambda made: made["metadata"]["labels"].update(
        {names[key]: value for key, value in changed.items()}
    )


ATTACKS: dict[str, tuple[Callable[[Object], None], str]] = {
    "a Secret as a volume": (volume(secret={"secretName": "passwords"}), "mount"),
    "a Secret in a projection": (
        volume(projected={"sources": [{"secret": {"name": "passwords"}}]}),
        "mount",
    ),
    "a token of an account": (
        volume(projected={"sources": [{"serviceAccountToken": {"path": "token"}}]}),
        "mount",
    ),
    "a folder of the node": (volume(hostPath={"path": "/"}), "mount"),
    "a claim of others": (volume(persistentVolumeClaim={"claimName": "data"}), "mount"),
    "a driver": (volume(csi={"driver": "secrets-store.csi.k8s.io"}), "mount"),
    "a key of a Secret": (
        reference("env", {"name": "X", "valueFrom": {"secretKeyRef": {"name": "passwords", "key": "a"}}}),
        "variables",
    ),
    "all keys of a Secret": (reference("envFrom", {"secretRef": {"name": "passwords"}}), "variables"),
    "a key of a ConfigMap": (
        reference("env", {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "others", "key": "a"}}}),
        "variables",
    ),
    "all keys of a ConfigMap": (reference("envFrom", {"configMapRef": {"name": "others"}}), "variables"),
    "a ConfigMap as a volume": (volume(configMap={"name": "others"}), "mount"),
    "an init container": (init_container, "variables"),
    "another account": (spec(serviceAccountName="admin"), "account"),
    "a token": (spec(automountServiceAccountToken=True), "account"),
    "a node": (spec(nodeName="control-plane"), "scheduler"),
    "the network of the node": (spec(hostNetwork=True), "scheduler"),
    "another job": (labels(job="sqlflow-edl-other-123456"), "own job"),
    "no job": (labels(job=""), "own job"),
    "another role": (labels(role="master"), "workers"),
    "no owner": (lambda made: made["metadata"].pop("ownerReferences"), "belong"),
    "another owner": (
        lambda made: made["metadata"]["ownerReferences"].append(
            {"apiVersion": "batch/v1", "kind": "Job", "name": "other", "uid": "1"}
        ),
        "belong",
    ),
    "another name": (lambda made: made["metadata"].update(name="database-0"), "workers"),
}


@pytest.mark.variants(8)
@pytest.mark.parametrize("attack", ATTACKS)
def test_a_compromised_master_is_refused(policy: Policy, attack: str) -> None:
    job = deployment()
    made = pod(job)
    change, reason = ATTACKS[attack]
    change(made)
    assert any(reason in message for message in policy.refusals(account(job), "CREATE", made))


def test_another_image_is_refused_where_images_are_restricted(policy: Policy) -> None:
    job = deployment()
    policy.variable("images", "['registry.example/sqlflow-edl:']")
    assert policy.refusals(account(job), "CREATE", pod(job)) == ["the pods of a master have permitted images"]


@pytest.mark.parametrize(
    "change", [labels(job="database"), labels(role="web"), lambda made: made["metadata"].pop("labels")]
)
def test_a_compromised_master_deletes_no_pod_of_others(
    policy: Policy, change: Callable[[Object], None]
) -> None:
    job = deployment()
    found = pod(job)
    change(found)
    assert policy.refusals(account(job), "DELETE", found)
