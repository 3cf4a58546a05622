"""Scripts that call `edl.train` with several workers: every worker runs the script and takes part in that call.

So nothing of the script is pickled, stored or sent. Code before the call runs in every worker; code after the call
runs only in the process of the script itself. `call.json` in the job folder records the script and how it was
started; only the user can read it.

A script may call it repeatedly. A worker does not repeat calls before its job's call: they end as they ended in the
script's process, but the model stays unchanged, because the job has its initial weights.
"""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import msgspec

from edl.errors import JobError, SemanticError, SpecError
from edl.files import replace_file
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.program import Program, user_code
from edl.spec import JobSpec

_FILE = "call.json"


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Command line of a Python program: `python path` or `python -m module`, with arguments, in a folder.

    `search` is Python's path. `done` holds the results of its calls of `edl.train` before the job's.
    """

    path: str
    module: str
    arguments: tuple[str, ...]
    folder: str
    search: tuple[str, ...]
    done: tuple[Outcome | Failed, ...]


_done: list[Outcome | Failed] = []  # in this process


def record_end(end: Outcome | Failed) -> None:
    """Record that a call of this process has ended."""
    _done.append(end)


def current_script() -> Script:
    """Return the script that this process runs. Raises SemanticError if other processes could not run it."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise SemanticError(
            "several workers run the script that calls edl.train, but a notebook or a prompt has none",
            hint="write the code into a file and run that: python train.py; or train here: workers=1",
        )
    module = spec.name.removesuffix(".__main__") if spec is not None else ""
    folder, search = str(Path.cwd()), tuple(sys.path)
    return Script(str(Path(path).absolute()), module, tuple(sys.argv[1:]), folder, search, tuple(_done))


def write(job: JobFolder, script: Script) -> None:
    replace_file(job.path / _FILE, msgspec.json.encode(script))


def forget(job: JobFolder) -> None:
    """Delete the record of an ended job's script: its arguments may hold a secret."""
    (job.path / _FILE).unlink(missing_ok=True)


def read_script(job: JobFolder) -> Script | None:
    """Return the script that called for the job, or None if there is none.

    Raises SpecError if the record is damaged.
    """
    try:
        return msgspec.json.decode((job.path / _FILE).read_bytes(), type=Script)
    except FileNotFoundError:
        return None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"{job.path / _FILE} is damaged: {error}") from None


# In a worker ----------------------------------------------------------------------------------------------------


class _Left(BaseException):
    """Exit from the script inside the call, past its error handlers."""


@dataclass
class Inside:
    """Work of a worker inside of the call. `earlier` holds the results of the calls before that."""

    spec: JobSpec
    folder: Path
    earlier: Iterator[Outcome | Failed]
    work: Callable[[Program], None]
    entered: bool = False
    error: BaseException | None = None

    def enter(self, program: Callable[[], Program]) -> NoReturn:
        """Do the worker's work with the program that the call makes; never returns to the script."""
        if not self.entered:
            self.entered = True
            try:
                self.work(program())
            except BaseException as error:
                self.error = error
        raise _Left


_inside: Inside | None = None


def inside() -> Inside | None:
    """Return the work of this process if it runs the script as a worker."""
    return _inside


def run(script: Script, spec: JobSpec, folder: Path, work: Callable[[Program], None]) -> None:
    """Run the script as a worker does; errors of `work` are raised.

    Raises UserCodeError if the script fails before the call, JobError if it ends before that.
    """
    global _inside
    _inside = doing = Inside(spec, folder, iter(script.done), work)
    sys.path[:] = script.search
    sys.argv[1:] = script.arguments
    os.chdir(script.folder)
    try:
        with user_code(Path(script.path), "the script"):
            if script.module:
                runpy.run_module(script.module, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(script.path, run_name="__main__")
    except _Left:
        pass
    if doing.error is not None:
        raise doing.error
    if not doing.entered:
        raise JobError(
            f"{script.path} ends in a worker before it reaches the call of edl.train that started the job",
            hint="every worker runs the script from its start: it must reach the same call in each",
        )
