"""Priority of a job among those with the same quota: an integer, or one of three names for one."""

from __future__ import annotations

PRIORITIES = {"low": -100, "normal": 0, "high": 100}
LOWEST, HIGHEST = -1000, 1000


def priority(written: str | int) -> int | None:
    """Parse a priority, higher for more urgent. Return None if it is invalid."""
    if isinstance(written, str):
        named = PRIORITIES.get(written.strip().casefold())
        if named is not None:
            return named
        try:
            written = int(written)
        except ValueError:
            return None
    return written if LOWEST <= written <= HIGHEST else None


def name(number: int) -> str:
    """Return the name of the priority, such as `high`, or else the number."""
    return next((name for name, known in PRIORITIES.items() if known == number), str(number))
