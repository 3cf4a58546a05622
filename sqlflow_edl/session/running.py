"""Statement TO RUN: a Python program of the user's over pinned rows, whose results become tables or a result set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edl.data.pinned import FILE, write_rows
from edl.errors import JobError, SemanticError, SQLFlowError, did_you_mean, raise_all
from edl.jobs.job_folder import JobFolder
from edl.program.importing import is_installed
from edl.program.user_model import PATH_VARIABLE, search_path
from edl.runnable import Place
from sqlflow_edl.analysis.outline import title
from sqlflow_edl.backends import runnable
from sqlflow_edl.errors.spans import at, placed
from sqlflow_edl.reports.plan import Row
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import counted
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.session.result_tables import store
from sqlflow_edl.syntax.ast import Name, Statement

if TYPE_CHECKING:
    from sqlflow_edl.session.compiler import Compiler


@dataclass(frozen=True, slots=True)
class Runnable:
    """Program of a statement: its file, its arguments, and the tables that INTO names."""

    file: Path
    arguments: tuple[str, ...]
    tables: tuple[str, ...]


def check_without_columns(statement: Statement, *, on_kubernetes: bool) -> Path:
    """Return the file of the statement's program. Raises all errors that need no data source, together."""
    errors: list[SQLFlowError] = []
    if not statement.select:
        hint = "write SELECT … before TO"
        errors.append(SemanticError("there is no SELECT to run a program on", span=statement.span, hint=hint))
    seen: set[str] = set()
    for name in statement.into:
        if str(name).casefold() in seen:
            errors.append(SemanticError(f"INTO names {name} twice", span=name.span))
        seen.add(str(name).casefold())
    try:
        file = _file(statement, on_kubernetes=on_kubernetes)
    except SQLFlowError as error:
        raise_all([*errors, error])
        raise
    raise_all(errors)
    return file


def checked(compiler: Compiler, statement: Statement) -> Runnable:
    """Return the program of the statement. Raises all its errors together."""
    file = check_without_columns(statement, on_kubernetes=compiler.place is not None)
    compiler.describe(statement)
    errors: list[SQLFlowError] = []
    for name in statement.into:
        try:
            with at(name.span):
                compiler.source.check_target(str(name))
        except SQLFlowError as error:
            errors.append(error)
    raise_all(errors)
    return Runnable(file, statement.command, tuple(map(str, statement.into)))


def run(compiler: Compiler, statement: Statement, job: JobFolder, observer: Observer) -> Result:
    """Run the program over pinned rows, and store its results when it has ended without an error."""
    found = checked(compiler, statement)
    observer.doing("pinning the rows")
    with placed(statement.select_span):
        reader = compiler.source.stream(statement.select)
        rows, _ = write_rows(job.rows, reader.schema, reader)
    place = Place(str(job.rows / FILE), str(job.results), found.tables)
    observer.doing(f"running {found.file.name} on {counted(rows)}")
    with at(statement.image.span if statement.image else None):
        runnable.run(job, found.file, found.arguments, place, observer.progress)
    folders = [place.folder(position) for position in range(max(len(found.tables), 1))]
    tasks = [len(folder.staged()) for folder in folders]
    if not found.tables:
        if not tasks[0]:
            return Result(statement, f"{found.file.name} ended and wrote no rows")
        return Result(statement, reader=folders[0].read(tasks[0]).read_all().to_reader())
    _check_written(found, statement.into, tasks)
    reads = [partial(folder.read, count) for folder, count in zip(folders, tasks, strict=True)]
    observer.doing(f"writing {', '.join(found.tables)}")
    counts = store(compiler.source, job, dict(zip(found.tables, reads, strict=True)))
    wrote = " and ".join(
        f"{counted(count)} to {table}" for table, count in zip(found.tables, counts, strict=True)
    )
    return Result(statement, f"{found.file.name} wrote {wrote}", rows=sum(counts))


def rows_of_plan(compiler: Compiler, statement: Statement) -> Iterator[Row]:
    """Yield the plan: the program with its arguments, the columns of its rows, and where its results go."""
    found = checked(compiler, statement)
    schema, _ = compiler.describe(statement)
    shown = title(statement, compiler.dialect)
    yield "statement", shown, f"{found.file} would run on this machine", f"it is in {PATH_VARIABLE}"
    yield from (("argument", str(number), each, "") for number, each in enumerate(found.arguments, 1))
    yield from (("column", field.name, str(field.type), "") for field in schema.arrow)
    yield from (("result", each, "would be made or replaced", "") for each in found.tables)
    if not found.tables:
        yield "result", "", "a result set", "INTO names no table"


def _check_written(found: Runnable, into: tuple[Name, ...], tasks: list[int]) -> None:
    for name, count in zip(into, tasks, strict=True):
        if not count:
            raise JobError(
                f"{found.file.name} ended without rows for {name}, so nothing was stored",
                span=name.span,
                hint=f"call write(rows, {str(name)!r}) of edl.runnable, also with a table of no rows",
            )


def _file(statement: Statement, *, on_kubernetes: bool) -> Path:
    """Return the file of the program on the model path."""
    image = statement.image
    if image is None:
        raise RuntimeError("the grammar demands a program")
    written = str(image)
    if not written.endswith(".py"):
        raise SemanticError(
            f"{written} is an image, and TO RUN runs programs of this machine",
            span=image.span,
            hint=_instead(statement),
        )
    if on_kubernetes:
        raise SemanticError(
            "TO RUN does not run on Kubernetes", span=image.span, hint="run the statement here, without --on"
        )
    folders = [Path(folder) for folder in search_path()]
    for folder in folders:
        file = folder / written
        if file.is_file() and not is_installed(file):
            return file
    raise SemanticError(
        f"there is no program {written} in {', '.join(map(str, folders))}",
        span=image.span,
        hint=did_you_mean(written, programs(written)) or f"name a file below a folder of {PATH_VARIABLE}",
    )


def programs(written: str) -> list[str]:
    """Return the names of the programs in the folder of a name that is being written."""
    inner = written.rpartition("/")[0]
    found = (
        file.relative_to(folder) for folder in search_path() for file in Path(folder, inner).glob("*.py")
    )
    return sorted({str(file) for file in found})


def _instead(statement: Statement) -> str:
    """Return the form that runs the program of the image here."""
    program, *arguments = statement.command or ("program.py",)
    program = program if program.endswith(".py") else "program.py"
    more = "".join(f'{", " if number else " CMD "}"{each}"' for number, each in enumerate(arguments))
    return f"write its program to a file here, with edl.runnable, and name it: TO RUN {program}{more}"
