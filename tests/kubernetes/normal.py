"""Compares what was recorded with what the double says, where both have times, uids and versions of their own.

The mapping is built as the replay goes: the first time that a recorded uid, version, address or generated name is met,
it is bound to what the double has in its place; from then on it must be the same one.
"""

from __future__ import annotations

import copy
import re
from typing import Any

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
UID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
IDENTIFIER = re.compile("JTI=" + UID.pattern)
ADDRESS = re.compile(r"\d+\.\d+\.\d+\.\d+(:\d+)?")
EVENT = re.compile(r"[a-z0-9-]+\.[0-9a-f]{16}")  # the name of one ends in its time
CONTAINER = re.compile(r"(containerd://|sha256:)[0-9a-f]{64}")
EVENT = re.compile(r"(.*)\.[0-9a-f]{16}")
GENERATED = re.compile(r"(.*-)([bcdfghjklmnpqrstvwxz2456789]{5})")
TRIMMED = re.compile(r"(.*)\.\.\.<trimmed: (\d+) characters in all>", re.DOTALL)
SLEEP = re.compile(r"(?<=\b)sleep ([\d.]+)")
VERSIONS = ("resourceVersion",)
SECRETS = ("continue", "token")
OWN = (TIME, UID, IDENTIFIER, ADDRESS, CONTAINER, EVENT)

# What Go prints of its own structs is shortened on both sides: the double has none.
GO_STRUCTS = (
    (re.compile(r"core\.PodTemplateSpec\{.*\}: field", re.DOTALL), "core.PodTemplateSpec{}: field"),
    (re.compile(r"negative\)\n  core\.PodSpec\{.*\}\n", re.DOTALL), "negative)\n"),
    (re.compile(r"too old resource version: (\d+) \(\d+\)"), r"too old resource version: \1"),
    (re.compile(r"(Too large resource version: \d+, current:) \d+"), r"\1"),
)


class Mapping:
    """From what was recorded to what the double has."""

    def __init__(self, words: dict[str, str] | None = None, hurry: float = 1.0) -> None:
        self._bound: dict[str, str] = dict(words or {})
        self._hurry = hurry
        self._versions: dict[str, str] = {}
        self._passed_over: dict[str, str] = {}

    def copy(self) -> Mapping:
        copied = copy.copy(self)
        copied._bound, copied._versions = dict(self._bound), dict(self._versions)
        return copied

    def pass_over(self, version: str, instead: str) -> None:
        """An event that was not compared: where its version is named, that of the one before stands for it."""
        self._passed_over[version] = self._passed_over.get(instead, instead)

    def knows(self, recorded: str) -> bool:
        return recorded in self._bound

    def translated(self, recorded: Any, name: str = "") -> Any:
        """What is sent in place of what was recorded."""
        if isinstance(recorded, dict):
            return {key: self.translated(value, key) for key, value in recorded.items()}
        if isinstance(recorded, list):
            return [self.translated(value) for value in recorded]
        if not isinstance(recorded, str):
            return recorded
        if name in VERSIONS:
            return self._versions.get(recorded, recorded)
        trimmed = TRIMMED.fullmatch(recorded)
        if trimmed is not None:
            return trimmed[1][0] * int(trimmed[2])
        return self.text(recorded)

    def text(self, recorded: str) -> str:
        if recorded in self._bound:
            return self._bound[recorded]
        for known, ours in self._bound.items():
            if len(known) > 5 and known in recorded:
                recorded = recorded.replace(known, ours)
        recorded = SLEEP.sub(lambda match: f"sleep {float(match[1]) * self._hurry:g}", recorded)
        return re.sub(r"(?<=\()\d+(?=\))", lambda match: self._versions.get(match[0], match[0]), recorded)

    def differences(self, recorded: Any, ours: Any, path: str = "") -> list[str]:
        if isinstance(recorded, dict) and isinstance(ours, dict):
            if path == ".body.metadata" and "uid" not in recorded and self._is_newer(recorded, ours):
                return []
            return self._of_objects(recorded, ours, path)
        if isinstance(recorded, list) and isinstance(ours, list):
            if path == ".body.items":
                ours = self._in_their_order(recorded, ours)
            if len(recorded) != len(ours):
                return [f"{path}: {len(recorded)} items recorded, {len(ours)} here: {recorded} / {ours}"]
            pairs = enumerate(zip(recorded, ours, strict=True))
            return [one for number, (a, b) in pairs for one in self.differences(a, b, f"{path}[{number}]")]
        if isinstance(recorded, str) and isinstance(ours, str) and self._is_same(recorded, ours, path):
            return []
        return [] if recorded == ours else [f"{path}: {recorded!r} recorded, {ours!r} here"]

    def _is_newer(self, recorded: dict[str, Any], ours: dict[str, Any]) -> bool:
        """Of a list, which is as new as the last change of anything: here that may have been another one."""
        version = self._versions.get(recorded.get("resourceVersion", ""))
        return version is not None and int(version) < int(ours["resourceVersion"])

    def _in_their_order(self, recorded: list[Any], ours: list[Any]) -> list[Any]:
        """Lists are in the order of names, which for those that were made by a server is up to chance."""
        places = {self.text(one["metadata"]["name"]): place for place, one in enumerate(recorded)}
        return sorted(ours, key=lambda one: places.get(one["metadata"]["name"], len(places)))

    def _of_objects(self, recorded: dict[str, Any], ours: dict[str, Any], path: str) -> list[str]:
        missing = [f"{path}.{name}: recorded, not here" for name in recorded if name not in ours]
        extra = [f"{path}.{name}: not recorded, {ours[name]!r} here" for name in ours if name not in recorded]
        both = [name for name in recorded if name in ours]
        found = [
            one for name in both for one in self.differences(recorded[name], ours[name], f"{path}.{name}")
        ]
        return [*missing, *extra, *found]

    def _is_same(self, recorded: str, ours: str, path: str) -> bool:
        name = path.rpartition(".")[2]
        if name in VERSIONS:
            recorded, ours = self._passed_over.get(recorded, recorded), self._passed_over.get(ours, ours)
            return self._versions.setdefault(recorded, ours) == ours
        if name in SECRETS:
            self._bound[recorded] = ours
            return True
        if TIME.fullmatch(recorded):
            return TIME.fullmatch(ours) is not None
        if any(own.fullmatch(recorded) and own.fullmatch(ours) for own in OWN):
            return self._bound.setdefault(recorded, ours) == ours
        trimmed = TRIMMED.fullmatch(recorded)
        if trimmed is not None:
            return len(ours) == int(trimmed[2]) and ours.startswith(trimmed[1])
        one, other = (GENERATED.fullmatch(text) or EVENT.fullmatch(text) for text in (recorded, ours))
        if one and other and one[1] == other[1]:
            return self._bound.setdefault(recorded, ours) == ours
        return _short(self.text(recorded)) == _short(ours)


def _short(message: str) -> str:
    message = message.replace("\u00a0", " ")
    for pattern, short in GO_STRUCTS:
        message = pattern.sub(short, message)
    return message
