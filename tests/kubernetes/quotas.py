"""Quotas: how much the pods of a namespace may ask for, all of them together."""

from __future__ import annotations

from decimal import Decimal

from tests.kubernetes import errors, quantities
from tests.kubernetes.controllers import NEVER
from tests.kubernetes.kinds import POD, QUOTA, Key, Object
from tests.kubernetes.store import Store

TERMINAL = ("Succeeded", "Failed")
COUNTS = ("pods", "count/pods")


def check(store: Store, namespace: str, pod: Object) -> None:
    """Before the pod is created. Raises `RefusedError` where a quota does not allow it."""
    for quota in store.all(QUOTA, namespace):
        hard, name = quota["spec"]["hard"], quota["metadata"]["name"]
        if missing := _unsaid(hard, pod):
            raise errors.forbidden(
                POD, pod["metadata"]["name"], f"failed quota: {name}: must specify {missing}"
            )
        used, asked = _used(store, namespace, list(hard)), {one: _of(pod, one) for one in hard}
        exceeded = [one for one in sorted(hard) if used[one] + asked[one] > quantities.value(str(hard[one]))]
        if exceeded:
            parts = {"requested": _shown(asked, exceeded), "used": _shown(used, exceeded)}
            parts["limited"] = ",".join(f"{one}={hard[one]}" for one in exceeded)
            told = ", ".join(f"{part}: {amounts}" for part, amounts in parts.items())
            raise errors.forbidden(POD, pod["metadata"]["name"], f"exceeded quota: {name}, {told}")


class Quotas:
    """Keeps what is used of each written in its status."""

    def __init__(self, store: Store) -> None:
        self._store, self._seen = store, 0

    def step(self, _now: float) -> float:
        changes, self._seen = self._store.since(self._seen), self._store.revision
        for namespace in {one.key.namespace for one in changes if one.key.kind in (POD, QUOTA)}:
            for quota in self._store.all(QUOTA, namespace):
                hard = quota["spec"]["hard"]
                used = _used(self._store, namespace, list(hard))
                status = {"hard": hard, "used": {one: quantities.shown(used[one], one) for one in hard}}
                self._store.put(Key(QUOTA, namespace, quota["metadata"]["name"]), {**quota, "status": status})
        return NEVER


def _used(store: Store, namespace: str, names: list[str]) -> dict[str, Decimal]:
    pods = [one for one in store.all(POD, namespace) if one["status"]["phase"] not in TERMINAL]
    return {name: sum((_of(pod, name) for pod in pods), Decimal(0)) for name in names}


def _of(pod: Object, name: str) -> Decimal:
    if name in COUNTS:
        return Decimal(1)
    kind, resource = _place(name)
    amounts = [one["resources"].get(kind, {}).get(resource, "0") for one in pod["spec"]["containers"]]
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
