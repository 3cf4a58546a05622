"""Choice of what is trained at each turn of a search, for workers that may take any of them.

The choice follows from the records of trials alone, so a worker that takes over a turn trains the same.
"""

from __future__ import annotations

from typing import NamedTuple

from edl.jobs.trials import Trial
from edl.run.search.judge import Judge
from edl.run.search.schedule import choose_candidate, choose_promoted


class TrialChoice(NamedTuple):
    """Candidate to train, on some of the rows or on all."""

    number: int
    screening: bool


class Choices:
    """Choices of a search. With a screening, turns from `search.count` on train its best candidates on all rows.

    lag: see `schedule.Schedule`.
    """

    def __init__(self, judge: Judge, *, lag: int) -> None:
        self._judge = judge
        self._lag = lag

    def is_ready(self, turn: int) -> bool:
        """Return True once the trials that decide the choice of a turn's trial have ended."""
        search = self._judge.search
        if turn >= search.count:
            return set(range(search.count)) <= self._judge.ended_turns()
        if not search.ordered or turn < search.ordered:
            return True
        return set(range(turn - self._lag)) <= self._judge.ended_turns()

    def find(self, turn: int) -> TrialChoice | None:
        """Return what is trained at a turn; None if there are fewer candidates. The turn must be `ready`."""
        search = self._judge.search
        errors = self._judge.screening_errors() if search.screening else self._judge.errors()
        if turn < search.count:
            return TrialChoice(choose_candidate(search, turn, errors, lag=self._lag), bool(search.screening))
        best = choose_promoted(errors)
        return TrialChoice(best[turn - search.count], False) if turn - search.count < len(best) else None

    def turn(self, turn: int, number: int) -> int:
        """Return the turn to show for a candidate: its screening's if there is one."""
        trial = self._judge.trials().get(number)
        return turn if trial is None else trial.number - 1

    def record(self, choice: TrialChoice) -> Trial | None:
        """Return the record of a trial that has ended, or None."""
        records = self._judge.screened_trials() if choice.screening else self._judge.trained_trials()
        return records.get(choice.number)
