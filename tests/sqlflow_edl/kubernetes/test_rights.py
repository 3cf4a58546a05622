"""What the API server's refusals mean for the user."""

import re

import pytest

from edl.kubernetes.calls import RefusedError
from sqlflow_edl.kubernetes.rights import Right, explained

REFUSALS = [
    (401, "Unauthorized", "does not know who you are", "log in again"),
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
        "rights that you do not have",
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
