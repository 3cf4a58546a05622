"""Lines of an instance's log, with the time: so those of several can be read side by side."""

from __future__ import annotations

import sys
from datetime import UTC, datetime


def stamped(text: str) -> str:
    """The line behind the present time, in UTC."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}"


def log(text: str) -> None:
    """Write the line, stamped, to stderr at once."""
    print(stamped(text), file=sys.stderr, flush=True)
