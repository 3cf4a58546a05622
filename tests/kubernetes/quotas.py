"""Quotas: how much the pods of a namespace may ask for, all of them together, and how many objects there may be."""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import errors, quantities
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import KINDS, LIMIT_RANGE, POD, QUOTA, Key, Kind, Object
from tests.kubernetes.store import Store

TERMINAL = ("Succeeded", "Failed")
COUNTS = ("pods", "count/pods")


def check(store: Store, kind: Kind, namespace: str, found: Object) -> None:
    """Before an object is created. Raises `RefusedError` where a quota does not allow it."""
    for quota in store.all(QUOTA, namespace):
        name, of = found["metadata"]["name"], quota["metadata"]["name"]
        hard = {one: most for one, most in quota["spec"]["hard"].items() if _kind(one) is kind}
        if kind is POD and (missing := _unsaid(hard, found)):
            raise errors.forbidden(kind, name, f"failed quota: {of}: must specify {missing}")
        used, asked = _used(store, namespace, list(hard)), {one: _of(found, one) for one in hard}
        exceeded = [one for one in sorted(hard) if used[one] + asked[one] > quantities.value(str(hard[one]))]
        if exceeded:
            parts = {"requested": _shown(asked, exceeded), "used": _shown(used, exceeded)}
            parts["limited"] = ",".join(f"{one}={hard[one]}" for one in exceeded)
            told = ", ".join(f"{part}: {amounts}" for part, amounts in parts.items())
            raise errors.forbidden(kind, name, f"exceeded quota: {of}, {told}")


class Quotas:
    """Keeps what is used of each written in its status."""

    def __init__(self, store: Store) -> None:
        self._store, self._seen = store, 0

    def step(self, _now: float) -> float:
        changes, self._seen = self._store.since(self._seen), self._store.revision
        for namespace in {one.key.namespace for one in changes if one.key.namespace}:
            for quota in self._store.all(QUOTA, namespace):
                hard = quota["spec"]["hard"]
                used = _used(self._store, namespace, list(hard))
                status = {"hard": hard, "used": {one: quantities.shown(used[one], one) for one in hard}}
                if status != quota.get("status"):
                    self._store.put(
                        Key(QUOTA, namespace, quota["metadata"]["name"]), {**quota, "status": status}
                    )
        return NEVER


def _used(store: Store, namespace: str, names: list[str]) -> dict[str, Decimal]:
    return {
        name: sum((_of(one, name) for one in _counted(store, namespace, name)), Decimal(0)) for name in names
    }


def _counted(store: Store, namespace: str, name: str) -> list[Object]:
    """Pods that have ended use nothing any more."""
    kind = _kind(name)
    found = store.all(kind, namespace) if kind is not None else []
    return [one for one in found if kind is not POD or one["status"]["phase"] not in TERMINAL]


def check_ranges(store: Store, kind: Kind, namespace: str, found: Object) -> None:
    """Refuse a pod with a container above what a LimitRange lets one have. The double looks at maxima only."""
    for limits in store.all(LIMIT_RANGE, namespace) if kind is POD else ():
        for entry in limits["spec"]["limits"]:
            for resource, most in (entry.get("max") or {}).items() if entry["type"] == "Container" else ():
                for container in found["spec"]["containers"]:
                    limit = container["resources"].get("limits", {}).get(resource)
                    if limit is not None and quantities.value(limit) > quantities.value(most):
                        why = f"maximum {resource} usage per Container is {most}, but limit is {limit}"
                        raise errors.forbidden(POD, found["metadata"]["name"], why)


def _kind(name: str) -> Kind | None:
    """Return the kind of object that a quota limits; None if the double has none of it."""
    if not name.startswith("count/"):
        return POD
    return next((kind for kind in KINDS if kind.qualified == name.removeprefix("count/")), None)


def _of(found: Object, name: str) -> Decimal:
    if name == "pods" or name.startswith("count/"):
        return Decimal(1)
    kind, resource = _place(name)
    amounts = [one["resources"].get(kind, {}).get(resource, "0") for one in found["spec"]["containers"]]
    return sum(map(quantities.value, amounts), Decimal(0))


def _place(name: str) -> tuple[str, str]:
    """`limits.memory`, or `cpu` for what is requested of it."""
    kind, _, resource = name.rpartition(".")
    return kind or "requests", resource


def _unsaid(hard: Object, pod: Object) -> str:
    """What containers must say because a quota limits it, and don't: `requests.cpu for: main,other; …`."""
    found = []
    for name in sorted(set(hard) - set(COUNTS)):
        kind, resource = _place(name)
        silent = [
            one["name"] for one in pod["spec"]["containers"] if resource not in one["resources"].get(kind, {})
        ]
        found += [f"{name} for: {','.join(silent)}"] if silent else []
    return "; ".join(found)


def _shown(amounts: dict[str, Decimal], names: list[str]) -> str:
    return ",".join(f"{name}={quantities.shown(amounts[name], name)}" for name in names)
