"""Requests and answers of the double, whatever carries them."""

from __future__ import annotations

import email.utils
import json
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: tuple[str, ...]  # decoded parts after the endpoint
    options: dict[str, str]  # actions are options without a value
    headers: dict[str, str]  # names in lower case
    body: bytes


@dataclass(slots=True)
class Answer:
    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


def xml(text: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(
        f'<?xml version="1.0"?>\n{text}'.encode(), 200, {"Content-Type": "application/xml", **named}
    )


def json_answer(value: Any, status: int = 200) -> Answer:
    return Answer(json.dumps(value).encode(), status, {"Content-Type": "application/json"})


def xml_error(status: int, code: str, message: str) -> Answer:
    text = (
        f"<Error><Code>{code}</Code><Message>{escape(message)}</Message>"
        "<RequestId>0</RequestId><HostId>double</HostId></Error>"
    )
    return Answer(text.encode(), status, {"Content-Type": "application/xml"})


def json_error(status: int, code: str, message: str) -> Answer:
    return json_answer({"Code": code, "Message": message}, status)


def cdata(text: str) -> str:
    return f"<![CDATA[{text.replace(']]>', ']]]]><![CDATA[>')}]]>"


def http_date(seconds: float) -> str:
    return email.utils.formatdate(seconds, usegmt=True)
