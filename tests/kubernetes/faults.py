"""What goes wrong because a test asked for it: rules that the next requests which fit are handled by."""

from __future__ import annotations

import re
import threading
from typing import Literal

import msgspec


class Fault(msgspec.Struct):
    """What happens to the requests whose method and target (`GET /api/v1/…?watch=true`) `match` is found in.

    throttle: 429 with Retry-After. status: answer `status` and `message`. drop: close the connection without an answer.
    lose: the same when the request was done. cut: end a watch or a log in the midst, after `events` of them.
    delay: wait `seconds` first. times: how often; skip: of how many that fit before nothing happens.
    """

    kind: Literal["throttle", "status", "drop", "lose", "cut", "delay"]
    match: str
    times: int = 1
    skip: int = 0
    status: int = 500
    message: str = "asked for by a test"
    events: int = 0
    seconds: float = 0.0


class Faults:
    def __init__(self) -> None:
        self._rules: list[Fault] = []
        self._lock = threading.Lock()

    def replace(self, rules: list[Fault]) -> None:
        with self._lock:
            self._rules = rules

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
