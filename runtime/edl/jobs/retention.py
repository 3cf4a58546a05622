"""Rules of what may be deleted of a job, and when.

Nothing that was computed is deleted before what takes its place survives a crash of the machine:

    what                                  may be deleted
    unfinished file                       at any time: nobody was told of it
    older version of a file               by the renaming of the new one over it, once that is flushed
    checkpoint                            once it is superseded: `superseded_checkpoints`
    checkpoint kept in a data source      once it is superseded there, or the job is done or given up: `KEPT` is over
    checkpoint without its last file      when a trainer has read the one to resume from: its writer is gone
    damaged checkpoint                    with the job
    segment of an update log              when the state store refers to a checkpoint behind it
    update log of earlier generations     when the next generation has begun, which is in the state store then
    rows, checkpoints, trials, results    at the end of the job or later: `removal_at_end`, `removal_later`
    model in the job folder               when the job is `done`: it is stored where it was to be, and flushed there
    pinned rows in a database             when the job has ended and cannot be resumed

`tests/edl/deletions.txt` has every place in the runtime that deletes, with the reason why it may.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from enum import Enum, auto

LEAST = 2  # newest checkpoints that always stay: one may turn out to be damaged
MOST_AHEAD = 20  # newest ones that stay because the master is behind, and may yet refer to any of them
KEEPING = ("failed", "died", "paused", "interrupted")  # states of a job that may keep what it has


class Removal(Enum):
    """Parts of a job that are removed: nothing; its rows; rows, checkpoints, trials and results (`DATA`); these and its
    model; or all but its log.
    """

    NOTHING = auto()
    ROWS = auto()
    DATA = auto()
    DATA_AND_MODEL = auto()
    ALL_BUT_LOG = auto()


def removal_at_end(state: str, *, is_needed: bool) -> Removal:
    """Return what is removed when a job ends in this state. `is_needed`: it can be resumed, or has a result that is
    stored nowhere else.
    """
    if state == "cancelled":
        return Removal.ALL_BUT_LOG
    if state == "done":
        return Removal.DATA_AND_MODEL
    return Removal.NOTHING if state in KEEPING and is_needed else Removal.DATA


def removal_later(state: str, *, is_needed: bool, has_expired: bool) -> Removal:
    """Return what is removed of a job that does not run and is found in this state. `has_expired`: the time is over in
    which it is kept because it `is_needed`.
    """
    if state == "paused":
        return Removal.NOTHING
    if state == "finished":  # its result waits to be stored
        return Removal.ROWS
    if state in ("done", "cancelled"):  # a crash may have been in the way
        return removal_at_end(state, is_needed=is_needed)
    return Removal.NOTHING if is_needed and not has_expired else Removal.DATA


def superseded_checkpoints(complete: Sequence[str], keep: int, *, resumable: Container[str]) -> list[str]:
    """Return which of the complete checkpoints, the oldest first, may be removed: all but the `keep` newest, 0 for all,
    and at least `LEAST`.

    A job goes back to the checkpoint that its state store refers to, which is not one of the newest while the master is
    behind. Those that it has referred to are `resumable`: the newest of them stays, and all behind it, `MOST_AHEAD` at
    most.
    """
    if not keep:
        return []
    last = max((place for place, name in enumerate(complete) if name in resumable), default=-1)
    ahead = max(last + 1, len(complete) - MOST_AHEAD)
    newest = {*complete[-max(keep, LEAST) :], *complete[max(last, 0) : last + 1], *complete[ahead:]}
    return [name for name in complete if name not in newest]
