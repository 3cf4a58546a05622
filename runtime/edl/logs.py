"""Log lines of an instance, with the time, so that logs of several instances can be compared."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime

_STAMP = re.compile(r"^\d{4}-\d\d-\d\dT[\d:.]+\+00:00 ")


def add_time(text: str) -> str:
    """Prefix the line with the current time, in UTC."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}"


def strip_time(line: str) -> str:
    """Return a line of a log without its time, if it has one."""
    return _STAMP.sub("", line, count=1)


def log(text: str) -> None:
    """Write the lines, each with the time, to stderr at once."""
    print("\n".join(map(add_time, text.split("\n"))), file=sys.stderr, flush=True)
