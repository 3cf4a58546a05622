"""Session with one data source: takes a statement from text to stored result.

    split, parse -> pin rows -> analyse -> JobSpec -> generate -> Program -> submit -> Job

Ordinary SQL goes to the database unchanged. TRAIN, PREDICT, EVALUATE and EXPLAIN are compiled to a program,
which the training process runs on pinned rows in a job folder. Models and results are committed here from
that folder, because an embedded database can be open in this process alone. A job on Kubernetes stores its
results itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING

import msgspec

from edl import data, spec
from edl.embeddings.sizes import table_memory
from edl.errors import SemanticError, SourceError, SQLFlowError, raise_all
from edl.jobs import job_folder
from edl.models.archive import read_archive
from edl.models.registry.factory import open_registry
from edl.spec.strategy import chosen
from sqlflow_edl.analysis import train
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings import running
from sqlflow_edl.analysis.validation import check_columns
from sqlflow_edl.analysis.warm_start import Parent
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.codegen import Program, generate
from sqlflow_edl.errors.spans import at, placed
from sqlflow_edl.reports import models
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session import detached
from sqlflow_edl.session.job_statements import KINDS, JobStatements
from sqlflow_edl.session.observer import Observer, Silent
from sqlflow_edl.session.pinning import look
from sqlflow_edl.session.plan import explain, not_there_yet
from sqlflow_edl.session.program_check import ProgramCheck
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.parse import read

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration


@dataclass(frozen=True, slots=True)
class Compiled:
    """TRAIN statement as a program that has not run."""

    statement: Statement
    spec: spec.JobSpec
    program: Program
    notes: tuple[str, ...]


class Session:
    """Open data source that runs statements. Close it, or use it as a context manager.

    url: URL of the data source. dialect: SQL dialect, by default the source's. create: create a missing
    database file. observer: receiver of notes and progress. workers: number of workers of every job, or None
    to leave it to the statement; both may be changed between statements. quota: folder of slots that jobs
    with workers share with others, by default EDL_QUOTA. priority: priority of every job in that quota,
    overriding its statement. model_store: folder or URL of an object store that keeps models instead of the
    source. place: configuration of jobs on Kubernetes, or None on this machine.
    """

    def __init__(
        self,
        url: str,
        *,
        dialect: str | None = None,
        create: bool = False,
        observer: Observer | None = None,
        workers: int | None = None,
        quota: Path | None = None,
        priority: int | None = None,
        model_store: str = "",
        place: Configuration | None = None,
    ) -> None:
        self.source = detached.opened(url, create=create)
        self.dialect = dialect or self.source.dialect
        self.registry = open_registry(self.source, model_store)
        self.observer: Observer = observer or Silent()
        self._submitter = Submitter(quota)
        self.workers = workers
        self._priority = priority
        store = self.registry.url if model_store else ""
        self._jobs = JobStatements(self, self._submitter, store, place)
        job_folder.sweep()
        self._remove_unstarted()
        self.tell(detached.take_home(self.source))
        self.source.unpin_abandoned()
        with contextlib.suppress(SQLFlowError):  # locked or read-only: a later session does it
            self.source.sweep(job_folder.is_over)

    def close(self) -> None:
        self._submitter.close()
        self.source.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _commit_finished(self) -> None:
        """Store the results of this source's finished detached jobs.

        The jobs cannot open an embedded database that is open here. Uses a connection of its own, because this
        session's may be inside a transaction of the user.
        """
        if not detached.waits(self.source.url):
            return
        try:
            with contextlib.closing(data.connect(self.source.url)) as source:
                self.tell(detached.take_home(source))
        except SQLFlowError as error:  # the next statement tries again
            self.tell([f"the result of a finished job is not stored yet: {error.message}"])

    def _remove_unstarted(self) -> None:
        """Delete what jobs that could not start left in a cluster."""
        if unstarted := job_folder.unstarted():
            from sqlflow_edl.backends.kubernetes.listing import refresh

            left = refresh(unstarted)
            self.tell(
                f"job {job_id} could not be deleted from the cluster yet: {why}"
                for job_id, why in left.items()
            )

    # What a front end calls --------------------------------------------------------------------------------

    def parse(self, text: str) -> list[Statement]:
        """Parse the statements of the text. Raises all their errors together, before anything runs."""
        return parse(text, self.dialect)

    def program(self, text: str) -> list[Statement]:
        """Parse the statements of the text and check them before the first one runs; see `ProgramCheck`.

        Raises SQLFlowError with all errors, ordered by place. A single statement is not checked here but when
        it runs, before it has any effect.
        """
        found = self.read(text)
        raise_all([error for error in self.problems(found) if error is not None])
        return [each for each in found if isinstance(each, Statement)]

    def read(self, text: str) -> list[Statement | SQLFlowError]:
        """Parse the statements of the text; an error takes the place of an unreadable statement."""
        return read(text, self.dialect)

    def problems(self, program: Sequence[Statement | SQLFlowError]) -> list[SQLFlowError | None]:
        """Return the errors that can be found before any statement runs: one or None for each statement."""
        if len(program) == 1:
            return [program[0] if isinstance(program[0], SQLFlowError) else None]
        return ProgramCheck(self).problems(program)

    def run(self, text: str) -> Iterator[Result]:
        """Check the statements of the text, then run them one after another until the first failure.

        The rows of a result must be read before the next statement runs.
        """
        for statement in self.program(text):
            yield self.execute(statement)

    def leave(self, statement: Statement) -> Result:
        """Start the job of a statement that stores a model or a table, and do not wait for its end.

        The job continues when this process ends. A process of the job stores the result if no other process has
        the data source open, otherwise a session that has it open does; see `edl.master.commit`. Raises
        SemanticError if the statement starts no such job.
        """
        if statement.plan or statement.kind not in KINDS or not (statement.into or statement.target):
            raise SemanticError(
                "this statement stores no result, so its job cannot be detached",
                span=statement.span,
                hint="detach TRAIN … INTO, PREDICT into a table, EVALUATE … INTO, EXPLAIN … INTO",
            )
        self._jobs.leaving = True
        try:
            return self.execute(statement)
        finally:
            self._jobs.leaving = False

    def execute(self, statement: Statement) -> Result:
        """Run one statement. Raises SQLFlowError, with a place in the program's text where there is one."""
        self.observer.started(statement)
        self._commit_finished()
        if statement.plan:
            return self.plan(statement)
        if about_models := models.HANDLERS.get(statement.kind):
            return about_models(self.registry, statement)
        if statement.kind in KINDS:
            return self._jobs.run(statement)
        if statement.kind != "sql":
            raise not_there_yet(statement)
        return self._sql(statement)

    def plan(self, statement: Statement) -> Result:
        """Return the effects of the statement and their reasons as a table.

        Nothing is trained, written or pinned.
        """
        return explain(self, statement)

    def compile(self, text: str) -> list[Compiled]:
        """Compile the text's TRAIN statements from a look at their queries; nothing is pinned or run."""
        return [self._compile(each) for each in self.parse(text) if each.kind in ("train", "auto")]

    def _sql(self, statement: Statement) -> Result:
        try:
            with placed(statement.span):
                reader = self.source.execute(statement.text)
        except SourceError as error:
            raise statement.refused or error from None
        return Result(statement, message="" if reader is not None else "OK", reader=reader)

    # Steps -------------------------------------------------------------------------------------------------

    def _compile(self, statement: Statement) -> Compiled:
        found = self.planned(statement)
        self.tell(found.plan.notes, map(str, found.warnings))
        return Compiled(statement, found.spec, generate(found.spec), tuple(found.plan.notes))

    def planned(self, statement: Statement) -> Planned:
        """Plan a TRAIN statement from a look at its rows, without pinning them."""
        found = look(self.source, self.training_plan(statement))
        return replace(found, spec=self.with_workers(found.spec))

    def training_plan(self, statement: Statement, *, warm: bool = False) -> train.TrainingPlan:
        """Check the statement against its query's columns and raise all its errors together.

        warm: start the training process, which imports its framework while the rows are read.
        """
        wrong: list[SQLFlowError] = []
        parent = self.parent(statement)
        try:
            settings = train.checked_settings(statement, parent)
            if warm and not (
                self.workers or self._jobs.has_master or chosen(running.cluster(settings)).workers
            ):
                self._submitter.warm(settings.framework)
        except SQLFlowError as error:
            wrong.append(error)
            if not statement.select:
                raise
        try:
            schema, query = self.look(statement)
        except SQLFlowError as error:
            raise_all([*wrong, error])
            raise
        return self._with_held_out(train.plan(statement, query, schema, parent, self.workers))

    def check_place(self, statement: Statement) -> None:
        """Check that the statement can run where the session's jobs run, as far as its text shows.

        Raises SemanticError if it cannot.
        """
        self._jobs.check_place(statement)

    def parent(self, statement: Statement) -> Parent | None:
        """Load the model that TRAIN … USING starts from; return None without USING."""
        if statement.using is None:
            return None
        with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            archive = Path(folder) / "model.zip"
            with at(statement.using.span):
                model = self.registry.load(str(statement.using), archive)
                return Parent(model.reference, read_archive(archive).spec, statement.using.span)

    def _with_held_out(self, plan: train.TrainingPlan) -> train.TrainingPlan:
        """Add the description of the validation query, if the plan has one."""
        if not plan.held_out.query:
            return plan
        with plan.held_out.placed():
            schema, query = self._look(plan.held_out.query)
        raise_all(check_columns(plan.held_out, plan.schema, plan.wants(), schema))
        return replace(plan, validation=query)

    def look(self, statement: Statement) -> tuple[Schema, spec.Query]:
        """Describe the statement's query: its schema, and the query as a JobSpec stores it."""
        with placed(statement.select_span):
            return self._look(statement.select)

    def _look(self, select: str) -> tuple[Schema, spec.Query]:
        arrow = self.source.schema(select)
        fields = tuple(spec.Field(field.name, str(field.type)) for field in arrow)
        return Schema(arrow, self.dialect), spec.Query(select, self.dialect, self.source.url, fields)

    def with_workers(self, job_spec: spec.JobSpec) -> spec.JobSpec:
        """Set the session's number of workers and its priority, and resolve the choices left to them."""
        workers = job_spec.cluster.workers if self.workers is None else self.workers
        priority = job_spec.cluster.priority if self._priority is None else self._priority
        workers = max(workers, int(self._jobs.has_master))
        cluster = msgspec.structs.replace(job_spec.cluster, workers=workers, priority=priority)
        if job_spec.kind == "train":
            cluster = chosen(cluster, table_memory(job_spec))
        return msgspec.structs.replace(job_spec, cluster=cluster)

    def tell(self, notes: Iterable[str], warnings: Iterable[str] = ()) -> None:
        """Report notes and warnings to the observer."""
        for note in notes:
            self.observer.note(note)
        for warning in warnings:
            self.observer.warn(warning)
