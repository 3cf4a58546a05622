"""Errors of a program and of users' modules, reduced to their own lines and the cause.

A traceback of a training step has dozens of framework frames, and Keras puts the arguments of each call into the
message. A `UserCodeError` names the innermost line of user code, and contains only the frames of users' files.
"""

from __future__ import annotations

import contextlib
import linecache
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from edl.errors import SQLFlowError, UserCodeError
from edl.program.importing import is_installed
from edl.program.model_packages import is_below, read_configured_packages

IN_LOG = "the traceback is in the job's log"  # the hint of an error that has no line in the program
_LONGEST = 500
_OURS = Path(__file__).parents[1]
_OWN_FRAMES = 2  # of `user_code` and its caller, the first of each traceback
_GENERATED = ("<", "__autograph_generated_file")  # prefixes of names that are no users' files
_OPERATION = re.compile(r"^\{\{function_node \S+\}\}\s*|\s*\[Op:\w+\](?: name:.*)?$")  # added by TensorFlow

# Text that Keras adds around the message of an error: during shape inference, and for any call.
_WRAPPINGS = (
    re.compile(r"Error encountered:\s*(\S.*)", re.DOTALL),
    re.compile("Exception encountered when calling .*?\x1b\\[1m(.+?)\x1b\\[0m", re.DOTALL),
)


@contextlib.contextmanager
def user_code(file: Path, doing: str) -> Iterator[None]:
    """Turn the program's exceptions into a `UserCodeError` that names the innermost line of a user's file.

    `file` is the program's; `doing` is the call, as in "custom_model()". A `SQLFlowError` passes unchanged: its
    message is meant for users.
    """
    try:
        yield
    except SQLFlowError:
        raise
    except (Exception, SystemExit) as error:  # a program's exit() must not end this process
        raise _name_place(error, file, doing) from error


def _name_place(error: BaseException, file: Path, doing: str) -> UserCodeError:
    frames = _users_frames(error, file)
    cause = _cause(error)
    said = _describe_error(cause)
    shown = "".join(["Traceback of your code:\n", *traceback.format_list(frames), f"{said}\n"])
    if isinstance(error, SyntaxError) and error.filename and _is_users(Path(error.filename), file):
        line = error.lineno or 1
        shown = "".join(traceback.format_exception_only(error))
        return UserCodeError(
            f"{error.filename}:{line}: {error.msg}", hint=_source_line(error.filename, line), traceback=shown
        )
    if not frames:
        return UserCodeError(f"{doing} of {file.name} failed: {said}", hint=IN_LOG)
    last = frames[-1]
    place = f"{last.filename}:{last.lineno}" + (f", in {last.name}" if last.name != "<module>" else "")
    return UserCodeError(f"{place}: {said}", hint=last.line or None, traceback=shown)


def _users_frames(error: BaseException, file: Path) -> traceback.StackSummary:
    """Return the frames of the program and of users' modules, the innermost last."""
    packages = read_configured_packages()
    walked = list(traceback.walk_tb(error.__traceback__))[_OWN_FRAMES:]
    kept = [(frame, line) for frame, line in walked if _is_of_user(frame, file, packages)]
    linecache.checkcache()
    return traceback.StackSummary.extract(kept)


def _is_of_user(frame: FrameType, file: Path, packages: tuple[str, ...]) -> bool:
    """Return True for a file that is not installed, and for packages from which SQL may use models."""
    if _is_users(Path(frame.f_code.co_filename), file):
        return True
    module = str(frame.f_globals.get("__name__", ""))
    return any(is_below(module, package) for package in packages)


def _is_users(path: Path, file: Path) -> bool:
    if path == file:
        return True
    generated = path.name.startswith(_GENERATED)
    return not generated and path.is_absolute() and not path.is_relative_to(_OURS) and not is_installed(path)


def _cause(error: BaseException) -> BaseException:
    """Return the original error, before Keras put the arguments of the call into its message."""
    while getattr(error, "_keras_call_info_injected", False) and error.__context__ is not None:
        error = error.__context__
    return error


def _describe_error(error: BaseException) -> str:
    return f"{type(error).__name__}: {_first_line(error)}".removesuffix(": ")


def _first_line(error: BaseException) -> str:
    """Return the error's message without the stack dumps that frameworks add."""
    text = str(error)
    for wrapping in _WRAPPINGS:
        if match := wrapping.search(text):
            text = match[1]
    lines = [line.strip() for line in text.splitlines()]
    node = next((number for number, line in enumerate(lines) if line.startswith("[[{{node")), None)
    if node:  # TensorFlow ends its dump with the message, and the node
        lines = lines[node - 1 :]
    text = _OPERATION.sub("", next((line for line in lines if line), ""))
    return (text if len(text) <= _LONGEST else text[:_LONGEST] + " …").rstrip(".")


def _source_line(file: str, line: int) -> str | None:
    linecache.checkcache(file)
    return linecache.getline(file, line).strip() or None
