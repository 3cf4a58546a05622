"""Priority of a job among those with the same quota: an integer, or one of three names for one."""

from __future__ import annotations

PRIORITIES = {"low": -100, "normal": 0, "high": 100}
LOWEST, HIGHEST = -1000, 1000


def priority(level: str | int) -> int | None:
    """Parse a priority, higher for more urgent. Return None if it is invalid."""
    if isinstance(level, str):
        named = PRIORITIES.get(level.strip().casefold())
        if named is not None:
            return named
        try:
            level = int(level)
        except ValueError:
            return None
    return level if LOWEST <= level <= HIGHEST else None


def name(number: int) -> str:
    """Return the name of the priority, such as `high`, or else the number."""
    return next((name for name, level in PRIORITIES.items() if level == number), str(number))
