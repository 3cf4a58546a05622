"""Server-side apply: who applied which field, and what two appliers disagree about."""

from __future__ import annotations

from typing import Any

from tests.kubernetes.errors import RefusedError
from tests.kubernetes.kinds import Object
from tests.kubernetes.patches import strategic

Path = tuple[str, ...]


class Ownership:
    """Of all objects, by uid. Lists are owned as a whole."""

    def __init__(self) -> None:
        self._managers: dict[str, dict[Path, str]] = {}

    def apply(self, found: Object, applied: Object, manager: str, *, force: bool) -> Object:
        """`found` with all that `applied` says, and without what its manager applied before and not now."""
        owners = self._managers.setdefault(found["metadata"].get("uid", ""), {})
        wanted = dict(_leaves(applied))
        others = [
            (owners[path], path)
            for path, value in wanted.items()
            if owners.get(path, manager) != manager and _at(found, path) != value
        ]
        if others and not force:
            raise _conflicts(others)
        changed = strategic(found, applied)
        for path in [path for path, owner in owners.items() if owner == manager and path not in wanted]:
            del owners[path]
            changed = strategic(changed, _nested(path, None))
        owners.update(dict.fromkeys(wanted, manager))
        return changed  # type: ignore[no-any-return]

    def began(self, uid: str, applied: Object, manager: str) -> None:
        """An object that an apply made."""
        self._managers[uid] = dict.fromkeys(dict(_leaves(applied)), manager)


def _leaves(value: Any, path: Path = ()) -> list[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        return [leaf for name in value for leaf in _leaves(value[name], (*path, name)) if _is_owned(leaf[0])]
    return [(path, value)]


def _is_owned(path: Path) -> bool:
    return path[0] not in ("apiVersion", "kind") and path[:2] not in {
        ("metadata", "name"),
        ("metadata", "namespace"),
    }


def _at(found: Any, path: Path) -> Any:
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def _nested(path: Path, value: Any) -> Any:
    return {path[0]: _nested(path[1:], value)} if path else value


def _conflicts(others: list[tuple[str, Path]]) -> RefusedError:
    told = [(f'conflict with "{manager}"', "." + ".".join(path)) for manager, path in others]
    if len(told) == 1:
        message = f"Apply failed with 1 conflict: {told[0][0]}: {told[0][1]}"
    else:
        lines = "\n".join(f"{what}: {field}" for what, field in told)
        message = f"Apply failed with {len(told)} conflicts: {lines}"
    causes = [{"reason": "FieldManagerConflict", "message": what, "field": field} for what, field in told]
    return RefusedError(409, "Conflict", message, {"causes": causes})
