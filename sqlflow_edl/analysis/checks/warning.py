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
