"""Lines of logs with the time, so that those of several processes can be read side by side."""

from __future__ import annotations

from datetime import UTC, datetime


def stamped(text: str) -> str:
    """The line behind the present time, in UTC."""
    return f"{datetime.now(UTC).isoformat(timespec='milliseconds')} {text}"
