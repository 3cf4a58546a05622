"""Log lines of an instance, with the time, so that logs of several instances can be compared."""

from __future__ import annotations

import sys
from datetime import UTC, datetime


def stamped(text: str) -> str:
    """Prefix the line with the current time, in UTC."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}"


def log(text: str) -> None:
    """Write the line with the time to stderr at once."""
    print(stamped(text), file=sys.stderr, flush=True)
