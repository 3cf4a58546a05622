"""Record of the last failed program, from which `sqlflow retry` continues: its command line and what has succeeded.

It holds no text of a file, and is not written for a command line that may contain a password.
"""

from __future__ import annotations

import argparse
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

import msgspec

from edl.data import redacted
from edl.errors import SemanticError, SQLFlowError
from edl.files import replace_file
from edl.jobs.job_folder import state_folder
from sqlflow_edl.analysis.programs.dependencies import accesses
from sqlflow_edl.cli.program.entries import ProgramEntry
from sqlflow_edl.cli.program.parallel import obstacle
from sqlflow_edl.console.secrets import holds_secret

FILE = "failed-program.json"


class RunRecord(msgspec.Struct, frozen=True):
    """Failed program.

    done: numbers of the statements that succeeded, with digests of their texts. at: time of the dates in its variables.
    """

    arguments: list[str]
    folder: str
    source: str
    done: dict[int, str]
    at: datetime


def keep(
    options: argparse.Namespace, program: Sequence[ProgramEntry], done: Iterable[int], *, failed: bool
) -> None:
    """Write the record of a failed program, or delete this program's record if it succeeded."""
    if options.command != "run":  # retrain and console run programs that are not on the command line
        return
    arguments, folder = options.arguments, str(Path.cwd())
    if not failed:
        before = _read_record()
        if before is not None and (before.arguments, before.folder) == (arguments, folder):
            _path().unlink(missing_ok=True)
        return
    files = [*options.files, *options.more_files]
    if any(map(holds_secret, arguments)) or "-" in files or not (files or options.execute):
        return  # standard input cannot be read again
    if not files and len(program) < 2:
        return  # a look at something: there is nothing to continue, and an earlier program may be left
    texts = {entry.step.number: entry.statement.text for entry in program if entry.statement is not None}
    digests = {number: _digest(texts[number]) for number in done}
    at = next((variable_given.at for variable_given in options.var), datetime.now().astimezone())
    record = RunRecord(arguments, folder, redacted(options.source), {**options.done, **digests}, at)
    try:
        content = msgspec.json.encode(record)
    except UnicodeEncodeError:  # bytes that are not UTF-8, with which no program runs
        return
    path = _path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    replace_file(path, content)


def load() -> RunRecord:
    """Read the record. Raises SQLFlowError if there is none, or if it is of another folder."""
    record = _read_record()
    if record is None:
        raise SQLFlowError(
            "nothing to retry: no failed program is recorded for this folder", hint="sqlflow run FILE"
        )
    if record.folder != str(Path.cwd()):
        raise SQLFlowError("the last failed program ran in another folder", hint=f"cd {record.folder}")
    return record


def find_remaining(
    program: Sequence[ProgramEntry], done: Mapping[int, str], source: str, dialect: str
) -> list[ProgramEntry]:
    """Return the statements that have not succeeded yet.

    Raises SemanticError if one of the others has changed, or if they share a connection with these.
    """
    for entry in program:
        digest = done.get(entry.step.number)
        if entry.statement is not None and digest and _digest(entry.statement.text) != digest:
            raise SemanticError(
                f"statement {entry.step.number} ({entry.step.title}) has changed since it succeeded",
                hint="run the whole program: sqlflow run",
            )
    readable = [entry for entry in program if entry.statement is not None]
    all_accesses = accesses([entry.statement for entry in readable if entry.statement is not None], dialect)
    if done and (why := obstacle(source, readable, all_accesses)):
        raise SemanticError(
            f"the program cannot be continued: {why}", hint="run the whole program: sqlflow run"
        )
    return [entry for entry in program if entry.step.number not in done]


def _digest(text: str) -> str:
    return hashlib.sha256(text.strip().encode()).hexdigest()


def _path() -> Path:
    return state_folder() / FILE


def _read_record() -> RunRecord | None:
    try:
        return msgspec.json.decode(_path().read_bytes(), type=RunRecord)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
