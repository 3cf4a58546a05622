"""The rights that a client needs, and what refusals of the API server mean for the user."""

import re

import pytest
import yaml

from edl.cluster.kubernetes.api_calls import RefusedError
from sqlflow_edl.backends.kubernetes.permissions import NEEDED, OF_MASTER, WITHOUT_ACCOUNT, Right, explained
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
        'roles "x" is forbidden: user "ann" is attempting to grant RBAC permissions not currently held:',
        "permissions that you do not have",
        "kubernetes.service_account",
    ),
    (403, "admission webhook refused it", "refuses to create jobs.batch: admission webhook refused it", None),
    (404, 'namespaces "n" not found', "the cluster has no namespace n", "--namespace"),
    (422, 'Job.batch "x" is invalid: spec', 'refuses to create jobs.batch: Job.batch "x" is invalid', None),
]  # as servers of v1.33 write them


@pytest.mark.parametrize(("status", "message", "said", "hint"), REFUSALS)
def test_a_refusal_is_explained(status, message, said, hint):
    found = explained(RefusedError(status, "", message), Right("create", "batch", "jobs"), "n")
    assert re.search(said, found.message)
    assert found.hint is None if hint is None else hint in found.hint


def blocks(repository):
    """The YAML of docs/kubernetes.md, as data."""
    text = (repository / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    return [
        yaml.safe_load(found)
        for found in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
        if "rules:" in found
    ]


def rights_of(rules):
    return {
        Right(verb, group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


def test_the_rights_in_docs_are_those_that_are_checked(repository):
    user, _ = blocks(repository)
    assert rights_of(user["rules"]) == {*NEEDED, *WITHOUT_ACCOUNT, Right("list", "", "events")}


def test_the_rights_of_the_master_in_docs_are_those_of_its_role(repository):
    _, master = blocks(repository)
    [role] = [each for each in jobs.objects() if each["kind"] == "Role"]
    assert rights_of(master["rules"]) == rights_of(role["rules"]) == set(OF_MASTER)
