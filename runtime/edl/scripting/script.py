"""A script that calls `edl.train` with several workers: every worker runs it up to that call, and goes on inside it.

So nothing of the script is pickled, stored or sent. What it did before the call it does in every worker; what comes
after the call happens where the script was started, and nowhere else. `call.json` in the job folder says which script
it is, and how it was started; the user alone can read it.

A script may call it again and again. Calls before that of the job are not done again in a worker: they end as they
ended where the script was started, but the model is as it was, for the weights that the job starts from come with it.
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
from edl.jobs.failure import Failed
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.jobs.run_folder import replace_file
from edl.program import Program, user_code
from edl.spec import JobSpec

_FILE = "call.json"


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How a Python program was started: `python path` or `python -m module`, with arguments, in a folder.

    search: Python's path. done: how its calls of `edl.train` ended that came before the job's.
    """

    path: str
    module: str
    arguments: tuple[str, ...]
    folder: str
    search: tuple[str, ...]
    done: tuple[Outcome | Failed, ...]


_done: list[Outcome | Failed] = []  # in this process


def ended(end: Outcome | Failed) -> None:
    """A call of this process has ended."""
    _done.append(end)


def this() -> Script:
    """The script that this process runs. SemanticError: it runs none that another process could run too."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise SemanticError(
            "several workers run the script that calls edl.train, and a notebook or a prompt has none",
            hint="write the code into a file and run that: python train.py; or train here: workers=1",
        )
    module = spec.name.removesuffix(".__main__") if spec is not None else ""
    folder, search = str(Path.cwd()), tuple(sys.path)
    return Script(str(Path(path).absolute()), module, tuple(sys.argv[1:]), folder, search, tuple(_done))


def write(job: JobFolder, script: Script) -> None:
    replace_file(job.path / _FILE, msgspec.json.encode(script))


def forget(job: JobFolder) -> None:
    """Leave nothing of its arguments, which may hold a secret, in the folder of a job that has ended."""
    (job.path / _FILE).unlink(missing_ok=True)


def of(job: JobFolder) -> Script | None:
    """The script whose call the job is; None: of no script. SpecError: damaged."""
    try:
        return msgspec.json.decode((job.path / _FILE).read_bytes(), type=Script)
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise SpecError(f"{job.path / _FILE} is damaged: {error}") from None


# In a worker ----------------------------------------------------------------------------------------------------


class _Left(BaseException):
    """Leaves the script from inside of the call, past whatever handles its errors."""


@dataclass
class Inside:
    """What a worker is to do inside of the call. earlier: how the calls ended that it comes to before."""

    spec: JobSpec
    folder: Path
    earlier: Iterator[Outcome | Failed]
    work: Callable[[Program], None]
    entered: bool = False
    error: BaseException | None = None

    def enter(self, program: Callable[[], Program]) -> NoReturn:
        """Do the worker's work with the program that the call makes; never returns into the script."""
        if not self.entered:
            self.entered = True
            try:
                self.work(program())
            except BaseException as error:
                self.error = error
        raise _Left


_inside: Inside | None = None


def inside() -> Inside | None:
    """Of a process that runs the script as a worker."""
    return _inside


def run(script: Script, spec: JobSpec, folder: Path, work: Callable[[Program], None]) -> None:
    """Run the script as a worker does; what `work` raises is raised.

    UserCodeError: the script raises before it comes to the call. JobError: it ends before that.
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
            f"{script.path} ends in a worker before it comes to the call of edl.train that started the job",
            hint="every worker runs the script from its start: it must come to the same call in each",
        )
