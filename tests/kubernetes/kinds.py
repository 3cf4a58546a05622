"""What kinds of objects there are, and where in the API each lives."""

from __future__ import annotations

from typing import Any, NamedTuple

Object = dict[str, Any]


class Kind(NamedTuple):
    plural: str
    name: str
    fields: tuple[str, ...]  # beside apiVersion, kind and metadata
    group: str = ""
    version: str = "v1"
    namespaced: bool = True
    counts_generations: bool = False
    answers_delete_with_object: bool = False

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def qualified(self) -> str:
        """As errors call the resource: `pods`, `jobs.batch`."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Key(NamedTuple):
    kind: Kind
    namespace: str
    name: str


SPEC = ("spec", "status")
RBAC = "rbac.authorization.k8s.io"

NAMESPACE = Kind("namespaces", "Namespace", SPEC, namespaced=False)
NODE = Kind("nodes", "Node", SPEC, namespaced=False)
POD = Kind("pods", "Pod", SPEC, counts_generations=True, answers_delete_with_object=True)
SERVICE = Kind("services", "Service", SPEC, answers_delete_with_object=True)
CONFIG_MAP = Kind("configmaps", "ConfigMap", ("data", "binaryData", "immutable"))
SECRET = Kind("secrets", "Secret", ("data", "stringData", "type", "immutable"))
SERVICE_ACCOUNT = Kind(
    "serviceaccounts",
    "ServiceAccount",
    ("secrets", "imagePullSecrets", "automountServiceAccountToken"),
    answers_delete_with_object=True,
)
CLAIM = Kind("persistentvolumeclaims", "PersistentVolumeClaim", SPEC, answers_delete_with_object=True)
EVENT = Kind(
    "events",
    "Event",
    (
        *(
            "involvedObject",
            "reason",
            "message",
            "source",
            "firstTimestamp",
            "lastTimestamp",
            "count",
            "type",
        ),
        *("eventTime", "series", "action", "related", "reportingComponent", "reportingInstance"),
    ),
)
JOB = Kind("jobs", "Job", SPEC, "batch", counts_generations=True)
ROLE = Kind("roles", "Role", ("rules",), RBAC)
ROLE_BINDING = Kind("rolebindings", "RoleBinding", ("subjects", "roleRef"), RBAC)
PRIORITY_CLASS = Kind(
    "priorityclasses",
    "PriorityClass",
    ("value", "globalDefault", "description", "preemptionPolicy"),
    "scheduling.k8s.io",
    namespaced=False,
    counts_generations=True,
)
BUDGET = Kind("poddisruptionbudgets", "PodDisruptionBudget", SPEC, "policy", counts_generations=True)
QUOTA = Kind("resourcequotas", "ResourceQuota", SPEC, answers_delete_with_object=True)
LIMIT_RANGE = Kind("limitranges", "LimitRange", ("spec",))
NETWORK_POLICY = Kind(
    "networkpolicies", "NetworkPolicy", ("spec",), "networking.k8s.io", counts_generations=True
)
ENDPOINTS = Kind("endpointslices", "EndpointSlice", ("addressType", "endpoints", "ports"), "discovery.k8s.io")

KINDS = (
    *(NAMESPACE, NODE, POD, SERVICE, CONFIG_MAP, SECRET, SERVICE_ACCOUNT, CLAIM, EVENT, JOB, ROLE),
    *(ROLE_BINDING, PRIORITY_CLASS, BUDGET, QUOTA, LIMIT_RANGE, ENDPOINTS, NETWORK_POLICY),
)
BY_PATH = {(kind.group, kind.version, kind.plural): kind for kind in KINDS}
BY_NAME = {(kind.api_version, kind.name): kind for kind in KINDS}
GROUPS = {(kind.group, kind.version) for kind in KINDS} | {
    ("authorization.k8s.io", "v1"),
    ("authentication.k8s.io", "v1"),
}
