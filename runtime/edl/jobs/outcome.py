"""Outcome of a job."""

from __future__ import annotations

from typing import Literal

import msgspec

from edl.errors import ClusterError, JobError
from edl.jobs.events import EpochEnd, Figures
from edl.jobs.trials import Trial
from edl.spec import FoldValues, Importances, Uncertainty
from edl.spec.job import Kind

TIME_LIMIT = "the time limit"  # beginning of the reason why a training ended
MeasuredOn = Literal["", "validation", "training", "test", "all"]


def epoch_of(by_rounds: bool) -> str:
    """Return the word for an epoch. by_rounds: of trees."""
    return "round" if by_rounds else "epoch"


class JobCancelledError(JobError):
    """Error of a job that was cancelled."""

    code = "cancelled"

    def __init__(self, message: str = "the job was cancelled", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class JobPausedError(JobError):
    """Error of a job that was paused: it ends for its followers, and can be resumed."""

    code = "paused"

    def __init__(self, message: str = "the job was paused", *, hint: str | None = None) -> None:
        super().__init__(message, hint=hint)


class JobInterruptedError(JobError):
    """Error of a job after one of its processes was asked to end (SIGTERM). It is kept; a training can be resumed."""

    code = "interrupted"

    def __init__(
        self, message: str = "the job was interrupted by SIGTERM", *, hint: str | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.kept: list[str] = []  # ids of jobs that can be resumed, as in TerminatedError


class JobDiedError(ClusterError):
    """Error of a job after its supervisor was killed, and all its processes with it."""


class Outcome(msgspec.Struct, frozen=True, tag="done"):
    """Result of a job.

    `rows` are those trained on, counted once per epoch; predicted; or evaluated. `figures` are `loss` and the program's
    metrics, or the importance of each column, over the rows that `measured_on` names. `tasks` is the number of tasks
    with staged results. `notes` are recommendations for the next run.
    """

    kind: Kind | Literal["run"]
    rows: int
    seconds: float
    figures: Figures = {}
    measured_on: MeasuredOn = ""
    tasks: int = 0
    made: int = 0  # rows of the table, for a job that measures
    steps: int = 0
    epochs: int = 0  # finished epochs
    by_rounds: bool = False  # of trees, of which an epoch is a round
    kept_epoch: int = 0  # epoch of the model's weights, unless it is the last
    lost_epoch: int = 0  # epoch of the best weights, if they are lost
    loss: float | None = None  # mean over the last epoch's training rows
    curve: tuple[EpochEnd, ...] = ()
    stopped: str = ""  # reason why training ended early
    edited: bool = False  # model.py differs from the compiler's
    archive: str = ""  # TRAIN: file of the model in the job folder
    stored: str = ""  # result that the job itself stored in its data source: "m@3", or a table and its rows
    notes: tuple[str, ...] = ()
    trials: tuple[Trial, ...] = ()  # of a search
    uncertainty: Uncertainty | None = None  # of the validation rows, until the archive of the model has them
    importances: Importances | msgspec.UnsetType = msgspec.UNSET  # of the columns, at the end of a search
    fold_values: FoldValues | msgspec.UnsetType = msgspec.UNSET  # of a search in folds
    lost_updates: int = 0  # updates that parameter servers had applied and lost, and their rows
    lost_rows: int = 0
    rows_per_second: float = 0.0  # of a trial's predictions

    @property
    def ending(self) -> str:
        """Reason why training ended, or empty if it took all its epochs and the model is the last epoch's."""
        tried = len(self.trials)
        length = epoch_of(self.by_rounds)
        after = f"{tried} trial{'' if tried == 1 else 's'}" if tried else f"{length} {self.epochs}"
        parts = [f"stopped after {after}: {self.stopped}"] if self.stopped else []
        if self.kept_epoch:
            parts.append(f"{length} {self.kept_epoch} is kept")
        if self.lost_epoch:
            parts.append(
                f"the weights of {length} {self.lost_epoch}, the best, are lost: the last ones are kept"
            )
        return "; ".join(parts)
