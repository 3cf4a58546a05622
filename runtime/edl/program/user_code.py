"""Errors of a program shown as the program's own line, not as 60 frames of a framework."""

from __future__ import annotations

import contextlib
import linecache
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

from edl.errors import SQLFlowError, UserCodeError

IN_LOG = "the traceback is in the job's log"  # the hint of an error that has no line in the program
_LONGEST = 500


@contextlib.contextmanager
def user_code(file: Path, doing: str) -> Iterator[None]:
    """Turn what the program raises into a `UserCodeError` that names the innermost line of `file`.

    doing: what was called, as in "custom_model()". A `SQLFlowError` passes as it is: it says what is wrong itself.
    """
    try:
        yield
    except SQLFlowError:
        raise
    except (
        Exception,
        SystemExit,
    ) as error:  # a program that calls exit() must not end the process it runs in
        raise _named(error, file, doing) from error


def _named(error: BaseException, file: Path, doing: str) -> UserCodeError:
    if isinstance(error, SyntaxError) and error.filename == str(file):
        place = _place(file, error.lineno or 1, None)
        return UserCodeError(f"{place}: {error.msg}", hint=_source_line(file, error.lineno or 1))
    what = f"{type(error).__name__}: {_first_line(error)}"
    line = _innermost(error.__traceback__, file)
    if line is None:
        return UserCodeError(f"{doing} of {file.name} failed: {what}", hint=IN_LOG)
    number, function = line
    return UserCodeError(f"{_place(file, number, function)}: {what}", hint=_source_line(file, number))


def _place(file: Path, line: int, function: str | None) -> str:
    return f"{file}:{line}" + (f", in {function}" if function and function != "<module>" else "")


def _innermost(traceback: TracebackType | None, file: Path) -> tuple[int, str] | None:
    """Line and function of the last frame that stands in `file`."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if code.co_filename == str(file):
            found = traceback.tb_lineno, code.co_name
        traceback = traceback.tb_next
    return found


def _first_line(error: BaseException) -> str:
    """What the error says, without the stack dumps that frameworks put around it."""
    lines = [line.strip() for line in str(error).splitlines()]
    node = next((number for number, line in enumerate(lines) if line.startswith("[[{{node")), None)
    if node:  # TensorFlow ends its dump with what is wrong, and the node
        lines = lines[node - 1 :]
    text = next((line for line in lines if line), "")
    return (text if len(text) <= _LONGEST else text[:_LONGEST] + " …").rstrip(".")


def _source_line(file: Path, line: int) -> str | None:
    linecache.checkcache(str(file))
    return linecache.getline(str(file), line).strip() or None
