"""The rights that a client needs, and what refusals of the API server mean for the user."""

import re

import pytest
import yaml
from kubernetes_validate import utils

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError
from sqlflow_edl.backends.kubernetes.permissions import (
    NEEDED,
    OF_MASTER,
    WITH_POLICY,
    WITHOUT_ACCOUNT,
    Right,
    explain_refusal,
)
from tests.sqlflow_edl.backends.kubernetes import jobs

REFUSALS = [
    (401, "Unauthorized", "does not accept your credentials", "log in again"),
    (
        403,
        'jobs.batch is forbidden: User "ann" cannot create resource "jobs" in API group "batch" in the namespace "n"',
        "you may not create jobs.batch in the namespace n",
        "an administrator grants it",
    ),
    (
        403,
        'configmaps "x" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: 9, limited: 9',
        "the quota of the namespace n has no room: .*exceeded quota: q",
        "kubectl describe quota --namespace n",
    ),
    (
        403,
        (
            'roles "x" is forbidden: user "ann" (groups=["dev" "system:authenticated"]) is attempting to grant RBAC '
            'permissions not currently held:\n{APIGroups:[""], Resources:["configmaps"], ResourceNames:["j-state"], '
            'Verbs:["get" "update"]}\n{APIGroups:["batch"], Resources:["jobs"], Verbs:["get"]}'
        ),
        "permissions that you do not have: get, update configmaps; get jobs.batch",
        "kubernetes.service_account",
    ),
    (403, "admission webhook refused it", "refuses to create jobs.batch: admission webhook refused it", None),
    (404, 'namespaces "n" not found', "the cluster has no namespace n", "--namespace"),
    (422, 'Job.batch "x" is invalid: spec', 'refuses to create jobs.batch: Job.batch "x" is invalid', None),
]  # as servers of v1.33 write them


@pytest.mark.parametrize(("status", "message", "said", "hint"), REFUSALS)
def test_a_refusal_is_explained(status, message, said, hint):
    found = explain_refusal(APIRefusedError(status, "", message), Right("create", "batch", "jobs"), "n")
    assert re.search(said, found.message)
    assert found.hint is None if hint is None else hint in found.hint


@pytest.fixture
def base(repository):
    """The objects that an administrator applies, by kind and name."""
    folder = repository / "samples" / "kubernetes"
    [kustomization] = yaml.safe_load_all((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    texts = ((folder / name).read_text(encoding="utf-8") for name in kustomization["resources"])
    found = [each for text in texts for each in yaml.safe_load_all(text)]
    for each in found:
        utils.validate(each, "1.33", strict=True)
    return {(each["kind"], each["metadata"]["name"]): each for each in found}


def rights_of(role):
    return {
        Right(verb, group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_rights_of_users_in_the_base_are_those_that_are_checked(base):
    user, more = base["Role", "sqlflow-user"], base["Role", "sqlflow-user-with-accounts"]
    optional = {
        Right("delete", "", "pods"),
        Right("list", "", "events"),
        Right("get", "visibility.kueue.x-k8s.io", "localqueues/pendingworkloads"),
        Right("get", "kueue.x-k8s.io", "workloads"),
        Right("list", "kueue.x-k8s.io", "workloads"),
    }
    assert rights_of(user) == {*NEEDED, *WITH_POLICY, *optional}
    assert rights_of(more) == {*WITHOUT_ACCOUNT, *OF_MASTER}


def test_the_master_in_the_base_has_the_rights_of_its_role(base):
    [role] = [each for each in jobs.objects() if each["kind"] == "Role"]
    optional = {Right("create", "", "events")}
    assert rights_of(base["Role", "sqlflow-master"]) - optional == rights_of(role) == set(OF_MASTER)


def test_the_bindings_of_the_base_name_what_is_in_it(base):
    for kind, name in base:
        if kind == "RoleBinding":
            assert ("Role", base[kind, name]["roleRef"]["name"]) in base
    [subject] = base["RoleBinding", "sqlflow-master"]["subjects"]
    assert (subject["kind"], subject["name"]) in base
    [rule] = base["NetworkPolicy", "sqlflow-metrics"]["spec"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [names.METRICS]
