"""Session with one data source: takes a statement from text to stored result.

    split, parse -> pin rows -> analyse -> JobSpec -> generate -> Program -> submit -> Job

Ordinary SQL goes to the database unchanged. TRAIN, PREDICT, EVALUATE and EXPLAIN are compiled to a JobSpec by
`session.compiler` and run by `session.runner`. Models and results are committed from the job folder by this process,
because an embedded database can be open in it alone. A job on Kubernetes stores its results itself.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from edl import data
from edl.checkpoints.kept import KeptCheckpoints, keeps_checkpoints
from edl.errors import SemanticError, SourceError, SQLFlowError, raise_all
from edl.extension_loader import ExtensionError, load
from edl.jobs import job_folder
from edl.models.registry.factory import open_registry
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.errors.spans import shift_spans
from sqlflow_edl.reports.result import Result, Results
from sqlflow_edl.session import detached, passed_on
from sqlflow_edl.session.advice.file_readings import describe_file_readings
from sqlflow_edl.session.file_release import FileRelease
from sqlflow_edl.session.frames import Frames
from sqlflow_edl.session.observer import Observer, Silent, report
from sqlflow_edl.session.predictions import Predictions, refuse_in_job, rewrite_refused
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import read_statements
from sqlflow_edl.syntax.predict_calls import calls_predict

if TYPE_CHECKING:
    import sqlite3

    import pyarrow as pa
    from duckdb import DuckDBPyConnection

    from sqlflow_edl.backends.kubernetes.settings import Configuration
    from sqlflow_edl.session.compiler import CompiledStatement, Compiler
    from sqlflow_edl.session.runner import JobRunner

TRACKED_BY = (
    "OPENLINEAGE_",
    "MLFLOW_TRACKING_URI",
    "OTEL_EXPORTER_OTLP_",
)  # variables of systems that follow statements
_DESCRIBE = re.compile(r"(?i)\s*DESC(?:RIBE)?\s+([\w.]+)\s*;?\s*")


class Session:
    """Open data source that runs statements. Close it, or use it as a context manager. See `maintain`, too.

    url: URL of the data source, or a connection of DuckDB or SQLite, see `edl.data.open_beside`. dialect: SQL
    dialect, by default the source's. create: create a missing database file. observer: receiver of notes and
    progress. workers: number of workers of every job, or None to leave it to the statement; both may be changed
    between statements. quota: folder of slots that jobs with workers share with others, by default EDL_QUOTA.
    priority: priority of every job in that quota, overriding its statement. deadline: seconds after which a job that
    has not ended is stopped, 0 for none. model_store: folder or URL of an
    object store that keeps models instead of the source. place: configuration of jobs on Kubernetes, or None on
    this machine. retrained: model that the statements train again.
    """

    def __init__(
        self,
        url: str | DuckDBPyConnection | sqlite3.Connection,
        *,
        dialect: str | None = None,
        create: bool = False,
        observer: Observer | None = None,
        workers: int | None = None,
        quota: Path | None = None,
        priority: int | None = None,
        deadline: float = 0.0,
        model_store: str = "",
        place: Configuration | None = None,
        share: int = 1,
        retrained: str = "",
    ) -> None:
        self.source = (
            detached.open_source(url, create=create) if isinstance(url, str) else data.open_beside(url)
        )
        self.dialect = dialect or self.source.dialect
        self.registry = open_registry(self.source, model_store)
        self.observer: Observer = observer or Silent()
        self._unsaid = list(self.source.notes) if isinstance(self.source, data.TextSource) else []
        self._described_files = set[str]()
        self._submitter = Submitter(quota, share)
        self.workers = workers
        self.only_schema = False  # the source has the tables of a schema file
        self._priority, self._deadline = priority, deadline
        self._place = place
        self._retrained = retrained
        self._store = self.registry.url if model_store or self.source.model_store else ""
        self._file = FileRelease(self.source)
        self._frames = Frames(self.source)
        self._predictions = Predictions(
            self.source,
            self.dialect,
            self._predict,
            lambda name: self.compiler.load_spec(name),
            lambda: self.registry,
        )

    def maintain(self) -> None:
        """Store what jobs have finished for this source, and delete what ended jobs and old sessions left.

        Front ends call it once, when they have opened a session.
        """
        job_folder.sweep()
        self._remove_unstarted()
        report(self.observer, detached.commit_finished(self.source))
        self.source.unpin_abandoned()
        with contextlib.suppress(SQLFlowError):  # locked or read-only: a later session does it
            self.source.sweep(job_folder.is_over)
            if keeps_checkpoints(self.source.url):
                KeptCheckpoints(self.source).sweep_given_up()

    def close(self) -> None:
        self._predictions.drop()
        self._submitter.close()
        self.source.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def register(self, name: str, data: Any) -> None:
        """Make a pandas or polars data frame, or Arrow data, a table of this session's connection.

        Nothing is written to the database. In DuckDB the rows stay where they are, elsewhere they are copied into a
        temporary table. A name that is registered already gets the new data. Raises SQLFlowError if the database has
        such a table or no temporary ones, or data of another kind.
        """
        self._frames.register(name, data)

    def unregister(self, name: str) -> None:
        """Remove a table that `register` has made. Raises SemanticError if there is none."""
        self._frames.unregister(name)

    # What a front end calls --------------------------------------------------------------------------------

    def parse(self, text: str) -> list[Statement]:
        """Parse the statements of the text. Raises all their errors together, before anything runs."""
        parsed = self.read(text)
        raise_all([item for item in parsed if isinstance(item, SQLFlowError)])
        return [item for item in parsed if isinstance(item, Statement)]

    def program(self, text: str) -> list[Statement]:
        """Parse the statements of the text and check them before the first one runs; see `ProgramCheck`.

        Raises SQLFlowError with all errors, ordered by place. A single statement is not checked here but when
        it runs, before it has any effect.
        """
        parsed = self.read(text)
        raise_all([error for error in self.problems(parsed) if error is not None])
        return [statement for statement in parsed if isinstance(statement, Statement)]

    def read(self, text: str) -> list[Statement | SQLFlowError]:
        """Parse the statements of the text; an error takes the place of an unreadable statement."""
        return read_statements(text, self.dialect, names=partial(passed_on.names_of, self.source))

    def problems(self, program: Sequence[Statement | SQLFlowError]) -> list[SQLFlowError | None]:
        """Return the errors that can be found before any statement runs: one or None for each statement."""
        if len(program) == 1:
            return [program[0] if isinstance(program[0], SQLFlowError) else None]
        from sqlflow_edl.session.advice.corrections import add_correction
        from sqlflow_edl.session.program_check import ProgramCheck

        errors = ProgramCheck(self.compiler).problems(program)
        for statement, error in zip(program, errors, strict=True):
            if error is not None and isinstance(statement, Statement):
                add_correction(error, self.compiler, statement)
        return errors

    def run(self, text: str) -> list[Result]:
        """Run the statements of the text one after another; return their results with all rows in memory.

        Raises the errors that are found before anything runs together, and the error of the first statement that fails;
        results that were stored before it stay, and a note of the error names them.
        """
        results: list[Result] = []
        try:
            results.extend(result.fetch() for result in self.stream(text))
        except SQLFlowError as error:
            for result in results:
                if result.model or result.rows:
                    error.add_note(f"stored before it: {result.message}")
            raise
        return results

    def stream(self, text: str) -> Results:
        """Check the statements of the text; each runs when its result is asked for, until the first failure.

        The rows of a result must be read before the next statement runs: use it for results that do not fit in memory,
        and to act between statements. Raises the errors of the check together.
        """
        return Results(map(self.execute, self.program(text)))

    def leave(self, statement: Statement) -> Result:
        """Start the job of a statement that stores a model or a table, and do not wait for its end.

        The job continues when this process ends. A process of the job stores the result if no other process has
        the data source open, otherwise a session that has it open does; see `edl.master.commit`. Raises
        SemanticError if the statement starts no such job.
        """
        if statement.plan or not statement.traits.generated or not (statement.into or statement.target):
            wrong = "this statement stores no result, so its job cannot be detached"
            if statement.into and not statement.traits.generated:
                wrong = "this statement runs in the client, so it cannot be detached"
            raise SemanticError(
                wrong,
                span=statement.span,
                hint="detach TRAIN … INTO, PREDICT into a table, EVALUATE … INTO, EXPLAIN … INTO",
            )
        self._start(statement)
        return self._find_present(statement) or self._run(statement, detached=True)

    def execute(self, statement: Statement) -> Result:
        """Run one statement. Raises SQLFlowError, with a place in the program's text where there is one."""
        self._start(statement)
        if statement.plan:
            return self.plan(statement)
        with self._correct_errors(statement):
            return self._execute(statement)

    def _execute(self, statement: Statement) -> Result:
        if statement.kind == "sql":
            return self._sql(statement)
        from sqlflow_edl.reports import models

        if (present := self._find_present(statement)) is not None:
            return present
        if about_models := models.HANDLERS.get(statement.kind):
            return about_models(self.registry, statement)
        run = partial(self._run, statement)
        if not any(name.startswith(TRACKED_BY) for name in os.environ):
            return run()
        try:
            track = load("sqlflow_edl.extensions.lineage", "run_tracked")
        except ExtensionError as error:
            self.observer.note(f"{error.message}: nobody is told of the statement")
            return run()
        tracked: Result = track(
            statement,
            run,
            self.observer.note,
            dialect=self.dialect,
            source=self.source.url,
            models=self.registry.url,
        )
        return tracked

    def plan(self, statement: Statement, *, syntax: bool = True) -> Result:
        """Return the effects of the statement and their reasons as a table.

        Nothing is trained, written or pinned. syntax: let the database's parser check it, unless a statement before it
        would change how the database reads it.
        """
        self._say_readings(statement)
        self._say_file_readings(statement)
        from sqlflow_edl.session.plan import explain

        with self._correct_errors(statement):
            return explain(self.compiler, statement, syntax=syntax)

    def compile(self, text: str) -> list[CompiledStatement]:
        """Compile the text's TRAIN statements from a look at their queries; nothing is pinned or run."""
        result, compiler = [], replace(self.compiler, runs_here=False)
        for statement in self.parse(text):
            if statement.trains:
                with self._correct_errors(statement, runs_here=False):
                    result.append(compiler.compile(statement))
                report(self.observer, result[-1].notes, result[-1].warnings)
        return result

    @property
    def compiler(self) -> Compiler:
        """Compiler with the current settings of the session. It is imported for the first statement that needs it."""
        from sqlflow_edl.session.compiler import Compiler

        return Compiler(
            self.source,
            self.registry,
            self.dialect,
            self.workers,
            self._priority,
            self._place,
            deadline=self._deadline,
            only_schema=self.only_schema,
            retrained=self._retrained,
        )

    # Inside ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _correct_errors(self, statement: Statement, *, runs_here: bool = True) -> Iterator[None]:
        """Add the statement that was meant to the errors of a statement, where one is found."""
        try:
            yield
        except SQLFlowError as error:
            from sqlflow_edl.session.advice.corrections import add_correction

            add_correction(error, replace(self.compiler, runs_here=runs_here), statement)
            raise

    def _start(self, statement: Statement) -> None:
        self.observer.started(statement)
        self._file.reopen(self.observer)
        self._say_readings(statement)
        self._say_file_readings(statement)
        self._predictions.drop()
        self._read_as_found()
        self._commit_finished()

    def _say_readings(self, statement: Statement) -> None:
        """Say once how files of text are read, before the first statement with a query that has no error of syntax."""
        if self._unsaid and (statement.kind == "sql" or statement.select):
            with contextlib.suppress(SQLFlowError):
                self.compiler.check_syntax(statement)
                report(self.observer, self._unsaid)
                self._unsaid = []

    def _say_file_readings(self, statement: Statement) -> None:
        """Say once how DuckDB reads a file of text in the query of a model, where it would be read otherwise."""
        if statement.kind != "sql" and statement.select:
            report(
                self.observer, describe_file_readings(self.source, statement.select, self._described_files)
            )

    def _read_as_found(self) -> None:
        """End the reading of files as a model was trained."""
        if isinstance(self.source, data.TextSource):
            self.source.read_as({})

    def _run(self, statement: Statement, *, detached: bool = False) -> Result:
        refuse_in_job(statement, self.dialect)
        compiler = replace(self.compiler, detached=detached)
        return self._runner(compiler).run(statement)

    def _runner(self, compiler: Compiler) -> JobRunner:
        from sqlflow_edl.session.runner import JobRunner

        return JobRunner(compiler, self._submitter, self.observer, self._store, self._file)

    def _commit_finished(self) -> None:
        """Store the results of this source's finished detached jobs.

        The jobs cannot open an embedded database that is open here. Uses a connection of its own, because this
        session's may be inside a transaction of the user.
        """
        if not detached.waits(self.source.url):
            return
        try:
            with contextlib.closing(data.connect(self.source.url)) as source:
                report(self.observer, detached.commit_finished(source))
        except SQLFlowError as error:  # the next statement tries again
            self.observer.note(f"the result of a finished job is not stored yet: {error.message}")

    def _remove_unstarted(self) -> None:
        """Delete what jobs that could not start left in a cluster."""
        if unstarted := job_folder.find_unstarted_jobs():
            from sqlflow_edl.backends.kubernetes.listing import refresh

            for job_id, why in refresh(unstarted).items():
                self.observer.note(f"job {job_id} could not be deleted from the cluster yet: {why}")

    def _predict(self, statement: Statement) -> Result:
        """Return the rows of a call in a query."""
        from sqlflow_edl.reports import models

        if about_model := models.HANDLERS.get(statement.kind):
            answer = about_model(self.registry, statement)
            if answer.reader is None:
                raise SemanticError(answer.message, span=statement.model.span if statement.model else None)
            return answer
        result = self._runner(self.compiler).run(statement)
        self._read_as_found()
        self.observer.doing("running the query")
        return result

    def _described_model(self, text: str) -> str:
        """Return the model that a DESCRIBE of a table names, or an empty text."""
        match = _DESCRIBE.fullmatch(text)
        try:
            return self.registry.find(match[1]).name if match else ""
        except SQLFlowError:
            return ""

    def _find_present(self, statement: Statement) -> Result | None:
        """Return the result of CREATE MODEL IF NOT EXISTS for a model that exists; None for other statements."""
        from sqlflow_edl.reports import models

        present = models.find_present(self.registry, statement)
        message = f"there is a model {present} already; nothing is trained"
        return Result(statement, message=message) if present else None

    def _with_correction(self, error: SourceError, statement: Statement) -> SourceError:
        """Return the error of ordinary SQL, with the statement that was probably meant if its syntax is wrong."""
        try:
            self.compiler.check_syntax(statement)
        except SQLFlowError as wrong:
            if wrong.hint:
                error.message, error.span, error.hint = wrong.message, wrong.span, wrong.hint
        return error

    def _sql(self, statement: Statement) -> Result:
        staged = self._predictions.stage(statement) if calls_predict(statement.text) else None
        text = statement.text if staged is None else staged
        try:
            with shift_spans(statement.span):
                reader = self.source.execute(text)
        except SourceError as error:
            rewritten = rewrite_refused(statement, text, self.dialect, self.registry)
            if rewritten == text:
                raise self._explain_refusal(error, statement) from None
            reader = self._execute_rewritten(rewritten, statement)
        if staged is not None:
            if reader is None:
                self._predictions.drop()
            else:
                reader = self._predictions.dropped_at_end(reader)
        return Result(statement, message="" if reader is not None else "OK", reader=reader)

    def _execute_rewritten(self, text: str, statement: Statement) -> pa.RecordBatchReader | None:
        try:
            return self.source.execute(text)
        except SourceError as error:
            error.span = statement.span  # places in the new text are none of the statement
            raise self._predictions.restore_names(error, statement) from None

    def _explain_refusal(self, error: SourceError, statement: Statement) -> SQLFlowError:
        """Return the error of ordinary SQL that the database refuses."""
        from sqlflow_edl.analysis.inference import confidence

        if (name := self._described_model(statement.text)) and not statement.refused:
            error.hint = f"{name} is a model: DESCRIBE MODEL {name}"
        confidence.add_hint(error, statement.text, self.source)
        return statement.refused or self._predictions.restore_names(
            self._with_correction(error, statement), statement
        )
