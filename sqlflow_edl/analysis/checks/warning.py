"""Finding of a data check."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DataWarning:
    """Finding of a check.

    about: the column or part of the rows. message: a sentence. advice: the remedy.
    """

    about: str
    message: str
    advice: str

    def __str__(self) -> str:
        return f"{self.message}; {self.advice}"


def format_share(share: float, digits: int = 1) -> str:
    """Format a share: 34.2 %."""
    return f"{100 * share:.{digits}f} %"
