"""The environment of a container: values, the downward API, keys of ConfigMaps and Secrets."""

from __future__ import annotations

import base64
import re
from typing import Any

from tests.kubernetes import quantities
from tests.kubernetes.containers import expanded
from tests.kubernetes.kinds import CONFIG_MAP, SECRET, Key, Object
from tests.kubernetes.store import Store


class MissingError(Exception):
    """A ConfigMap or a Secret, or a key of one, that a container needs is not there."""


def of(store: Store, pod: Object, container: Object, address: str, given: dict[str, str]) -> dict[str, str]:
    """Later variables may use earlier ones, and what is given. MissingError."""
    found: dict[str, str] = {"HOSTNAME": pod["metadata"]["name"], **given}
    for source in container.get("envFrom", []):
        found |= _all(store, pod, source)
    for variable in container.get("env", []):
        if "valueFrom" in variable:
            value = _value(store, pod, container, variable["valueFrom"], address)
        else:
            value = expanded(variable.get("value", ""), found)
        if value is not None:
            found[variable["name"]] = value
    return found


def field(pod: Object, path: str, address: str) -> str:
    """Of the downward API: `metadata.name`, `metadata.labels['rank']`, `status.podIP` …"""
    if path in ("status.podIP", "status.hostIP"):
        return address
    match = re.fullmatch(r"(metadata\.(?:labels|annotations))\['(.+)'\]", path)
    value: Any = pod
    for name in (match[1] if match else path).split("."):
        value = value.get(name) or {}
    if match:
        return str(value.get(match[2], ""))
    if isinstance(value, dict):
        return "\n".join(f'{name}="{value[name]}"' for name in sorted(value))
    return str(value)


def values(store: Store, source: Key, reference: Object) -> dict[str, bytes]:
    """Of a ConfigMap or Secret. MissingError: it is not there, and the reference does not say that it need not be."""
    found = store.get(source)
    if found is None:
        if reference.get("optional"):
            return {}
        raise MissingError(f'{source.kind.name.lower()} "{source.name}" not found')
    data, binary = found.get("data") or {}, found.get("binaryData") or {}
    if source.kind is SECRET:
        data, binary = {}, data
    return {name: text.encode() for name, text in data.items()} | {
        name: base64.b64decode(text) for name, text in binary.items()
    }


def _all(store: Store, pod: Object, source: Object) -> dict[str, str]:
    kind, name = (CONFIG_MAP, "configMapRef") if "configMapRef" in source else (SECRET, "secretRef")
    found = values(store, Key(kind, pod["metadata"]["namespace"], source[name]["name"]), source[name])
    return {source.get("prefix", "") + key: value.decode() for key, value in found.items()}


def _value(store: Store, pod: Object, container: Object, source: Object, address: str) -> str | None:
    if "fieldRef" in source:
        return field(pod, source["fieldRef"]["fieldPath"], address)
    if "resourceFieldRef" in source:
        return _resource(container, source["resourceFieldRef"])
    kind, name = (CONFIG_MAP, "configMapKeyRef") if "configMapKeyRef" in source else (SECRET, "secretKeyRef")
    reference = source[name]
    key = Key(kind, pod["metadata"]["namespace"], reference["name"])
    value = values(store, key, reference).get(reference["key"])
    if value is None and not reference.get("optional"):
        where = f"{key.kind.name} {key.namespace}/{key.name}"
        raise MissingError(f"couldn't find key {reference['key']} in {where}")
    return None if value is None else value.decode()


def _resource(container: Object, reference: Object) -> str:
    kind, name = reference["resource"].split(".", 1)
    amount = quantities.value(container["resources"].get(kind, {}).get(name, "0"))
    divisor = quantities.value(reference.get("divisor", "0")) or 1
    return str(-int(-amount // divisor))
