"""Pods for tests of the double, and how they are watched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from kubernetes import watch


def pod(name: str, script: str) -> dict[str, Any]:
    """One container with a shell."""
    container = {"name": "main", "image": "busybox:1", "command": ["sh", "-c", script]}
    return {"metadata": {"name": name}, "spec": {"containers": [container], "restartPolicy": "Never"}}


def watched(listed: Any, namespace: str, since: Any, last: str) -> Iterator[Any]:
    """Events after that version, up to the first of that type."""
    options = {"resource_version": since.metadata.resource_version, "timeout_seconds": 10}
    with contextlib.closing(watch.Watch().stream(listed, namespace, **options)) as events:
        for event in events:
            yield event
            if event["type"] == last:
                return


def phases(core: Any, namespace: str, since: Any, last: str) -> list[str]:
    """Of a pod that was created alone in its namespace, until that one."""
    found = [since.status.phase]
    with contextlib.closing(watched(core.list_namespaced_pod, namespace, since, "DELETED")) as events:
        for event in events:
            phase = event["object"].status.phase
            found += [phase] if found[-1] != phase else []
            if phase == last:
                break
    return found


def until(core: Any, namespace: str, since: Any, phase: str) -> Any:
    """The pod that was created, as soon as it is in that phase."""
    name = since.metadata.name
    with contextlib.closing(watched(core.list_namespaced_pod, namespace, since, "DELETED")) as events:
        for event in events:
            found = event["object"]
            if found.metadata.name == name and found.status.phase == phase:
                return found
    raise AssertionError(f"pod {name} did not come to be {phase}")
