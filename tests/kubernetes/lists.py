"""Lists: of now or of an older revision, and in pages."""

from __future__ import annotations

import base64
import json

from tests.kubernetes import errors
from tests.kubernetes.clock import Clock
from tests.kubernetes.kinds import Kind, Object
from tests.kubernetes.selectors import Matches
from tests.kubernetes.store import Store

PATIENCE = 3.0  # seconds that a server waits for a revision which is not there yet
LISTED_TOO_OLD = "The resourceVersion for the provided list is too old."
CONTINUED_TOO_OLD = "The provided continue parameter is too old to display a consistent list result."


def revision(text: str) -> int | None:
    """Of the query parameter; None is any."""
    if text in ("", "0"):
        return None
    if not text.isdecimal():
        raise errors.internal(
            f'resourceVersion: Invalid value: "{text}": strconv.ParseUint: parsing "{text}": invalid syntax'
        )
    return int(text)


def listed(
    store: Store, clock: Clock, kind: Kind, namespace: str, matches: Matches, options: dict[str, str]
) -> Object:
    asked, limit = revision(options.get("resourceVersion", "")), int(options.get("limit") or 0)
    start: tuple[str, ...] = ()
    if options.get("continue"):
        token = json.loads(base64.urlsafe_b64decode(options["continue"]))
        asked, start = token["rv"], tuple(token["start"])
    is_exact = bool(start) or options.get("resourceVersionMatch") == "Exact" or (limit and asked is not None)
    with store.changed:
        _wait_for(store, clock, asked or 0)
        if is_exact and asked is not None:
            if asked < store.compacted:
                raise errors.expired(CONTINUED_TOO_OLD if start else LISTED_TOO_OLD)
            current, found = asked, store.all_at(asked, kind, namespace)
        else:
            current, found = store.revision, store.all(kind, namespace)
    found = [one for one in found if matches(one) and _place(one) > start]
    return _page(kind, current, found, limit, "labelSelector" in options or "fieldSelector" in options)


def of_items(kind: Kind, current: int, found: list[Object]) -> Object:
    items = [{name: one[name] for name in one if name not in ("kind", "apiVersion")} for one in found]
    head = {"kind": f"{kind.name}List", "apiVersion": kind.api_version}
    return {**head, "metadata": {"resourceVersion": str(current)}, "items": items}


def _page(kind: Kind, current: int, found: list[Object], limit: int, selected: bool) -> Object:
    if not limit or len(found) <= limit:
        return of_items(kind, current, found)
    told = of_items(kind, current, found[:limit])
    token = json.dumps({"rv": current, "start": _place(found[limit - 1])}).encode()
    told["metadata"]["continue"] = base64.urlsafe_b64encode(token).decode()
    if not selected:
        told["metadata"]["remainingItemCount"] = len(found) - limit
    return told


def _place(found: Object) -> tuple[str, ...]:
    return found["metadata"].get("namespace", ""), found["metadata"]["name"]


def _wait_for(store: Store, clock: Clock, asked: int) -> None:
    until = clock.now() + PATIENCE
    while store.revision < asked:
        if clock.now() >= until:
            raise errors.too_large_version(asked, store.revision)
        clock.wait(until)
