"""How urgent a job is beside others on the same quota: a whole number, or one of three names for one."""

from __future__ import annotations

PRIORITIES = {"low": -100, "normal": 0, "high": 100}
LOWEST, HIGHEST = -1000, 1000


def priority(written: str | int) -> int | None:
    """The number that is meant, higher for more urgent; None when it is none."""
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
    """`high` where the number has a name, else the number."""
    return next((name for name, known in PRIORITIES.items() if known == number), str(number))
