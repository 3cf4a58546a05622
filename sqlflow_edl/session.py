"""A session with one data source: the way of a statement from text to result.

    split, parse -> pin rows -> analyse -> JobSpec -> generate -> Program -> submit -> Job

Ordinary SQL goes to the database as it is. TRAIN, PREDICT and EVALUATE are compiled to a program, which the training
process runs on pinned rows in a job folder; models and results come back from there and are committed here, because
an embedded database is opened by this process alone. A job on Kubernetes stores what it makes itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import TYPE_CHECKING, Literal

import msgspec
import pyarrow as pa

from edl import data, spec
from edl.data import jobs
from edl.data.results import ResultFolder
from edl.errors import SemanticError, Span, SQLFlowError, raise_all
from edl.models.archive import read_archive
from edl.models.intent import Intent, write_intent
from edl.models.records import ModelRecord, check_name
from edl.models.registry import open_registry
from edl.nn.rows.sizes import table_memory
from edl.spec.strategy import chosen
from edl.tasks.events import Figures
from edl.tasks.outcome import JobCancelledError, Outcome
from sqlflow_edl import detached
from sqlflow_edl.analysis import running, train, use
from sqlflow_edl.analysis.held_out import check_columns
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.warm_start import Parent
from sqlflow_edl.codegen import Program, generate
from sqlflow_edl.explain import explain, not_there_yet
from sqlflow_edl.fixing import fix, look
from sqlflow_edl.handles import LostSightError
from sqlflow_edl.observer import Observer, Silent
from sqlflow_edl.places import at, placed
from sqlflow_edl.reports import models
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.results import Result
from sqlflow_edl.storing import store_model, store_table
from sqlflow_edl.submit import Submitter
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Statement

if TYPE_CHECKING:
    from sqlflow_edl.kubernetes.settings import Configuration, Settings


@dataclass(frozen=True, slots=True)
class Compiled:
    """A TRAIN statement as a program that has not run."""

    statement: Statement
    spec: spec.JobSpec
    program: Program
    notes: tuple[str, ...]


class Session:
    """An open data source that runs statements; close it, or use it as a context manager.

    url: of the data source. dialect: of the SQL, by default the source's own. create: make a database file that is
    not there. observer: is told of notes and progress. workers: of every job, whatever its statement says; None
    leaves it to the statement. quota: the folder of slots that jobs with workers share with others, by default what
    the variable EDL_QUOTA names. priority: of every job there, whatever its statement says. model_store: a folder, or
    the URL of an object store, that keeps models instead of the source. place: how jobs run on Kubernetes; None: they
    run on this machine.
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
        self.source = data.connect(url, create=create)
        self.dialect = dialect or self.source.dialect
        self.registry = open_registry(self.source, model_store)
        self._store = self.registry.url if model_store else ""
        self.observer: Observer = observer or Silent()
        self._submitter = Submitter(quota)
        self._workers = workers
        self._priority = priority
        self._place = place
        self._leaving = False
        jobs.sweep()
        self._tell(detached.take_home(self.source))
        self.source.unpin_abandoned()
        with contextlib.suppress(
            SQLFlowError
        ):  # somebody writes there, or we may not: the next session does it
            self.source.sweep(jobs.is_over)

    def close(self) -> None:
        self._submitter.close()
        self.source.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # What a front end calls --------------------------------------------------------------------------------

    def parse(self, text: str) -> list[Statement]:
        """The statements of the text; their errors together, before anything runs."""
        return parse(text, self.dialect)

    def run(self, text: str) -> Iterator[Result]:
        """Run the statements of the text one after another; the first that fails ends it.

        A result's rows are read before the next statement runs, or not at all.
        """
        for statement in self.parse(text):
            yield self.execute(statement)

    def leave(self, statement: Statement) -> Result:
        """Start the job of a statement that stores a model or a table; it goes on when this process ends.

        The next session with this data source stores what it made. SemanticError: the statement starts no such job.
        """
        if statement.plan or statement.kind not in _LEFT or not (statement.into or statement.target):
            raise SemanticError(
                "this statement leaves nothing behind to come back for",
                span=statement.span,
                hint="detach TRAIN … INTO, PREDICT into a table, EVALUATE … INTO",
            )
        self._leaving = True
        try:
            return self.execute(statement)
        finally:
            self._leaving = False

    def execute(self, statement: Statement) -> Result:
        """Run one statement. SQLFlowError: with a place in the program's text where it has one."""
        self.observer.started(statement)
        if statement.plan:
            return self.plan(statement)
        if about_models := models.HANDLERS.get(statement.kind):
            return about_models(self.registry, statement)
        handler = self._handlers.get(statement.kind)
        if handler is None:
            raise not_there_yet(statement)
        return handler(self, statement)

    def plan(self, statement: Statement) -> Result:
        """What the statement would do and why, as a table; nothing is trained, written or fixed."""
        return explain(self, statement)

    def compile(self, text: str) -> list[Compiled]:
        """The programs of the text's TRAIN statements, from a look at their queries; nothing is pinned or run."""
        return [self._compile(each) for each in self.parse(text) if each.kind in ("train", "auto")]

    # Statements ----------------------------------------------------------------------------------------------

    def _sql(self, statement: Statement) -> Result:
        with placed(statement.span):
            reader = self.source.execute(statement.text)
        return Result(statement, message="" if reader is not None else "OK", reader=reader)

    def _train(self, statement: Statement) -> Result:
        on = self._settings(statement)
        plan = self._plan(statement, warm=True)
        name = str(statement.into[0])
        with at(statement.into[0].span):
            check_name(name)
        with self._job(statement, "train") as job:
            pinned, fitted = fix(self.source, plan, job, self.observer)
            fitted = self.with_workers(fitted)
            self._tell(plan.notes)
            start = job.model if fitted.trained_model else None
            if start:
                self.registry.load(fitted.trained_model, start)
            intent = Intent("train", self.source.url, name, _record(fitted, {}), self._store)
            if self._leaving:
                return self._left(statement, job, fitted, pinned, intent, on)
            try:
                outcome = self._run(job, fitted, pinned, intent, on, start)
            except (JobCancelledError, LostSightError):
                raise
            except SQLFlowError as error:
                self.registry.record_failure(name, _record(fitted, {}), error.message, once=job.id)
                raise
            model = outcome.stored
            if not model:
                self.observer.doing("storing the model")
                record = _record(fitted, outcome.figures)
                model = store_model(self.registry, job, name, outcome, record)
        measured = measured_on(fitted.rows)
        ending = f"; {outcome.ending}" if outcome.ending else ""
        return Result(
            statement,
            message=f"trained {fitted.model.name} {model} on {fitted.rows.training:,} rows, "
            f"measured on {measured}{ending}",
            notes=tuple(plan.notes),
            figures=outcome.figures,
            measured_on=measured,
            model=model,
            stored_in=self.registry.url,
        )

    def _predict(self, statement: Statement) -> Result:
        return self._use(statement, "predict")

    def _evaluate(self, statement: Statement) -> Result:
        return self._use(statement, "evaluate")

    def _use(self, statement: Statement, kind: Literal["predict", "evaluate"]) -> Result:
        """Run a model over the query's rows; into a table, or as a result set."""
        on = self._settings(statement)
        check, specify = use.USES[kind]
        name, _ = check(statement)
        with self._job(statement, kind) as job:
            archive = job.model
            with at(name.span):
                model = self.registry.load(str(name), archive)
            trained = read_archive(archive).spec
            schema, query = self.look(statement)
            planned = self.with_workers(specify(statement, trained, model.reference, query, schema))
            if not planned.cluster.workers:
                self._submitter.warm(trained.framework)
            notes = use.notes(trained, planned)
            self._tell(notes)
            target = planned.output.name
            if target:
                with at(_target_span(statement)):
                    self.source.check_target(target)
            self.observer.doing("fixing the rows")
            with placed(statement.select_span):
                pinned = self.source.pin(statement.select, job.rows, seed=0, shuffle=False)
            rows = spec.Rows(True, pinned.rows, 0, 0, pinned.digest)
            planned = msgspec.structs.replace(planned, rows=rows)
            intent = Intent(kind, self.source.url, target, store=self._store)
            if self._leaving:
                return self._left(statement, job, planned, pinned, intent, on)
            outcome = self._run(job, planned, pinned, intent, on, archive)
            figures = outcome.figures if kind == "evaluate" else None
            if not target:
                table = (
                    figures_table(figures)
                    if figures is not None
                    else ResultFolder(job.results).read(outcome.tasks).read_all()
                )  # before the job folder is cleaned up
                return Result(statement, notes=notes, figures=figures, reader=table.to_reader())
            written = outcome.rows if kind == "predict" else 1
            if not outcome.stored:
                self.observer.doing(f"writing {target}")
                written = store_table(self.source, job, target, outcome.tasks)
        return Result(
            statement,
            message=f"wrote {written:,} row{'' if written == 1 else 's'} to {target} with {model.reference}",
            notes=notes,
            rows=written,
            figures=figures,
        )

    _handlers: Mapping[str, Callable[[Session, Statement], Result]] = {
        "sql": _sql,
        "train": _train,
        "auto": _train,
        "predict": _predict,
        "evaluate": _evaluate,
    }

    # Steps -------------------------------------------------------------------------------------------------

    def _compile(self, statement: Statement) -> Compiled:
        found = self.planned(statement)
        self._tell(found.plan.notes)
        return Compiled(statement, found.spec, generate(found.spec), tuple(found.plan.notes))

    def planned(self, statement: Statement) -> Planned:
        """A TRAIN statement as far as it goes without fixing its rows: from a look at them."""
        found = look(self.source, self._plan(statement))
        return replace(found, spec=self.with_workers(found.spec))

    def _plan(self, statement: Statement, *, warm: bool = False) -> train.TrainingPlan:
        """The statement checked against its query's columns; all that is wrong with it is raised together.

        warm: start the training process, which imports its framework while we read rows.
        """
        wrong: list[SQLFlowError] = []
        parent = self._parent(statement)
        try:
            settings = train.checked_settings(statement, parent)
            if warm and not (self._remote or chosen(running.cluster(settings)).workers):
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
        return self._with_held_out(train.plan(statement, query, schema, parent, self._workers))

    def _parent(self, statement: Statement) -> Parent | None:
        """The model that the statement starts from."""
        if statement.using is None:
            return None
        with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            archive = Path(folder) / "model.zip"
            with at(statement.using.span):
                model = self.registry.load(str(statement.using), archive)
                return Parent(model.reference, read_archive(archive).spec, statement.using.span)

    def _with_held_out(self, plan: train.TrainingPlan) -> train.TrainingPlan:
        """The plan with the query of its held-out rows, if they have one, looked at."""
        if not plan.held_out.query:
            return plan
        with plan.held_out.placed():
            schema, query = self._look(plan.held_out.query)
        raise_all(check_columns(plan.held_out, plan.schema, plan.wants(), schema))
        return replace(plan, validation=query)

    def look(self, statement: Statement) -> tuple[Schema, spec.Query]:
        """The columns of the statement's query, and the query as a JobSpec keeps it."""
        with placed(statement.select_span):
            return self._look(statement.select)

    def _look(self, select: str) -> tuple[Schema, spec.Query]:
        arrow = self.source.schema(select)
        fields = tuple(spec.Field(field.name, str(field.type)) for field in arrow)
        return Schema(arrow, self.dialect), spec.Query(select, self.dialect, self.source.url, fields)

    def _run(
        self,
        job: jobs.JobFolder,
        job_spec: spec.JobSpec,
        pinned: data.Pinned,
        intent: Intent,
        on: Settings | None,
        weights: Path | None,
    ) -> Outcome:
        generate(job_spec).write(job.program)
        if on is not None:
            write_intent(job.path, intent)
        outcome = self._submitter.run(job, job_spec, pinned, self.observer, weights=weights, on=on)
        self._tell(outcome.notes)
        return outcome

    def _settings(self, statement: Statement) -> Settings | None:
        """How its job runs on Kubernetes; None: on this machine. SemanticError: it cannot run there."""
        if self._place is None:
            return None
        from sqlflow_edl.submit import kubernetes

        return kubernetes.settings_of(statement, self._place, self.source.url, self.registry.url)

    @property
    def _remote(self) -> bool:
        """Whether this session's jobs have a master, whatever their statements say."""
        return bool(self._workers) or self._leaving or self._place is not None

    def with_workers(self, job_spec: spec.JobSpec) -> spec.JobSpec:
        """The spec with as many workers as the session wants, and with nothing left to choose of how they train."""
        workers = job_spec.cluster.workers if self._workers is None else self._workers
        priority = job_spec.cluster.priority if self._priority is None else self._priority
        workers = max(workers, int(self._leaving or self._place is not None))
        cluster = msgspec.structs.replace(job_spec.cluster, workers=workers, priority=priority)
        if job_spec.kind == "train":
            cluster = chosen(cluster, table_memory(job_spec))
        return msgspec.structs.replace(job_spec, cluster=cluster)

    def _left(
        self,
        statement: Statement,
        job: jobs.JobFolder,
        job_spec: spec.JobSpec,
        pinned: data.Pinned,
        intent: Intent,
        on: Settings | None,
    ) -> Result:
        """Start the job and leave it."""
        generate(job_spec).write(job.program)
        write_intent(job.path, intent)
        self._submitter.leave(job, job_spec, pinned, self.observer, on)
        stores = "it" if on is not None else "the next sqlflow with this source"
        return Result(
            statement,
            message=f"job {job.id} goes on by itself: sqlflow attach {job.id} follows it, "
            f"and {stores} stores {intent.name}",
        )

    @contextlib.contextmanager
    def _job(self, statement: Statement, kind: jobs.Kind) -> Iterator[jobs.JobFolder]:
        """A job folder whose status tells how the job ended; of one that was cancelled only its log is left."""
        job = jobs.create(kind, statement.text)
        state: jobs.State = "failed"
        message = ""
        try:
            yield job
            state = "done"
        except (KeyboardInterrupt, JobCancelledError):
            state = "cancelled"
            raise
        except SQLFlowError as error:
            message = error.message
            raise
        finally:
            if not (self._leaving and state == "done"):
                if not job.status().place:  # there, its handle has noted it
                    job.end(state, message)
                with contextlib.suppress(SQLFlowError):  # the next session does it
                    self.source.unpin_abandoned()

    def _tell(self, notes: Iterable[str]) -> None:
        for note in notes:
            self.observer.note(note)


_LEFT = ("train", "auto", "predict", "evaluate")  # kinds of statements whose jobs can be left


def figures_table(figures: Figures) -> pa.Table:
    """One row with the figures of an evaluation."""
    return pa.table({name: pa.array([value], type=pa.float64()) for name, value in figures.items()})


def measured_on(rows: spec.Rows) -> str:
    return f"{rows.validation:,} held out" if rows.validation else "the same rows"


def _record(job_spec: spec.JobSpec, figures: Figures) -> ModelRecord:
    return ModelRecord(
        job_spec.model.name, job_spec.framework, job_spec.rows.training, figures, job_spec.statement
    )


def _target_span(statement: Statement) -> Span | None:
    name = statement.target or (statement.into[0] if statement.into else None)
    return name.span if name else None
