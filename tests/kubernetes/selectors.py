"""Label and field selectors of lists and watches."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.kubernetes.errors import bad_request
from tests.kubernetes.kinds import NODE, POD, Kind, Object

Matches = Callable[[Object], bool]
Labels = dict[str, str]
TOKEN = re.compile(r"\s*(==|!=|=|!|\(|\)|,|[^\s=!(),]+)")
FIELDS = {
    POD: {"spec.nodeName", "spec.restartPolicy", "spec.serviceAccountName", "status.phase", "status.podIP"},
    NODE: {"spec.unschedulable"},
}
EVENT_FIELDS = {"involvedObject.kind", "involvedObject.name", "involvedObject.uid", "reason", "type"}


def parse(kind: Kind, labels: str, fields: str) -> Matches:
    """Of the two query parameters, each empty where nothing is asked for."""
    label_tests, field_tests = parse_labels(labels), _parse_fields(kind, fields)

    def matches(found: Object) -> bool:
        named = found["metadata"].get("labels") or {}
        return all(test(named) for test in label_tests) and all(test(found) for test in field_tests)

    return matches


def matches_labels(selector: Object, labels: Labels) -> bool:
    """`matchLabels` and `matchExpressions` of a Job, a Service or a budget."""
    wanted = selector.get("matchLabels") or {}
    if any(labels.get(name) != value for name, value in wanted.items()):
        return False
    operators: dict[str, Callable[[str, list[str]], bool]] = {
        "In": lambda key, values: labels.get(key) in values,
        "NotIn": lambda key, values: labels.get(key) not in values,
        "Exists": lambda key, values: key in labels,
        "DoesNotExist": lambda key, values: key not in labels,
    }
    expressions = selector.get("matchExpressions") or []
    return all(operators[one["operator"]](one["key"], one.get("values") or []) for one in expressions)


def parse_labels(text: str) -> list[Callable[[Labels], bool]]:
    words = TOKEN.findall(text)
    tests = []
    while words:
        tests.append(_requirement(words))
        if words:
            _expect(words, ",")
    return tests


def _requirement(words: list[str]) -> Callable[[Labels], bool]:
    key = words.pop(0)
    if key == "!":
        absent = words.pop(0)
        return lambda labels: absent not in labels
    if not words or words[0] == ",":
        return lambda labels: key in labels
    operator = words.pop(0)
    if operator in ("=", "=="):
        value = words.pop(0) if words and words[0] != "," else ""
        return lambda labels: labels.get(key) == value
    if operator == "!=":
        value = words.pop(0) if words and words[0] != "," else ""
        return lambda labels: labels.get(key) != value
    values = _values(words)
    if operator == "in":
        return lambda labels: labels.get(key) in values
    if operator == "notin":
        return lambda labels: labels.get(key) not in values
    raise bad_request(
        f"unable to parse requirement: found '{operator}', "
        "expected: in, notin, =, ==, !=, gt, lt"
    )  # fmt: skip


def _values(words: list[str]) -> set[str]:
    _expect(words, "(")
    values = set()
    while words and words[0] != ")":
        if words[0] != ",":
            values.add(words[0])
        words.pop(0)
    _expect(words, ")")
    return values


def _expect(words: list[str], wanted: str) -> None:
    found = words.pop(0) if words else ""
    if found != wanted:
        raise bad_request(f"unable to parse requirement: found '{found}' expected: '{wanted}'")


def _parse_fields(kind: Kind, text: str) -> list[Matches]:
    return [_field_test(kind, part) for part in text.split(",") if part]


def _field_test(kind: Kind, part: str) -> Matches:
    match = re.fullmatch(r"([^=!]+)(==|!=|=)(.*)", part)
    if match is None:
        raise bad_request(f"invalid selector: '{part}'; can't understand '{part}'")
    path, operator, value = match.groups()
    known = {"metadata.name", "metadata.namespace"} | FIELDS.get(kind, set())
    if path not in known and not (kind.name == "Event" and path in EVENT_FIELDS):
        raise bad_request(f"field label not supported: {path}")
    return lambda found: (_at(found, path) == value) == (operator != "!=")


def _at(found: Any, path: str) -> str:
    for name in path.split("."):
        found = found.get(name) or {}
    return found or ""
