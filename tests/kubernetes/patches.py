"""The ways to change a part of an object: JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

import copy
from typing import Any

from tests.kubernetes.errors import rejected
from tests.kubernetes.kinds import Object

# Lists whose items a strategic patch merges one by one, and what tells the items apart.
MERGE_KEYS = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "secrets": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}


def merge(found: Any, patch: Any) -> Any:
    """A JSON merge patch: null takes a member away, a list replaces a list."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(found) if isinstance(found, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge(merged.get(name), value)
    return merged


def strategic(found: Any, patch: Any, name: str = "") -> Any:
    """As `merge`, but items of known lists are merged by their key, and finalizers are added."""
    if isinstance(patch, list):
        return _merged_list(found or [], patch, name)
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {key: value for key, value in patch.items() if key != "$patch"}
    merged = dict(found) if isinstance(found, dict) else {}
    for key, value in patch.items():
        if key.startswith("$deleteFromPrimitiveList/"):
            listed = key.partition("/")[2]
            merged[listed] = [one for one in merged.get(listed, []) if one not in value]
        elif value is None:
            merged.pop(key, None)
        elif not key.startswith("$"):
            merged[key] = strategic(merged.get(key), value, key)
    return merged


def _merged_list(found: list[Any], patch: list[Any], name: str) -> list[Any]:
    if name == "finalizers":
        return [*found, *(one for one in patch if one not in found)]
    key = MERGE_KEYS.get(name)
    if key is None or not all(isinstance(one, dict) and key in one for one in [*found, *patch]):
        return patch
    merged = {one[key]: one for one in found}
    for one in patch:
        if one.get("$patch") == "delete":
            merged.pop(one[key], None)
        else:
            merged[one[key]] = strategic(merged.get(one[key]), one)
    return list(merged.values())


def json_patch(found: Object, operations: list[Object]) -> Object:
    """RFC 6902. A test that fails and a path that is not there are refused in the same words."""
    changed: Any = copy.deepcopy(found)
    try:
        for operation in operations:
            changed = _apply(changed, operation)
    except (KeyError, IndexError, ValueError, TypeError):
        raise rejected() from None
    return changed  # type: ignore[no-any-return]


def _apply(root: Any, operation: Object) -> Any:
    kind, path = operation["op"], _pointer(operation["path"])
    if kind == "test":
        if _get(root, path) != operation["value"]:
            raise ValueError(operation["path"])
        return root
    if kind == "remove":
        return _without(root, path)
    if kind == "replace":
        _get(root, path)
        return _with(_without(root, path), path, operation["value"])
    if kind == "add":
        return _with(root, path, operation["value"])
    source = _pointer(operation["from"])
    value = copy.deepcopy(_get(root, source))
    if kind == "move":
        root = _without(root, source)
    elif kind != "copy":
        raise ValueError(kind)
    return _with(root, path, value)


def _pointer(text: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _get(root: Any, path: list[str]) -> Any:
    for part in path:
        root = root[int(part)] if isinstance(root, list) else root[part]
    return root


def _with(root: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _get(root, path[:-1]), path[-1]
    if isinstance(holder, list):
        holder.insert(len(holder) if last == "-" else int(last), value)
    else:
        holder[last] = value
    return root


def _without(root: Any, path: list[str]) -> Any:
    holder, last = _get(root, path[:-1]), path[-1]
    del holder[int(last) if isinstance(holder, list) else last]
    return root
