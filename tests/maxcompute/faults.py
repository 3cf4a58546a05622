"""What goes wrong because a test asked for it: rules that the next requests which fit are handled by."""

from __future__ import annotations

import re
import threading
from typing import Literal

import msgspec

Kind = Literal["status", "drop", "lose", "cut", "short", "flip", "expire", "delay"]


class Fault(msgspec.Struct):
    """What happens to the requests whose method and target (`GET /projects/…?data…`) `match` is found in.

    status: answer `status` with `code`. drop: close the connection without an answer. lose: the same when the
    request was done. cut: send `part` of the body.
    short: rows are missing at the end of a stream that is valid otherwise. flip: one bit of the body is wrong.
    expire: the tunnel forgets the session that is named. delay: wait `seconds` first.
    times: how often; skip: of how many that fit before nothing happens.
    """

    kind: Kind
    match: str
    times: int = 1
    skip: int = 0
    status: int = 500
    code: str = "InternalServerError"
    part: float = 0.5
    seconds: float = 0.0


class Faults:
    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault) -> None:
        with self._lock:
            self._rules.append(fault)

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def of(self, request: str) -> Fault | None:
        """The fault of this request; it counts as used."""
        with self._lock:
            for rule in self._rules:
                if rule.times and re.search(rule.match, request):
                    if rule.skip:
                        rule.skip -= 1
                        return None
                    rule.times -= 1
                    return rule
        return None
