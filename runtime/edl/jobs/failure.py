"""Transfer of a job's error to another process, where it is raised as the same exception."""

from __future__ import annotations

import msgspec

from edl.errors import (
    ClusterError,
    JobError,
    SemanticError,
    SourceError,
    SpecError,
    SQLFlowError,
    UserCodeError,
)
from edl.jobs.outcome import JobCancelledError, JobInterruptedError, JobPausedError


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """Failure or cancellation of a job; its log has the full traceback. `traceback` has frames of users' code only.

    `kept`: a training on Kubernetes can be resumed, because its checkpoint and its rows are in its data source.
    """

    code: str
    message: str
    hint: str | None = None
    traceback: str = ""
    kept: bool = False


_ERRORS: dict[str, type[SQLFlowError]] = {
    kind.code: kind
    for kind in (
        SemanticError,
        SourceError,
        ClusterError,
        SpecError,
        JobCancelledError,
        JobInterruptedError,
        JobPausedError,
    )
}


def to_failed(error: BaseException, log: str) -> Failed:
    """Return an error's description for clients. An internal error is described by its type and the log file."""
    if isinstance(error, UserCodeError):
        return Failed(error.code, error.message, error.hint, error.traceback)
    if isinstance(error, SQLFlowError):
        return Failed(error.code, error.message, error.hint)
    first = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return Failed(
        JobError.code, f"{type(error).__name__}: {first}".rstrip(":. "), f"the traceback is in {log}"
    )


def to_error(failed: Failed) -> SQLFlowError:
    if failed.code == UserCodeError.code:
        return UserCodeError(failed.message, hint=failed.hint, traceback=failed.traceback)
    return _ERRORS.get(failed.code, JobError)(failed.message, hint=failed.hint)
