"""Runner of job statements: pins their rows, runs the compiled program on them, and stores its result."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edl.data import Pinned, Source
from edl.data.cells import format_count
from edl.data.retry import insisting
from edl.data.source import LockedError
from edl.errors import SemanticError, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import record_end
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import (
    JobCancelledError,
    JobDiedError,
    JobInterruptedError,
    JobPausedError,
    Outcome,
)
from edl.jobs.termination import TerminatedError
from edl.models.commit import StoredModel, commit_result
from edl.models.fitting import read_fitting
from edl.models.pending import Intent, Rival, mark_handled, write_intent
from edl.models.registry.records import ModelRecord
from edl.run.archive import save_transform
from edl.run.result_tables import store
from edl.spec import NO_FRAMEWORK, JobSpec
from sqlflow_edl.analysis.columns.decisions import Reasons
from sqlflow_edl.analysis.search.limits import Clock
from sqlflow_edl.analysis.search.plan import AnyPlan, SearchPlan
from sqlflow_edl.backends.base import LostSightError
from sqlflow_edl.backends.submit import Submitter
from sqlflow_edl.codegen import generate
from sqlflow_edl.codegen.features import Reason
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.reports import job_results, text
from sqlflow_edl.reports.models import read_facts
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.same_statement import describe_jobs
from sqlflow_edl.session import activation, comparison, segments
from sqlflow_edl.session.compiler import Compiler, target_span, with_other_store
from sqlflow_edl.session.file_release import FileRelease
from sqlflow_edl.session.observer import Observer, WithoutNotes, report
from sqlflow_edl.session.pinning import pin_and_fit
from sqlflow_edl.session.uses import FORMS, WITHOUT_PROGRAM, ModelUse, UseOutcome
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.kinds import Kind

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import KubernetesSettings


@dataclass(frozen=True, slots=True)
class _Ready:
    """Job with pinned rows.
    weights: archive to start from or to use, or None. on: settings of the Kubernetes job, or None on this machine.
    reason: of each feature of a training.
    """

    folder: JobFolder
    spec: JobSpec
    pinned: Pinned
    intent: Intent
    weights: Path | None
    on: KubernetesSettings | None
    reason: Reason | None = None


LEAST_LEFT = 0.25  # of the time limit of a search by workers
_NOT_STORED = "interrupted before its model was stored"


def without_program() -> Mapping[Kind, Callable[[Compiler, Statement, JobFolder, Observer], Result]]:
    """Return the functions that run the job of a statement without a generated program."""
    from sqlflow_edl.session import measuring
    from sqlflow_edl.session.extended_statements import phase_of_extensions

    return {"measure": measuring.run, **phase_of_extensions("run")}


class JobRunner:
    """Runner of one statement. store: where models are kept instead of the source. file: the source's, if it is one."""

    def __init__(
        self, compiler: Compiler, submitter: Submitter, observer: Observer, store: str, file: FileRelease
    ) -> None:
        self._compiler = compiler
        self._source = compiler.source
        self._submitter = submitter
        self._observer = observer
        self._store = store
        self._file = file
        self._continues = False  # the job does not end with the statement
        self._began = 0.0  # second, as of `time.time`, from which the time limit of a search counts

    def run(self, statement: Statement) -> Result:
        """Run the statement. Raises SQLFlowError, with a place in the program's text where there is one."""
        self._began = time.time()
        self._compiler = replace(self._compiler, clock=Clock())
        if segments.segment_columns(statement):
            return self._evaluate_segments(statement)
        if not statement.traits.generated:
            with self._job(statement) as job:
                return without_program()[statement.kind](self._compiler, statement, job, self._observer)
        on = self._settings(statement)
        return self._train(statement, on) if statement.trains else self._use(statement, on)

    def _evaluate_segments(self, statement: Statement) -> Result:
        """Return the figures of each segment of an EVALUATE, or write them into its table."""
        if self._compiler.detached:
            raise SemanticError(
                "segments are measured in the client, so the statement cannot be detached",
                span=statement.span,
                hint="leave --detach out",
            )
        if statement.kind == "evaluate" and self._compiler.place is not None:
            raise SemanticError(
                "segments of a model's predictions are measured on this machine",
                span=statement.span,
                hint="leave --on kubernetes out",
            )
        target = str(statement.into[0]) if statement.into else ""
        if target:
            with set_missing_spans(target_span(statement)):
                self._source.check_target(target)
        quiet = JobRunner(
            self._compiler, self._submitter, WithoutNotes(self._observer), self._store, self._file
        )
        measured = segments.evaluate_segments(self._compiler, self.run, quiet.run, statement)
        report(self._observer, measured.new_notes)
        result = Result(statement, measured.message, measured.notes, reader=measured.table.to_reader())
        if not target:
            return result
        with self._job(statement) as job, set_missing_spans(target_span(statement)):
            [rows] = store(self._source, job.id, {target: measured.table.to_batches})
        message = f"{measured.message}; wrote {format_count(rows)} to {target}"
        return Result(statement, message, measured.notes, rows=rows)

    def _train(self, statement: Statement, on: KubernetesSettings | None) -> Result:
        registry = self._compiler.registry
        checked = self._compiler.check_training(statement)
        if checked.process:
            self._submitter.warm(checked.process)
        elif (
            on is None
            and not self._compiler.detached
            and (cluster := checked.cluster(self._compiler.workers))
        ):
            self._submitter.prepare_workers(checked.framework, cluster)
        plan = self._compiler.training_plan(statement, checked)
        if isinstance(plan, SearchPlan) and not (self._compiler.workers or self._compiler.has_master):
            self._submitter.prepare_trials(plan.first_plan.settings.framework)
        name = str(statement.into[0])
        with set_missing_spans(statement.into[0].span), with_other_store():
            registry.check_save(name)
        with self._job(statement) as job:
            pin = partial(pin_and_fit, self._source, job=job, observer=self._observer)
            plan, fixed = self._compiler.run_plan(statement, plan, pin)
            fitted = _with_remaining_time(self._compiler.with_workers(fixed.spec), time.time() - self._began)
            warnings = tuple(map(str, fixed.warnings))
            report(self._observer, plan.notes, warnings)
            start = job.model if fitted.trained_model else None
            if start:
                registry.load(fitted.trained_model, start)
            rival = self._rival(name, plan, fitted, fixed.pinned, job)
            facts = read_facts(statement.facts) or msgspec.UNSET
            intent = Intent("train", self._source.url, name, _record(fitted), self._store, rival, facts=facts)
            # for what stores the model, or records its failure, if this process cannot
            write_intent(job.path, intent)
            on = _in_image(on, fitted)
            ready = _Ready(job, fitted, fixed.pinned, intent, start, on, Reasons(plan.decisions).find)
            if fitted.framework == NO_FRAMEWORK:
                outcome = save_transform(job, fitted, fixed.pinned)
            elif self._compiler.detached:
                return self._detach(statement, ready)
            else:
                outcome = self._run(ready)
            warnings += job_results.doubts(fitted, outcome, read_fitting(job.rows), name)
            verdict = job_results.verdict_of(job, outcome)
            model = outcome.stored or self._commit(ready, outcome).name
        compared = f"; {rival.verdict(outcome.figures, model)}" if rival is not None else ""
        return Result(
            statement,
            message=job_results.trained_on(fitted, model, len(outcome.trials), outcome.stopped) + compared,
            notes=(*plan.notes, *outcome.notes),
            warnings=warnings,
            figures=outcome.figures,
            rival=rival,
            verdict=verdict,
            measured_on=job_results.measured_on(fitted, outcome),
            ending=outcome.ending,
            curve=outcome.curve,
            trials=outcome.trials,
            importances=outcome.importances.shares if outcome.importances else None,
            model=model,
            next_statements=job_results.next_statements(fitted, model),
            stored_in=_place(registry.url, self._source),
            job=job.id,
        )

    def _rival(
        self, name: str, plan: AnyPlan, fitted: JobSpec, pinned: Pinned, job: JobFolder
    ) -> Rival | None:
        """Measure the current version, if the new one is trained again, or replaces it only if it is better."""
        attribute = activation.find_comparison(plan)
        if attribute is None and not self._compiler.retrained:
            return None
        self._observer.doing("measuring the current version")
        span = attribute.span if attribute is not None else None
        compared = activation.Activation(self._source, plan, fitted, pinned, job, span)
        try:
            return compared.rival(self._compiler.registry, self._submitter, name)
        except SemanticError as error:
            if span is not None:
                raise
            report(self._observer, [f"the new version is not compared with the current one: {error.message}"])
            return None

    def _use(self, statement: Statement, on: KubernetesSettings | None) -> Result:
        """Run a model over the query's rows, into a table or as a result set."""
        with self._job(statement) as job:
            use = ModelUse(
                statement, self._compiler.use(statement, job.model), job, self._compiler, self._observer
            )
            if use.needs_framework:
                self._submitter.warm(use.use.trained.framework)
            if give := WITHOUT_PROGRAM.get(use.report):
                return give(use)
            rows = use.prepare(here=on is None)
            report(self._observer, rows.notes)
            append = statement.append is not None
            intent = Intent(rows.spec.kind, self._source.url, use.target, store=self._store, append=append)
            ready = _Ready(job, rows.spec, rows.pinned, intent, job.model, _in_image(on, rows.spec))
            if self._compiler.detached and rows.pinned.rows:  # without rows there is no job to detach
                return use.add_drift(self._detach(statement, ready), rows)
            # what is wrong with rows shows when they are read; of a forecast also what its query lacks
            with set_missing_spans(
                statement.select_span, SQLFlowError if rows.spec.forecast else SemanticError
            ):
                sizes = comparison.count_classes(
                    rows.spec, rows.pinned, job
                )  # a pod drops the rows when it is done
                outcome = self._run(ready)
            form, stored = use.form(rows), None
            if form == "table" and not outcome.stored:
                with set_missing_spans(target_span(statement)):
                    stored = self._commit(ready, outcome).rows
            # the rows of a result set are read before the folder is cleaned up
            return FORMS[form](use, rows, UseOutcome(outcome, sizes, stored))

    # Steps -------------------------------------------------------------------------------------------------

    def _settings(self, statement: Statement) -> KubernetesSettings | None:
        """Return the settings of its job on Kubernetes, or None on this machine.

        Raises SemanticError if it cannot run there.
        """
        place = self._compiler.place
        if place is None:
            return None
        from sqlflow_edl.backends.kubernetes import submit

        return submit.settings_of(statement, place, self._source.url, self._compiler.registry.url)

    def _run(self, ready: _Ready) -> Outcome:
        """Run the program and return its outcome. A failed training is recorded in the registry as well."""
        if ready.spec.search is not None and not ready.spec.cluster.workers:
            ready.folder.begin_search(self._began)
        generate(ready.spec, ready.reason).write(ready.folder.program)
        if ready.spec.cluster.workers:  # a job that outlives this process stores its result itself
            write_intent(ready.folder.path, ready.intent)
        if step := self._submitter.starting(ready.spec, ready.on):
            self._observer.doing(step)
        if ready.spec.kind == "train":
            self._file.release()
        try:
            outcome = self._submitter.run(
                ready.folder, ready.spec, ready.pinned, self._observer, weights=ready.weights, on=ready.on
            )
        except (JobCancelledError, JobInterruptedError, JobPausedError, LostSightError):
            raise
        except SQLFlowError as error:
            if record := ready.intent.record:
                self._record_failure(ready, record, error.message)
            raise
        report(self._observer, outcome.notes)
        return outcome

    def _record_failure(self, ready: _Ready, record: ModelRecord, why: str) -> None:
        """Record a failed training in the registry, unless another process has the file of that open."""
        name, registry = ready.intent.name, self._compiler.registry
        try:
            registry.record_failure(name, record, why, once=ready.folder.id)
        except LockedError as error:
            self._observer.note(f"SHOW MODELS will not list this failed version of {name}: {error.message}")

    def _commit(self, ready: _Ready, outcome: Outcome) -> StoredModel:
        """Store the result. Any failure leaves nothing staged.

        Raises LockedError if another process has the file of the source open for too long.
        """
        job, intent, registry = ready.folder, ready.intent, self._compiler.registry
        with contextlib.suppress(OSError):  # what stores the result if this fails reads the outcome
            record_end(ClusterFolder(job.path).events, outcome)
        self._observer.doing("storing the model" if intent.record else f"writing {intent.name}")
        if not intent.store:
            self._file.reopen(self._observer)
        try:
            with _ignore_interrupts() if ready.spec.search is not None else contextlib.nullcontext():
                return insisting(
                    lambda attempt: commit_result(job, intent, self._source, registry, outcome, attempt)
                )
        except BaseException:
            if intent.record is None:
                with contextlib.suppress(SQLFlowError):
                    self._source.abort(intent.name, job.id)
            raise

    def _detach(self, statement: Statement, ready: _Ready) -> Result:
        """Start the job without waiting for its end."""
        generate(ready.spec, ready.reason).write(ready.folder.program)
        write_intent(ready.folder.path, ready.intent)
        self._submitter.leave(ready.folder, ready.spec, ready.pinned, self._observer, ready.on)
        self._continues = True
        job_id = ready.folder.id
        does = "adds its rows to" if ready.intent.append else "stores"
        return Result(
            statement,
            message=f"job {job_id} continues in the background and {does} {ready.intent.name} when it ends; "
            f"follow it with `sqlflow attach {job_id}`",
        )

    def _leave_to_next_session(self, job: JobFolder, error: LockedError) -> None:
        """Let the next session with the data source store the model; the error says so."""
        job.finish(0, "nobody")
        self._continues = True
        error.hint = (
            f"the model of job {job.id} is kept, and the next session with this data source stores it"
        )

    @contextlib.contextmanager
    def _job(self, statement: Statement) -> Iterator[JobFolder]:
        """Create a job folder and record in it how the job ended.

        A cancelled job leaves only its log; an interrupted job keeps all that it needs to be resumed.
        """
        if (kind := statement.traits.job) is None:
            raise RuntimeError(f"a statement of the kind {statement.kind} has no job")
        job = job_folder.create(kind, statement.text)
        report(self._observer, describe_jobs(job, self._source.url))
        state: job_folder.State = "done"
        message = ""
        stopped: BaseException | None = None
        try:
            with job.disk_errors():
                yield job
        except BaseException as error:
            stopped, (state, message) = error, _end_of(job, error)
            if isinstance(error, LockedError) and job.archive.exists():
                self._leave_to_next_session(job, error)
                raise
            if isinstance(error, SQLFlowError) and not isinstance(error, _STOPS) and not job.status().place:
                with contextlib.suppress(FileNotFoundError):  # it has no destination
                    mark_handled(job.path)
            raise
        finally:
            if not self._continues:
                if not job.status().place:  # a job elsewhere has its end recorded by its handle
                    with contextlib.suppress(OSError):  # a full disk: it counts as died
                        job.end(state, message)
                    report(self._observer, _remainder(job, state))
                    if isinstance(stopped, TerminatedError | JobInterruptedError) and job.can_resume:
                        stopped.kept.append(job.id)
                with contextlib.suppress(SQLFlowError):  # the next session does it
                    self._source.unpin_abandoned()


def _place(store: str, source: Source) -> str:
    """Return the URL of the store of models, and the file that it is in if the source is no database."""
    is_beside = source.kept_in and store == source.url
    return f"{store} ({source.kept_in} has it)" if is_beside else store


def _in_image(on: KubernetesSettings | None, job_spec: JobSpec) -> KubernetesSettings | None:
    """Return the settings of a job on Kubernetes with the image of its model, if that is of one."""
    if on is None:
        return None
    from sqlflow_edl.backends.kubernetes import submit

    return submit.with_image(on, job_spec.image)


_STOPS = (JobCancelledError, JobInterruptedError, JobPausedError)


def _end_of(job: JobFolder, error: BaseException) -> tuple[job_folder.State, str]:
    """Return the state of a job that this exception has ended, and why."""
    if isinstance(error, JobPausedError):
        return "paused", ""
    if isinstance(error, KeyboardInterrupt | JobCancelledError | JobInterruptedError):
        cancels = not isinstance(error, TerminatedError | JobInterruptedError)
        if isinstance(error, TerminatedError):
            cancels = error.cancels
        if job.archive.exists() or (job.has_result and not cancels):
            return "failed", _NOT_STORED
        return "cancelled" if cancels else "interrupted", ""
    state: job_folder.State = "died" if isinstance(error, JobDiedError) else "failed"
    return state, error.message if isinstance(error, SQLFlowError) else f"{type(error).__name__}: {error}"


@contextlib.contextmanager
def _ignore_interrupts() -> Iterator[None]:
    """Ignore Ctrl-C: it ends a search with what was found, which is being stored."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _remainder(job: JobFolder, state: job_folder.State) -> Iterator[str]:
    """Yield what can be done with a job that has not succeeded."""
    if state in ("done", "cancelled"):
        return
    if job.archive.exists():
        yield f"the model is in {job.archive}; `sqlflow resume {job.id}` stores it"
    elif job.has_result:
        yield f"the rows are in {job.results}; `edl fetch {job.id} --output FILE.csv` writes them"
    elif job.can_resume:
        yield f"`sqlflow resume {job.id}` continues the training"


def _with_remaining_time(job_spec: JobSpec, seconds: float) -> JobSpec:
    """Return a search by workers with the limit that is left of the statement: its clock begins with the first worker.

    seconds: that the statement has taken.
    """
    search = job_spec.search
    if search is None or not (search.time_limit and job_spec.cluster.workers):
        return job_spec
    left = max(search.time_limit - seconds, LEAST_LEFT * search.time_limit)
    return msgspec.structs.replace(
        job_spec, search=msgspec.structs.replace(search, time_limit=round(left, 1))
    )


def _record(job_spec: JobSpec) -> ModelRecord:
    return ModelRecord(
        text.model(job_spec), job_spec.framework, job_spec.rows.training, {}, job_spec.statement
    )
