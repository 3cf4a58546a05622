"""Requests and answers of the double, whatever carries them, and how bodies are read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from tests.kubernetes import errors
from tests.kubernetes.kinds import BY_NAME, Kind, Object

ACCEPTED = "application/json, application/yaml, application/vnd.kubernetes.protobuf"
BODY_LIMIT = 3 << 20


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: tuple[str, ...]  # decoded parts
    options: dict[str, str]
    headers: dict[str, str]  # names in lower case
    body: bytes

    @property
    def content_type(self) -> str:
        return self.headers.get("content-type", "").partition(";")[0]


@dataclass(slots=True)
class Answer:
    """`stream` instead of a body: events, or pieces of a log."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    stream: Iterator[bytes] | None = None


def told(value: Any, status: int = 200, warnings: list[str] | None = None) -> Answer:
    headers = {"Content-Type": "application/json"}
    if warnings:
        headers["Warning"] = ", ".join(f"299 - {json.dumps(warning)}" for warning in warnings)
    return Answer(json.dumps(value).encode(), status, headers)


def text(content: str, status: int = 200) -> Answer:
    return Answer(content.encode(), status, {"Content-Type": "text/plain; charset=utf-8"})


def refusal(refused: errors.RefusedError) -> Answer:
    answer = told(refused.body, refused.code)
    if refused.retry_after:
        answer.headers["Retry-After"] = str(refused.retry_after)
    return answer


def read_object(request: Request, kind: Kind) -> Object:
    """The object in the body, which is of this kind."""
    if len(request.body) > BODY_LIMIT:
        raise errors.too_large_body(BODY_LIMIT)
    if request.content_type not in ("", "application/json", "application/yaml"):
        what = "the body of the request was in an unknown format - accepted media types include"
        raise errors.RefusedError(415, "UnsupportedMediaType", f"{what}: {ACCEPTED}")
    found = _parsed(request, kind)
    named = found.get("apiVersion", kind.api_version), found.get("kind", kind.name)
    if named != (kind.api_version, kind.name):
        other = BY_NAME.get(named)
        version = other.version if other else named[0]
        raise errors.bad_request(
            f'{named[1]} in version "{named[0]}" cannot be handled as a {kind.name}: converting '
            f"({version}.{named[1]}) to ({kind.group or 'core'}.{kind.name}): unknown conversion"
        )
    return found


def _parsed(request: Request, kind: Kind) -> Object:
    parse = yaml.safe_load if request.content_type == "application/yaml" else json.loads
    try:
        found = parse(request.body)
    except (ValueError, yaml.YAMLError):
        shown = request.body.decode(errors="replace") or "<empty>"
        raise errors.bad_request(
            f"the object provided is unrecognized (must be of type {kind.name}): couldn't get version/kind; "
            f"json parse error: unexpected end of JSON input ({shown})"
        ) from None
    return found  # type: ignore[no-any-return]


def read_options(request: Request) -> Object:
    """What a DELETE says in its body, if it says anything."""
    return json.loads(request.body) if request.body else {}
