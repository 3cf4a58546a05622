"""Permissions of a client on the API server, and the errors if they are missing."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import msgspec

from edl.cluster.kubernetes.api_calls import APIRefusedError, Calls
from edl.cluster.kubernetes.connect import configured_namespaces
from edl.cluster.kubernetes.pods import Metadata
from edl.errors import ClusterError, did_you_mean

PATIENCE = 10.0  # seconds to retry a server that has not answered yet
GUIDE = "sqlflow help kubernetes lists the required permissions"
GIVEN = f"set kubernetes.service_account to one that an administrator made; {GUIDE}"


class Right(NamedTuple):
    """Verb on a resource of the job's namespace."""

    verb: str
    group: str
    resource: str

    @property
    def resource_name(self) -> str:
        """Resource as errors of the API server name it: `jobs.batch`."""
        return f"{self.resource}.{self.group}" if self.group else self.resource

    def __str__(self) -> str:
        return f"{self.verb} {self.resource_name}"


RBAC = "rbac.authorization.k8s.io"
NETWORKING = "networking.k8s.io"

NEEDED = (
    *(Right(verb, "batch", "jobs") for verb in ("create", "delete", "get", "list", "patch")),
    Right("create", "", "services"),
    *(Right(verb, "", "configmaps") for verb in ("create", "get")),
    Right("create", "", "secrets"),
    *(Right(verb, "", "pods") for verb in ("get", "list")),
    Right("get", "", "pods/log"),
)
# also needed without a given service account, because one is made for the job
WITHOUT_ACCOUNT = (
    Right("create", "", "serviceaccounts"),
    Right("create", RBAC, "roles"),
    Right("create", RBAC, "rolebindings"),
)
WITH_POLICY = (Right("create", NETWORKING, "networkpolicies"),)
# to grant these, a user must have them, or the right to escalate
OF_MASTER = (
    *(Right(verb, "", "pods") for verb in ("create", "delete", "list", "watch")),
    *(Right(verb, "", "configmaps") for verb in ("get", "update")),
    Right("get", "batch", "jobs"),
)
ESCALATING = (Right("escalate", RBAC, "roles"), Right("bind", RBAC, "roles"))


class _Named(msgspec.Struct, frozen=True):
    metadata: Metadata


class _Names(msgspec.Struct, frozen=True):
    items: list[_Named]


class _Decision(msgspec.Struct, frozen=True):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Decision = _Decision()


def check(calls: Calls, namespace: str, *, with_account: bool, with_policy: bool = False) -> None:
    """Check the namespace and the permissions that a job needs.

    with_account: its pods have a given service account. with_policy: it gets network policies. Raises ClusterError if
    the namespace is missing, or with the list of all missing permissions.
    """
    is_known = True
    try:
        calls.ask("GET", f"/api/v1/namespaces/{namespace}", patience=PATIENCE)
    except APIRefusedError as refused:
        is_known = False
        if refused.status != 403:  # permission to use a namespace may exclude reading it
            error = explain_refusal(refused, Right("get", "", "namespaces"), namespace)
            if refused.status == 404 and (near := did_you_mean(namespace, _namespaces(calls))):
                error.hint = near
            raise error from None
    needed = NEEDED + (() if with_account else WITHOUT_ACCOUNT) + (WITH_POLICY if with_policy else ())
    if lacking := _find_lacking(calls, needed, namespace):
        if is_known or len(lacking) < len(needed):
            raise _not_allowed(lacking, namespace)
        error = _not_allowed(lacking, f"{namespace}, or there is no such namespace")
        namespaces = _namespaces(calls)
        if namespace not in namespaces and (near := did_you_mean(namespace, namespaces)):
            error.add_hint(near)
        raise error
    if with_account:
        return
    not_held = _find_lacking(calls, OF_MASTER, namespace)
    if not_held and _find_lacking(calls, ESCALATING, namespace):
        raise _cannot_give(not_held)


def _namespaces(calls: Calls) -> list[str]:
    """Return the namespaces of the cluster, or if they may not be listed those that the user's kubeconfig names."""
    try:
        answer = calls.ask("GET", "/api/v1/namespaces")
    except ClusterError:
        return configured_namespaces()
    return [entry.metadata.name for entry in msgspec.json.decode(answer, type=_Names).items]


def _find_lacking(calls: Calls, needed: tuple[Right, ...], namespace: str) -> list[Right]:
    with ThreadPoolExecutor(len(needed)) as pool:
        allowed = pool.map(lambda right: _is_allowed(calls, right, namespace), needed)
        return [right for right, may in zip(needed, allowed, strict=True) if not may]


def _is_allowed(calls: Calls, right: Right, namespace: str) -> bool:
    resource, _, part = right.resource.partition("/")
    asked = {"namespace": namespace, "verb": right.verb, "group": right.group, "resource": resource}
    body = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**asked, **({"subresource": part} if part else {})}},
    }
    answer = calls.ask("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", body)
    return msgspec.json.decode(answer, type=_Review).status.allowed


def explain_refusal(refused: APIRefusedError, right: Right, namespace: str) -> ClusterError:
    """Return a refusal as an error for the user. right: the permission of the refused request."""
    message = refused.message.rstrip(".")
    if refused.status == 401:
        return ClusterError(
            "the API server does not accept your credentials",
            hint="log in again; kubectl auth whoami shows the current user",
        )
    if refused.status == 403 and "exceeded quota" in message:
        return ClusterError(
            f"the quota of the namespace {namespace} has no room: {message}",
            hint=f"kubectl describe quota --namespace {namespace} shows its use",
        )
    if refused.status == 403 and "not currently held" in message:
        return _cannot_give(_read_rights(message))
    if refused.status == 403 and re.search(r"\bcannot \w+ resource\b", message):
        return _not_allowed([right], namespace)
    if refused.status == 404 and re.search(r"\bnamespaces? .*not found", message):
        return ClusterError(
            f"the cluster has no namespace {namespace}",
            hint="name another with --namespace, or have it created",
        )
    return ClusterError(f"the API server refuses to {right}: {message}")


def _read_rights(message: str) -> list[Right]:
    """Return the rights in a refusal to grant a role, as in `{APIGroups:[""], Resources:["pods"], Verbs:["list"]}`."""
    rights = []
    for entry in re.findall(r"\{[^{}]*\}", message):
        parts = {
            name: re.findall(r'"([^"]*)"', listed)
            for name, listed in re.findall(r"(\w+):\[([^\]]*)\]", entry)
        }
        for group in parts.get("APIGroups", []):
            for resource in parts.get("Resources", []):
                rights += [Right(verb, group, resource) for verb in parts.get("Verbs", [])]
    return rights


def _cannot_give(not_held: list[Right]) -> ClusterError:
    listed = f": {_list_rights(not_held)}" if not_held else ""
    return ClusterError(
        f"you may not grant the job's master permissions that you do not have{listed}", hint=GIVEN
    )


def _list_rights(rights: list[Right]) -> str:
    """Return rights for people: `get, list pods; create jobs.batch`."""
    verbs: dict[str, list[str]] = {}
    for right in rights:
        verbs.setdefault(right.resource_name, []).append(right.verb)
    return "; ".join(f"{', '.join(some_verbs)} {name}" for name, some_verbs in verbs.items())


def _not_allowed(lacking: list[Right], namespace: str) -> ClusterError:
    missing = _list_rights(lacking)
    granted = f"an administrator grants it with a Role and a RoleBinding there; {GUIDE}"
    return ClusterError(
        f"you may not {missing} in the namespace {namespace}",
        hint=GIVEN if set(lacking) <= set(WITHOUT_ACCOUNT) else granted,
    )
