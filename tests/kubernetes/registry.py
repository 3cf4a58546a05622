"""What can be done to an object: create, update, patch, delete; with resource versions, finalizers and grace."""

from __future__ import annotations

import copy
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tests.kubernetes import defaults, errors, pod_status, quotas, validation
from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import (
    CONFIG_MAP,
    JOB,
    NAMESPACE,
    POD,
    PRIORITY_CLASS,
    SERVICE,
    SERVICE_ACCOUNT,
    Key,
    Kind,
    Object,
)
from tests.kubernetes.ownership import Ownership
from tests.kubernetes.store import Store

KEPT = ("name", "generateName", "namespace", "labels", "annotations", "finalizers", "ownerReferences")
FIXED = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
TERMINAL = ("Succeeded", "Failed")
GATED = "Scheduling is blocked due to non-empty scheduling gates"


@dataclass
class Deletion:
    """How something is to be deleted."""

    grace: int | None = None  # seconds, of a pod
    propagation: str = ""  # Foreground, Background, Orphan, or what the kind does
    uid: str = ""  # preconditions
    revision: str = ""
    dry_run: bool = False


@dataclass
class Registry:
    store: Store
    clock: Clock
    addresses: Iterator[str]  # of Services
    ownership: Ownership = field(default_factory=Ownership)
    webhooks: list[Callable[[Kind, Object], None]] = field(
        default_factory=list
    )  # that change what is created

    def read(self, key: Key) -> Object:
        found = self.store.get(key)
        if found is None:
            raise errors.not_found(key.kind, key.name)
        return found

    def create(self, kind: Kind, namespace: str, given: Object, *, dry_run: bool = False) -> Object:
        given = copy.deepcopy(given)
        metadata = given.setdefault("metadata", {})
        if metadata.get("namespace", namespace) != namespace:
            raise errors.bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
        if metadata.get("resourceVersion"):
            raise errors.internal("resourceVersion should not be set on objects to be created")
        if kind.namespaced:
            self._check_namespace(kind, namespace, metadata.get("name", ""))
        self._prepare(kind, namespace, given)
        found = {"kind": kind.name, "apiVersion": kind.api_version, **given}
        key = Key(kind, namespace if kind.namespaced else "", found["metadata"].get("name", ""))
        self._admit(kind, namespace, found)
        validation.check_new(kind, found)
        if kind.namespaced:
            quotas.check_ranges(self.store, kind, namespace, found)
            quotas.check(self.store, kind, namespace, found)
        existing = self.store.get(key)
        if existing is not None:
            terminating = "deletionTimestamp" in existing["metadata"]
            raise errors.already_exists(kind, key.name, terminating=terminating)
        if dry_run:
            return found
        stored = self.store.put(key, found)
        if kind is NAMESPACE:
            self._furnish(key.name)
        return stored

    def update(self, key: Key, given: Object, part: str = "", *, dry_run: bool = False) -> Object:
        """`part` is "" or "status": what the other says is ignored."""
        kind, metadata = key.kind, given.get("metadata") or {}
        if metadata.get("uid") and self.store.get(key) is None:  # a client that has read what is gone now
            raise errors.conflict(kind, key.name, _of_another(key, metadata["uid"], ""))
        old = self.read(key)
        if metadata.get("name", key.name) != key.name:
            raise errors.bad_request(
                f"the name of the object ({metadata['name']}) does not match the name on the URL ({key.name})"
            )
        self._check_same(key, old, metadata)
        if part == "status":
            found = {**old, "status": copy.deepcopy(given.get("status", {}))}
        else:
            found = self._changed(kind, copy.deepcopy(given), old)
            validation.check_change(kind, found, old)
        if dry_run:
            return found
        if _is_released(found):
            self.store.remove(key, old)  # which is what its watchers see
            return found
        return self.store.put(key, found)

    def patch(
        self, key: Key, change: Callable[[Object], Object], part: str = "", *, dry_run: bool = False
    ) -> Object:
        old = self.read(key)
        return self.update(key, change(copy.deepcopy(old)), part, dry_run=dry_run)

    def delete(self, key: Key, how: Deletion) -> tuple[Object, bool]:
        """The object as it is then, and whether it is gone."""
        old = self.read(key)
        metadata = old["metadata"]
        self._check_preconditions(key, metadata, how)
        if how.dry_run:
            return old, True
        if key.kind is NAMESPACE:  # which its controller empties first
            ending = {**metadata, "deletionTimestamp": metadata.get("deletionTimestamp", self.clock.stamp())}
            return self.store.put(key, {**old, "metadata": ending, "status": {"phase": "Terminating"}}), False
        finalizers = self._finalizers(key.kind, metadata, how)
        grace = self._grace(key.kind, old, how)
        if grace == 0 and not finalizers:
            return self._take_away(key, old), True
        changed = {**metadata, **({"finalizers": finalizers} if finalizers else {})}
        pending = metadata.get("deletionGracePeriodSeconds")
        if pending is None and key.kind.counts_generations:
            changed["generation"] = metadata["generation"] + 1
        if pending is None or grace < pending:
            changed["deletionTimestamp"] = self.clock.stamp(grace)
            changed["deletionGracePeriodSeconds"] = grace
        return self.store.put(key, {**old, "metadata": changed}), False

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        if "deletionTimestamp" in self.read(Key(NAMESPACE, "", namespace))["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise errors.forbidden(kind, name, why)

    def _take_away(self, key: Key, old: Object) -> Object:
        metadata = old["metadata"]
        if key.kind is POD and metadata.get("deletionGracePeriodSeconds") != 0:  # whose watchers are told so
            cut = {"deletionTimestamp": self.clock.stamp(), "deletionGracePeriodSeconds": 0}
            if "deletionTimestamp" not in metadata:
                cut["generation"] = metadata["generation"] + 1
            old = self.store.put(key, {**old, "metadata": {**metadata, **cut}})
        return self.store.remove(key, old)

    def _prepare(self, kind: Kind, namespace: str, given: Object) -> None:
        metadata = {name: value for name, value in given["metadata"].items() if name in KEPT}
        if not metadata.get("name") and metadata.get("generateName"):
            metadata["name"] = metadata["generateName"] + defaults.random_suffix()
        if kind.namespaced:
            metadata["namespace"] = namespace
        metadata["uid"] = str(uuid.uuid4())
        metadata["creationTimestamp"] = self.clock.stamp()
        if kind.counts_generations:
            metadata["generation"] = 1
        for name in [name for name in given if name not in kind.fields]:
            del given[name]
        given["metadata"] = metadata
        defaults.fill(kind, given)

    def _admit(self, kind: Kind, namespace: str, found: Object) -> None:
        for change in self.webhooks:
            change(kind, found)
        if kind is SERVICE:
            address = found["spec"].setdefault("clusterIP", next(self.addresses))
            found["spec"].setdefault("clusterIPs", [address])
        if kind is not POD:
            return
        spec, name = found["spec"], found["metadata"].get("name", "")
        account = spec.get("serviceAccountName") or "default"
        found_account = self.store.get(Key(SERVICE_ACCOUNT, namespace, account))
        if found_account is None:
            why = f'error looking up service account {namespace}/{account}: serviceaccount "{account}" not found'
            raise errors.forbidden(POD, name, why)
        mounts = found_account.get("automountServiceAccountToken", True)
        self._check_pod_security(namespace, found)
        defaults.admit_pod(found, self._priority(spec, name), mounts_token=mounts)
        if spec.get("schedulingGates"):
            wanted = {"PodScheduled": ("False", "SchedulingGated", GATED)}
            found["status"]["conditions"] = pod_status.conditions([], wanted, self.clock.stamp())

    def _check_pod_security(self, namespace: str, found: Object) -> None:
        """Of the rules of the level restricted, the one on privilege escalation stands for all."""
        labels = self.read(Key(NAMESPACE, "", namespace))["metadata"].get("labels", {})
        if labels.get("pod-security.kubernetes.io/enforce") != "restricted":
            return
        for container in found["spec"]["containers"]:
            if (container.get("securityContext") or {}).get("allowPrivilegeEscalation") is not False:
                why = (
                    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container '
                    f'"{container["name"]}" must set securityContext.allowPrivilegeEscalation=false)'
                )
                raise errors.forbidden(POD, found["metadata"].get("name", ""), why)

    def _priority(self, spec: Object, name: str) -> int:
        wanted = spec.get("priorityClassName")
        if not wanted:
            return 0
        found = self.store.get(Key(PRIORITY_CLASS, "", wanted))
        if found is None:
            raise errors.forbidden(POD, name, f"no PriorityClass with name {wanted} was found")
        if "preemptionPolicy" in found:
            spec.setdefault("preemptionPolicy", found["preemptionPolicy"])
        return int(found["value"])

    def _furnish(self, namespace: str) -> None:
        """What every namespace has."""
        self.create(SERVICE_ACCOUNT, namespace, {"metadata": {"name": "default"}})
        root = {
            "metadata": {"name": "kube-root-ca.crt"},
            "data": {"ca.crt": "the double has no certificates\n"},
        }
        self.create(CONFIG_MAP, namespace, root)

    def _changed(self, kind: Kind, given: Object, old: Object) -> Object:
        metadata = {name: value for name, value in (given.get("metadata") or {}).items() if name in KEPT}
        metadata |= {name: old["metadata"][name] for name in FIXED if name in old["metadata"]}
        metadata["resourceVersion"] = old["metadata"]["resourceVersion"]
        metadata["name"] = old["metadata"]["name"]
        if kind.namespaced:
            metadata["namespace"] = old["metadata"]["namespace"]
        content = {name: given[name] for name in kind.fields if name in given and name != "status"}
        found = {"kind": kind.name, "apiVersion": kind.api_version, "metadata": metadata, **content}
        if kind is SERVICE:
            fixed = {name: old["spec"][name] for name in ("clusterIP", "clusterIPs")}
            found["spec"] = {**fixed, **found["spec"]}
        if kind is not JOB:  # whose labels and selector are made once
            defaults.fill(kind, found)
        if "status" in old:
            found["status"] = old["status"]
        if kind.counts_generations and found.get("spec") != old.get("spec"):
            metadata["generation"] += 1
        return found

    def _check_same(self, key: Key, old: Object, metadata: Object) -> None:
        uid, revision = metadata.get("uid"), metadata.get("resourceVersion")
        if uid and uid != old["metadata"]["uid"]:
            raise errors.conflict(key.kind, key.name, _of_another(key, uid, old["metadata"]["uid"]))
        if revision and revision != old["metadata"]["resourceVersion"]:
            raise errors.modified(key.kind, key.name)

    def _check_preconditions(self, key: Key, metadata: Object, how: Deletion) -> None:
        if how.uid and how.uid != metadata["uid"]:
            why = (
                f"the UID in the precondition ({how.uid}) does not match the UID in record ({metadata['uid']}). "
                "The object might have been deleted and then recreated"
            )
            raise errors.conflict(key.kind, key.name, why, of_precondition=True)
        if how.revision and how.revision != metadata["resourceVersion"]:
            why = (
                f"the ResourceVersion in the precondition ({how.revision}) does not match the ResourceVersion in "
                f"record ({metadata['resourceVersion']}). The object might have been modified"
            )
            raise errors.conflict(key.kind, key.name, why, of_precondition=True)

    def _finalizers(self, kind: Kind, metadata: Object, how: Deletion) -> list[str]:
        found = [one for one in metadata.get("finalizers", []) if one not in ("orphan", "foregroundDeletion")]
        propagation = how.propagation or ("Orphan" if kind is JOB else "Background")
        if propagation == "Orphan":
            return [*found, "orphan"]
        return [*found, "foregroundDeletion"] if propagation == "Foreground" else found

    def _grace(self, kind: Kind, old: Object, how: Deletion) -> int:
        """Seconds; only pods that a node runs have any."""
        if kind is not POD or not old["spec"].get("nodeName") or old["status"].get("phase") in TERMINAL:
            return 0
        return int(old["spec"]["terminationGracePeriodSeconds"] if how.grace is None else how.grace)


def _is_released(found: Object) -> bool:
    """Whether it was to go as soon as nobody holds it any more."""
    metadata = found["metadata"]
    return metadata.get("deletionGracePeriodSeconds") == 0 and not metadata.get("finalizers")


def _of_another(key: Key, uid: str, found: str) -> str:
    """Text of a refusal to write over another object, or over none."""
    return (
        f"StorageError: invalid object, Code: 4, Key: /registry/{key.kind.plural}/{key.namespace}/{key.name}, "
        f"ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, "
        f"UID in object meta: {found}"
    )
