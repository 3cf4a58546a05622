"""Execution of TRAIN, PREDICT, EVALUATE and EXPLAIN.

The rows are pinned in a job folder, the generated program runs on them, and its result is stored.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pyarrow as pa

from edl.data import Pinned
from edl.data.metric_tables import importances, one_row
from edl.data.results import ResultFolder
from edl.errors import Span, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.events import Figures
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import JobCancelledError, Outcome
from edl.models.archive import read_archive
from edl.models.pending import Intent, write_intent
from edl.models.registry.records import ModelRecord, check_name
from edl.spec import ClassLabel, JobSpec, Rows
from sqlflow_edl.analysis import inference
from sqlflow_edl.backends.base import LostSightError
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.codegen import generate
from sqlflow_edl.errors.spans import at, placed
from sqlflow_edl.reports.result import Result, View
from sqlflow_edl.reports.text import counted
from sqlflow_edl.session.commit import store_model, store_table
from sqlflow_edl.session.pinning import fix
from sqlflow_edl.syntax.ast import Statement

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration, Settings
    from sqlflow_edl.session.session import Session

KINDS = ("train", "auto", "predict", "evaluate", "explain")


@dataclass(frozen=True, slots=True)
class Use:
    """PREDICT, EVALUATE or EXPLAIN with the model it names.

    trained: JobSpec of the training. planned: JobSpec of this statement, without its rows.
    """

    reference: str
    trained: JobSpec
    planned: JobSpec


@dataclass(frozen=True, slots=True)
class _Ready:
    """Job whose rows are pinned.

    weights: archive to start from or to use, or None. on: settings of the Kubernetes job, or None on this
    machine.
    """

    statement: Statement
    folder: JobFolder
    spec: JobSpec
    pinned: Pinned
    intent: Intent
    weights: Path | None
    on: Settings | None


class JobStatements:
    """Runner of one session's job statements.

    store: where models are kept instead of the source. place: configuration of jobs on Kubernetes, or None on
    this machine.
    """

    def __init__(
        self, session: Session, submitter: Submitter, store: str, place: Configuration | None
    ) -> None:
        self._session = session
        self._submitter = submitter
        self._store = store
        self._place = place
        self.leaving = False  # start jobs without waiting for them
        self._left = ""  # id of the last detached job

    def run(self, statement: Statement) -> Result:
        """Run a statement of one of `KINDS`.

        Raises SQLFlowError, with a place in the program's text where there is one.
        """
        if statement.kind in ("train", "auto"):
            return self._train(statement)
        return self._use(statement)

    @property
    def has_master(self) -> bool:
        """True if every job has a master, whatever its statement says."""
        return self.leaving or self._place is not None

    def check_place(self, statement: Statement) -> None:
        """Check that the statement can run on Kubernetes, as far as its text shows; no cluster is contacted.

        Raises SemanticError if it cannot.
        """
        if self._place is not None and not statement.plan:
            from sqlflow_edl.backends.kubernetes import statements

            session = self._session
            statements.settings_of(statement, self._place, session.source.url, session.registry.url)

    def _train(self, statement: Statement) -> Result:
        session, on = self._session, self._settings(statement)
        plan = session.training_plan(statement, warm=True)
        name = str(statement.into[0])
        with at(statement.into[0].span):
            check_name(name)
        with self._job(statement, "train") as job:
            fixed = fix(session.source, plan, job, session.observer)
            fitted = session.with_workers(fixed.spec)
            warnings = tuple(map(str, fixed.warnings))
            session.tell(plan.notes, warnings)
            start = job.model if fitted.trained_model else None
            if start:
                session.registry.load(fitted.trained_model, start)
            intent = Intent("train", session.source.url, name, _record(fitted, {}), self._store)
            ready = _Ready(statement, job, fitted, fixed.pinned, intent, start, on)
            if self.leaving:
                return self._leave(ready)
            outcome = self._trained(ready)
            model = outcome.stored or self._store_model(ready, outcome)
        return Result(
            statement,
            message=_trained_on(fitted, model),
            notes=tuple(plan.notes),
            warnings=warnings,
            figures=outcome.figures,
            measured_on=_measured_on(fitted.rows),
            ending=outcome.ending,
            curve=outcome.curve,
            model=model,
            stored_in=session.registry.url,
        )

    def _trained(self, ready: _Ready) -> Outcome:
        """Run the training and return its outcome. A failure is recorded in the registry as well."""
        try:
            return self._run(ready)
        except (JobCancelledError, LostSightError):
            raise
        except SQLFlowError as error:
            record = _record(ready.spec, {})
            self._session.registry.record_failure(
                ready.intent.name, record, error.message, once=ready.folder.id
            )
            raise

    def _store_model(self, ready: _Ready, outcome: Outcome) -> str:
        self._session.observer.doing("storing the model")
        record = _record(ready.spec, outcome.figures)
        return store_model(self._session.registry, ready.folder, ready.intent.name, outcome, record)

    def _use(self, statement: Statement) -> Result:
        """Run a model over the query's rows, into a table or as a result set."""
        session, on = self._session, self._settings(statement)
        with self._job(statement, cast(job_folder.Kind, statement.kind)) as job:
            found = used(session, statement, job.model)
            if not found.planned.cluster.workers:
                self._submitter.warm(found.trained.framework)
            session.observer.doing("pinning the rows")
            with placed(statement.select_span):
                pinned = session.source.pin(statement.select, job.rows, seed=0, shuffle=False)
            rows = Rows(True, pinned.rows, 0, 0, pinned.digest)
            planned = msgspec.structs.replace(found.planned, rows=rows)
            notes = inference.notes(statement, found.trained, planned)
            session.tell(notes)
            target = planned.output.name
            intent = Intent(planned.kind, session.source.url, target, store=self._store)
            ready = _Ready(statement, job, planned, pinned, intent, job.model, on)
            if self.leaving and pinned.rows:  # without rows there is no job to detach
                return self._leave(ready)
            outcome = self._run(ready)
            figures = outcome.figures if planned.work == "evaluate" else None
            if not target:
                table = _shown(job, outcome, planned)  # before the folder is cleaned up
                return Result(
                    statement,
                    message=_positive_class(planned),
                    notes=notes,
                    figures=figures,
                    reader=table.to_reader(),
                    view=_view(planned),
                    computed=tuple(name for name in table.column_names if name not in planned.output.keep),
                )
            written = outcome.rows if planned.work == "predict" else outcome.made
            if not outcome.stored:
                session.observer.doing(f"writing {target}")
                written = store_table(session.source, job, target, outcome.tasks)
        done = f"wrote {counted(written)} to {target} with {found.reference}"
        return Result(
            statement,
            message="; ".join(filter(None, (done, _positive_class(planned)))),
            notes=notes,
            rows=written,
            figures=figures,
        )

    # Steps -------------------------------------------------------------------------------------------------

    def _settings(self, statement: Statement) -> Settings | None:
        """Return the settings of its job on Kubernetes, or None on this machine.

        Raises SemanticError if it cannot run there.
        """
        if self._place is None:
            return None
        from sqlflow_edl.backends.kubernetes import submit

        session = self._session
        return submit.settings_of(statement, self._place, session.source.url, session.registry.url)

    def _run(self, ready: _Ready) -> Outcome:
        generate(ready.spec).write(ready.folder.program)
        if ready.on is not None:
            write_intent(ready.folder.path, ready.intent)
        if step := self._submitter.starting(ready.spec, ready.on):
            self._session.observer.doing(step)
        outcome = self._submitter.run(
            ready.folder,
            ready.spec,
            ready.pinned,
            self._session.observer,
            weights=ready.weights,
            on=ready.on,
        )
        self._session.tell(outcome.notes)
        return outcome

    def _leave(self, ready: _Ready) -> Result:
        """Start the job without waiting for its end."""
        generate(ready.spec).write(ready.folder.program)
        write_intent(ready.folder.path, ready.intent)
        self._submitter.leave(ready.folder, ready.spec, ready.pinned, self._session.observer, ready.on)
        self._left = job_id = ready.folder.id
        return Result(
            ready.statement,
            message=f"job {job_id} continues in the background and stores {ready.intent.name} when it ends; "
            f"follow it with `sqlflow attach {job_id}`",
        )

    @contextlib.contextmanager
    def _job(self, statement: Statement, kind: job_folder.Kind) -> Iterator[JobFolder]:
        """Create a job folder and record in it how the job ended. A cancelled job leaves only its log."""
        job = job_folder.create(kind, statement.text)
        state: job_folder.State = "failed"
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
            if job.id != self._left:
                if not job.status().place:  # a job elsewhere has its end recorded by its handle
                    job.end(state, message)
                with contextlib.suppress(SQLFlowError):  # the next session does it
                    self._session.source.unpin_abandoned()


def used(session: Session, statement: Statement, archive: Path) -> Use:
    """Plan PREDICT, EVALUATE or EXPLAIN without pinning rows. The model's archive is written to `archive`."""
    check, specify = inference.USES[statement.kind]
    name, _ = check(statement)
    with at(name.span):
        model = session.registry.load(str(name), archive)
    trained = read_archive(archive).spec
    schema, query = session.look(statement)
    planned = specify(statement, trained, model.reference, query, schema)
    if target := planned.output.name:
        with at(_target_span(statement)):
            session.source.check_target(target)
    return Use(model.reference, trained, session.with_workers(planned))


def _shown(job: JobFolder, outcome: Outcome, planned: JobSpec) -> pa.Table:
    """Return the answer of a statement without a target table."""
    if planned.work == "predict" or planned.report != "figures":
        return ResultFolder(job.results).read(outcome.tasks).read_all()
    return _table(outcome)


def _view(planned: JobSpec) -> View:
    """Return the display form for the answer of a job without a table."""
    if planned.work == "predict":
        return "rows"
    if planned.kind == "explain":
        return "importances"
    return planned.report


def _positive_class(planned: JobSpec) -> str:
    """Name the positive class of a ROC curve; return an empty string for other answers."""
    if planned.report != "roc_curve" or not isinstance(planned.label, ClassLabel):
        return ""
    return f"the positive class is {planned.label.classes[1]}"


def _table(outcome: Outcome) -> pa.Table:
    """Make a table of the figures in the job's own form: one row, or one per column of an explanation."""
    made = importances if outcome.kind == "explain" else one_row
    return pa.Table.from_batches([made(outcome.figures)])


def _trained_on(trained: JobSpec, model: str) -> str:
    rows = trained.rows
    validated = f"validated on {counted(rows.validation)}" if rows.validation else "measured on the same rows"
    return f"trained {trained.model.name} {model} on {counted(rows.training)}, {validated}"


def _measured_on(rows: Rows) -> str:
    """Name the rows that the metrics of a training were measured on."""
    return (
        counted(rows.validation, "validation row")
        if rows.validation
        else counted(rows.training, "training row")
    )


def _record(job_spec: JobSpec, figures: Figures) -> ModelRecord:
    return ModelRecord(
        job_spec.model.name, job_spec.framework, job_spec.rows.training, figures, job_spec.statement
    )


def _target_span(statement: Statement) -> Span | None:
    name = statement.target or (statement.into[0] if statement.into else None)
    return name.span if name else None
