"""Statement TO RUN: a Python program of the user's over pinned rows. Its results become tables or a result set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edl.data.cells import format_count
from edl.data.pinned import FILE, write_pinned, write_rows
from edl.errors import JobError, SemanticError, SQLFlowError, did_you_mean, raise_all
from edl.jobs.job_folder import JobFolder
from edl.program.importing import is_installed
from edl.program.user_model import PATH_VARIABLE, search_path
from edl.run import runnable
from edl.run.containers import check_image
from edl.run.result_tables import store
from edl.runnable import RunnablePlace
from edl.spec import Query
from edl.spec.runnable import RunnableSpec
from sqlflow_edl.analysis.programs.outline import title
from sqlflow_edl.backends.kubernetes.settings import Configuration
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.reports.plan import Row
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.session.observer import Observer
from sqlflow_edl.syntax.ast import Name, Statement


@dataclass(frozen=True, slots=True)
class Runnable:
    """Program of a statement: its name, its file unless that is in an image, its arguments, and the tables of INTO."""

    name: str
    file: Path | None
    arguments: tuple[str, ...]
    tables: tuple[str, ...]


def check(statement: Statement) -> None:
    """Check the statement as far as its text alone shows. Raises all errors together."""
    raise_all(_errors(statement))


def _errors(statement: Statement) -> list[SQLFlowError]:
    errors: list[SQLFlowError] = []
    if not statement.select:
        hint = "write SELECT … before TO"
        errors.append(SemanticError("there is no SELECT to run a program on", span=statement.span, hint=hint))
    seen: set[str] = set()
    for name in statement.into:
        if str(name).casefold() in seen:
            errors.append(SemanticError(f"INTO names {name} twice", span=name.span))
        seen.add(str(name).casefold())
    return errors


def check_of_place(compiler: Compiler, statement: Statement) -> Runnable:
    """Return the program of the statement. Raises all errors that need no data source, together."""
    errors = _errors(statement)
    try:
        compiler.check_place(statement)
        program = _program(statement, on_kubernetes=compiler.place is not None)
    except SQLFlowError as error:
        raise_all([*errors, error])
        raise
    raise_all(errors)
    return program


def check_columns(compiler: Compiler, statement: Statement) -> tuple[Runnable, Query]:
    """Return the program and the query of the statement. Raises all its errors together."""
    program = check_of_place(compiler, statement)
    _, query = compiler.describe(statement)
    errors: list[SQLFlowError] = []
    for name in statement.into:
        try:
            with set_missing_spans(name.span):
                compiler.source.check_target(str(name))
                compiler.check_may_write(str(name))
        except SQLFlowError as error:
            errors.append(error)
    raise_all(errors)
    return program, query


def run(compiler: Compiler, statement: Statement, job: JobFolder, observer: Observer) -> Result:
    """Run the program over pinned rows, and store its results when it has ended without an error."""
    if compiler.place is not None:
        return _in_a_pod(compiler, statement, compiler.place, job, observer)
    program, _ = check_columns(compiler, statement)
    observer.doing("pinning the rows")
    with shift_spans(statement.select_span):
        reader = compiler.source.stream(statement.select)
        rows, _ = write_rows(job.rows, reader.schema, reader)
    place = RunnablePlace(str(job.rows / FILE), str(job.results), program.tables)
    observer.doing(f"running {program.name} on {format_count(rows)}")
    with set_missing_spans(statement.image.span if statement.image else None):
        runnable.run(
            job.path,
            program.file or Path(program.name),
            program.arguments,
            place,
            observer.progress,
            deadline=compiler.deadline,
            image="" if program.file else str(statement.image),
        )
    results = place.list_results()
    if not program.tables:
        [(folder, tasks)] = results
        if not tasks:
            return Result(statement, f"{program.name} ended and wrote no rows")
        return Result(statement, reader=folder.read(tasks).read_all().to_reader())
    for name, (_, tasks) in zip(statement.into, results, strict=True):
        if not tasks:
            raise JobError(
                f"{program.name} ended without rows for {name}, so nothing was stored",
                span=name.span,
                hint=f"call write(rows, {str(name)!r}) of edl.runnable, also with a table of no rows",
            )
    reads = [partial(folder.read, tasks) for folder, tasks in results]
    observer.doing(f"writing {', '.join(program.tables)}")
    counts = store(compiler.source, job.id, dict(zip(program.tables, reads, strict=True)))
    wrote = " and ".join(
        f"{format_count(count)} to {table}" for table, count in zip(program.tables, counts, strict=True)
    )
    return Result(statement, f"{program.name} wrote {wrote}", rows=sum(counts))


def in_a_pod(compiler: Compiler, statement: Statement) -> tuple[RunnableSpec, dict[str, bytes]]:
    """Return the specification of the statement's job in a pod, and its files by their paths in the job folder."""
    program, query = check_columns(compiler, statement)
    file, sent = (program.file.name, True) if program.file else (program.name, False)
    spec = RunnableSpec(
        statement.text, query, file, sent, program.arguments, program.tables, deadline=compiler.deadline
    )
    return spec, {f"program/{file}": program.file.read_bytes()} if program.file else {}


def _in_a_pod(
    compiler: Compiler, statement: Statement, place: Configuration, job: JobFolder, observer: Observer
) -> Result:
    """Run the program in a pod, which stores its results itself."""
    from sqlflow_edl.backends.kubernetes import submit

    source = compiler.source
    spec, files = in_a_pod(compiler, statement)
    settings = submit.settings_of(statement, place, source.url, compiler.registry.url)
    for name, content in files.items():
        (job.path / name).write_bytes(content)
    observer.doing("pinning the rows")
    with shift_spans(statement.select_span):
        pinned = source.pin(statement.select, job.rows, seed=0, shuffle=False)
    write_pinned(job.rows, pinned)
    with set_missing_spans(statement.image.span if statement.image else None):
        outcome = submit.run(job, spec, pinned, settings, observer)
    return Result(statement, f"{spec.file} wrote {outcome.stored}", rows=outcome.made)


def rows_of_plan(compiler: Compiler, statement: Statement) -> list[Row]:
    """Return the plan: the program with its arguments, the columns of its rows, and where its results go."""
    return list(_rows_of_plan(compiler, statement))


def _rows_of_plan(compiler: Compiler, statement: Statement) -> Iterator[Row]:
    program, query = check_columns(compiler, statement)
    where = "this machine" if compiler.place is None else "Kubernetes"
    why = f"it is in {PATH_VARIABLE}" if program.file else f"it is in the image {statement.image}"
    would = f"{program.file or program.name} would run on {where}"
    yield "statement", title(statement, compiler.dialect), would, why
    yield from (
        ("argument", str(number), argument, "") for number, argument in enumerate(program.arguments, 1)
    )
    yield from (("column", field.name, field.type, "") for field in query.schema)
    yield from (("result", table, "would be made or replaced", "") for table in program.tables)
    if not program.tables:
        yield "result", "", "a result set", "INTO names no table"


def _program(statement: Statement, *, on_kubernetes: bool) -> Runnable:
    """Return the program: a file on the model path, or one of an image, which CMD names first."""
    image, tables = statement.image, tuple(map(str, statement.into))
    if image is None:
        raise RuntimeError("the grammar demands a program")
    if statement.runs_file:
        file = _file(image)
        return Runnable(file.name, file, statement.command, tables)
    if not on_kubernetes:
        with set_missing_spans(image.span):
            check_image(str(image), elsewhere=f"--on kubernetes; or {_local_form(statement)}")
    if not (statement.command and statement.command[0].endswith(".py")):
        raise SemanticError(
            f"the statement names no program of the image {image}",
            span=image.span,
            hint='the first string of CMD is its file: CMD "program.py", "--argument"',
        )
    program, *arguments = statement.command
    return Runnable(program, None, tuple(arguments), tables)


def _file(image: Name) -> Path:
    """Return the file on the model path."""
    name = str(image)
    folders = [Path(folder) for folder in search_path()]
    for folder in folders:
        file = folder / name
        if file.is_file() and not is_installed(file):
            return file
    raise SemanticError(
        f"there is no program {name} in {', '.join(map(str, folders))}",
        span=image.span,
        hint=did_you_mean(name, programs(name)) or f"name a file below a folder of {PATH_VARIABLE}",
    )


def programs(name: str) -> list[str]:
    """Return the names of the programs in the folder of a name that is being written."""
    inner = name.rpartition("/")[0]
    files = (
        file.relative_to(folder) for folder in search_path() for file in Path(folder, inner).glob("*.py")
    )
    return sorted({str(file) for file in files})


def _local_form(statement: Statement) -> str:
    """Return the form that runs the program of the image here."""
    program, *arguments = statement.command or ("program.py",)
    program = program if program.endswith(".py") else "program.py"
    more = "".join(f'{", " if number else " CMD "}"{argument}"' for number, argument in enumerate(arguments))
    return f"write its program to a file here, with edl.runnable, and name it: TO RUN {program}{more}"
