"""Compiler of job statements: from a statement to its JobSpec and notes.

It reads schemas and rows of the data source and models of the registry. It starts no job, pins no rows and stores
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

import msgspec

from edl import spec
from edl.data import Source, TextSource
from edl.data.pinned import check_disk
from edl.data.source import MissingRightError
from edl.embeddings.sizes import table_memory
from edl.errors import JobError, SemanticError, SourceError, Span, SQLFlowError, UnfitValueError, raise_all
from edl.evaluation.prediction import results_of
from edl.extension_loader import defer
from edl.features import target as target_of
from edl.frameworks import check_installed, is_installed
from edl.installation import install_extras
from edl.jobs.job_folder import state_folder
from edl.models.archive import read_archive
from edl.models.registry.base import Registry
from edl.spec.job import SOLVERS, Framework
from edl.spec.measurement import Measurement
from edl.spec.strategy import complete_settings
from sqlflow_edl.analysis import inference, measurement, train
from sqlflow_edl.analysis.columns.reused import Reused
from sqlflow_edl.analysis.inference import confidence, stored_readings, used_model
from sqlflow_edl.analysis.inference.column_types import check_types
from sqlflow_edl.analysis.models import transform
from sqlflow_edl.analysis.rows import increments
from sqlflow_edl.analysis.rows.validation import check_columns
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.search import plan as search
from sqlflow_edl.analysis.search.drafts import is_search
from sqlflow_edl.analysis.search.limits import Clock
from sqlflow_edl.analysis.search.plan import AnyPlan
from sqlflow_edl.analysis.search.table_probe import TableProbe
from sqlflow_edl.analysis.settings import running
from sqlflow_edl.analysis.settings.search import KINDS
from sqlflow_edl.analysis.train_settings import CheckedSettings, check_settings
from sqlflow_edl.analysis.warm_start import Parent
from sqlflow_edl.codegen import GeneratedProgram, generate
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.session import passed_on
from sqlflow_edl.session.pinning import look
from sqlflow_edl.syntax.ast import Name, Statement

if TYPE_CHECKING:
    import pyarrow as pa

    from sqlflow_edl.backends.kubernetes.settings import Configuration

R = TypeVar("R")
_IMAGES = "sqlflow_edl.backends.images.models"  # loaded for a model that an image has
check_container, check_workers = defer(_IMAGES, "check_container"), defer(_IMAGES, "check_workers")
learn_models = defer(_IMAGES, "learn_models")


@dataclass(frozen=True, slots=True)
class CompiledStatement:
    """TRAIN statement as a program that has not run. warnings: findings of the data checks."""

    statement: Statement
    spec: spec.JobSpec
    program: GeneratedProgram
    notes: tuple[str, ...]
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """PREDICT, EVALUATE or EXPLAIN with the model it names.

    trained: JobSpec of the training. planned: JobSpec of this statement, without its rows.
    """

    reference: str
    trained: spec.JobSpec
    planned: spec.JobSpec


@dataclass(frozen=True, slots=True)
class CheckedTraining:
    """TRAIN statement that is checked without the columns of its query.

    settings: None of a search, and if their parent is wrong. here: a process of this session would train it.
    """

    statement: Statement
    parent: Parent | None
    searches: bool
    settings: CheckedSettings | None
    errors: tuple[SQLFlowError, ...]
    here: bool

    @property
    def framework(self) -> Framework:
        """Framework that trains, as far as it is known."""
        if self.settings is None or self.errors:
            return spec.ENSEMBLE
        return self.settings.settings.framework

    @property
    def other_frameworks(self) -> list[str]:
        """Frameworks that are installed and have the model."""
        if self.settings is None or self.errors:
            return []
        return [name for name in self.settings.settings.choice.example.frameworks if is_installed(name)]

    @property
    def process(self) -> str:
        """Framework of the process of the session that will train; empty if none will."""
        if not self.here or self.statement.names_image:
            return ""
        if self.settings is None:
            return spec.ENSEMBLE
        settings = self.settings.settings
        shared = settings.only_fits or complete_settings(running.cluster(settings)).workers
        return settings.framework if not shared and is_installed(settings.framework) else ""

    def cluster(self, workers: int | None) -> spec.Cluster | None:
        """Return the cluster of the training, as far as it is known before its columns are; None of a search.

        workers: of the session, which override the statement's.
        """
        if self.settings is None or self.errors or not is_installed(self.framework):
            return None
        return complete_settings(running.cluster(self.settings.settings, workers))


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiler for one data source and its models.

    workers, priority: of every job, instead of its statement's. deadline: in seconds, of every job, which then has a
    master; 0 means none. place: configuration of jobs on Kubernetes, or None
    on this machine. detached: no client waits for the job, so it has a master. only_schema: the source has the tables
    of a schema file. retrained: model that is trained again; its training tells how files are read. runs_here: the
    account and the machine that compile will also run the jobs. clock: of the statement, if its job runs within its
    time limit. asks_images: a cluster may run an image to learn which models it has.
    """

    source: Source
    registry: Registry
    dialect: str
    workers: int | None = None
    priority: int | None = None
    place: Configuration | None = None
    detached: bool = False
    deadline: float = 0.0
    only_schema: bool = False
    retrained: str = ""
    runs_here: bool = True
    clock: Clock | None = None
    asks_images: bool = True

    # TRAIN ---------------------------------------------------------------------------------------------------

    def compile(self, statement: Statement) -> CompiledStatement:
        """Compile a TRAIN statement from a look at its rows."""
        planned = self.plan(statement)
        warnings = tuple(map(str, planned.warnings))
        program = generate(planned.spec, planned.reasons.find)
        return CompiledStatement(statement, planned.spec, program, tuple(planned.plan.notes), warnings)

    def plan(self, statement: Statement) -> Planned:
        """Plan a TRAIN statement from a look at its rows."""
        look_at = partial(look, self.source, only_schema=self.only_schema)
        _, result = self.run_plan(statement, self.training_plan(statement), look_at)
        return replace(result, spec=self.with_workers(result.spec))

    def check_training(self, statement: Statement) -> CheckedTraining:
        """Check the statement as far as possible without the columns of its query.

        Its errors are raised with those of the columns, or now if it has no query.
        """
        parent, searches = self.parent(statement), self._searches(statement)
        settings: CheckedSettings | None = None
        errors: list[SQLFlowError] = []
        try:
            if statement.names_image and (self.runs_here or self.place is not None):
                learn_models(statement, self.place, self.asks_images)
            if searches:
                search.check_without_columns(statement)
            else:
                settings = check_settings(statement, parent)
                errors.extend(settings.errors)
        except SQLFlowError as error:
            errors.append(error)
        if not statement.select:
            raise_all(errors)
        here = not (errors or self.workers or self.has_master)
        return CheckedTraining(statement, parent, searches, settings, tuple(errors), here)

    def training_plan(
        self,
        statement: Statement,
        checked: CheckedTraining | None = None,
        unfit: Mapping[str, tuple[str, str]] | None = None,
    ) -> AnyPlan:
        """Check the statement against its query's columns and raise all its errors together.

        checked: the statement as `check_training` gives it. unfit: of `Schema`.
        """
        checked = checked or self.check_training(statement)
        parent, settings = checked.parent, checked.settings
        try:
            self._read_as_before(statement, parent)
            schema, query = self.describe(statement)
            schema = Schema(schema.arrow, schema.dialect, unfit)
        except SQLFlowError as error:
            raise_all([*checked.errors, error])
            raise
        with set_missing_spans(statement.model.span if statement.model else None):
            if not statement.names_image:
                self._check_machine(checked.framework, others=checked.other_frameworks)
        if isinstance(self.source, TextSource):
            query = stored_readings.differing_query(self.source.readings, query)
        if settings is None:
            if not checked.searches:
                raise_all(list(checked.errors))
            probe = TableProbe(self.source, statement.select, tuple(schema.names))
            return self._with_held_out(
                search.plan(statement, query, schema, self.load_reused(statement), self.clock, probe)
            )
        last, models = self._last_query(statement, parent), self.load_reused(statement)
        planned = train.plan(statement, query, schema, settings, parent, self.workers, last, models=models)
        if parent is not None:
            again = used_model.over_schema(parent.spec, schema)
            check_types(statement, parent.spec, again, schema, self._has_rows)
        self._check_encryption(statement, running.cluster(planned.settings))
        return self._with_held_out(planned)

    def run_plan(
        self, statement: Statement, plan: AnyPlan, step: Callable[[AnyPlan], R]
    ) -> tuple[AnyPlan, R]:
        """Run a step of the plan that reads rows. Return its result, and the plan that it belongs to.

        A column is left out, with a note, if it holds a value that its type cannot hold. Raises the error of that value
        for a column that a clause names.
        """
        while True:
            try:
                return plan, step(plan)
            except UnfitValueError as error:
                plan = self._without_unfit(statement, plan, error)

    def _without_unfit(self, statement: Statement, plan: AnyPlan, error: UnfitValueError) -> AnyPlan:
        """Return the plan that leaves out the columns of the error, or raise it for those that a clause names."""
        before = plan.schema.unfit
        if error.columns.keys() <= before.keys():
            raise error
        if again := self._plan_without(statement, {**before, **error.columns}):
            return again
        named = {
            name: why
            for name, why in error.columns.items()
            if self._plan_without(statement, {**before, name: why}) is None
        }
        raise UnfitValueError.of(named or error.columns) from None

    def _plan_without(self, statement: Statement, unfit: Mapping[str, tuple[str, str]]) -> AnyPlan | None:
        """Return the plan without these columns, or None if the statement needs one of them."""
        try:
            plan = self.training_plan(statement, unfit=unfit)
        except SQLFlowError:
            return None
        return plan if unfit.keys().isdisjoint(plan.columns) else None

    def check_without_columns(self, statement: Statement) -> None:
        """Check a TRAIN statement as far as possible without the columns of its query; raises all errors together."""
        if self._searches(statement):
            search.check_without_columns(statement)
        else:
            train.check_without_columns(statement, self.parent(statement), self.workers)

    def _searches(self, statement: Statement) -> bool:
        """Return True if the statement is a search. The short form with USING trains its model further."""
        return is_search(statement) and not (statement.kind == "auto" and statement.using is not None)

    def parent(self, statement: Statement) -> Parent | None:
        """Load the model that TRAIN … USING starts from; return None without USING."""
        if statement.using is None:
            return None
        with set_missing_spans(statement.using.span):
            try:
                reference, archive = self._load_spec(str(statement.using))
            except SemanticError as error:
                if str(statement.using) in KINDS:
                    error.hint = f"write WITH auto.models = {statement.using} in place of USING"
                raise
            return Parent(reference, archive, statement.using.span)

    def load_reused(self, statement: Statement) -> dict[str, Reused]:
        """Load the models of FEATURES(m) in COLUMN."""
        by_reference: dict[str, Reused] = {}
        for name in statement.reused_models:
            with set_missing_spans(name.span):
                by_reference[str(name)] = Reused(*self._load_spec(str(name)))
        return by_reference

    def _last_query(self, statement: Statement, parent: Parent | None) -> spec.Query | None:
        """Return the query of the model's last training, if the statement trains on what is new since then."""
        if not increments.are_in(statement):
            return None
        if parent is not None:
            return parent.spec.query
        name = str(statement.into[0]) if statement.into else ""
        if not name or not self.registry.has(name) or self.registry.look_up(name).state != "ready":
            return None
        return self._load_spec(name)[1].query

    def load_spec(self, name: Name) -> spec.JobSpec:
        """Return the JobSpec of a model."""
        with set_missing_spans(name.span):
            return self._load_spec(str(name))[1]

    def _load_spec(self, name: str) -> tuple[str, spec.JobSpec]:
        """Return the reference and the JobSpec of a model."""
        with self.registry.fetch(name) as (model, archive):
            return model.reference, read_archive(archive).spec

    def _with_held_out(self, plan: AnyPlan) -> AnyPlan:
        """Add the description of the validation query, if the plan has one."""
        if not plan.held_out.query:
            return plan
        with plan.held_out.locate_errors():
            schema, query = self._describe(plan.held_out.query)
        raise_all(check_columns(plan.held_out, plan.schema, plan.columns, schema))
        return replace(plan, validation=query)

    # PREDICT, EVALUATE, EXPLAIN ------------------------------------------------------------------------------

    def use(self, statement: Statement, archive: Path) -> Use:
        """Compile a statement that uses a model. The model's archive is written to `archive`."""
        check, specify = inference.USES[statement.kind]
        name, attributes = check(statement)
        with set_missing_spans(name.span):
            model = self.registry.load(str(name), archive)
        trained = read_archive(archive)
        if "predict.report" not in attributes or statement.target:
            with set_missing_spans(name.span):
                transform.check_predicts(trained.spec, model.reference)
        self.read_as(trained.spec, statement)
        schema, query = self.describe(statement)
        planned = specify(statement, trained, model.reference, query, schema)
        check_types(statement, trained.spec, planned, schema, self._has_rows)
        if planned.report not in ("drift", "features") or planned.output.name:
            with set_missing_spans(name.span):
                if planned.image and self.place is None and self.runs_here:
                    check_container(planned.image)
                elif not planned.image:
                    self._check_machine(planned.framework, *(member.framework for member in planned.models))
        planned = self._fit_to_target(statement, planned, schema.arrow)
        return Use(model.reference, trained.spec, self.with_workers(planned))

    def _fit_to_target(self, statement: Statement, planned: spec.JobSpec, rows: pa.Schema) -> spec.JobSpec:
        """Check the table of the result, and return the JobSpec with the name that one to be added to has for the
        confidence.

        Raises SourceError, at the table's name, if it could not take the result.
        """

        def check(job: spec.JobSpec) -> None:
            added = results_of(job, target_of(job.label)).empty(rows).schema if statement.append else None
            self.check_target(statement, job.output.name, added)

        try:
            check(planned)
        except SourceError:
            before = msgspec.structs.replace(
                planned, output=msgspec.structs.replace(planned.output, confidence=confidence.FORMER)
            )
            if not statement.append:
                raise
            try:
                check(before)
            except SourceError:
                pass
            else:
                return before
            raise
        return planned

    # EVALUATE without a model --------------------------------------------------------------------------------

    def measurement(self, statement: Statement) -> Measurement:
        """Return the comparison of a statement. Raises all its errors together."""
        measurement.check(statement)
        schema, query = self.describe(statement)
        result = measurement.plan(statement, query, schema)
        self.check_target(statement, result.target)
        return result

    # All job statements --------------------------------------------------------------------------------------

    def job_spec(self, statement: Statement) -> spec.JobSpec:
        """Return the JobSpec of a statement with a generated program, without pinned rows."""
        if statement.trains:
            return self.plan(statement).spec
        with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            return self.use(statement, Path(folder) / "model.zip").planned

    def check_place(self, statement: Statement) -> None:
        """Check that the statement can run on Kubernetes, as far as its text shows; no cluster is contacted.

        Raises SemanticError if it cannot.
        """
        if self.place is not None and not statement.plan:
            from sqlflow_edl.backends.kubernetes import statements

            statements.settings_of(statement, self.place, self.source.url, self.registry.url)

    def check_syntax(self, statement: Statement) -> None:
        """Raise the error of SQL that the database's parser refuses."""
        passed_on.check_syntax(
            statement,
            self.dialect,
            passed_on.parser_of(self.source),
            partial(passed_on.names_of, self.source, statement.text),
            partial(passed_on.tables_of, self.source, statement.text),
        )

    def read_as(self, trained: spec.JobSpec, statement: Statement) -> None:
        """Let a source of text files read the columns of the model as its training rows were read.

        Raises SourceError, at the query, for a value that does not fit.
        """
        if isinstance(self.source, TextSource):
            columns = {
                *trained.columns,
                trained.label.column,
                *(field.name for field in trained.query.schema if self.retrained),
            }
            with shift_spans(statement.select_span):
                stored_readings.apply(
                    self.source,
                    trained.query,
                    columns,
                    statement.select,
                    lambda: self.source.schema(statement.select),
                )

    def _read_as_before(self, statement: Statement, parent: Parent | None) -> None:
        """Let a source of text files read rows in the way of the training that this one repeats or continues."""
        if isinstance(self.source, TextSource):
            if parent is not None:
                self.read_as(parent.spec, statement)
            elif self.retrained:
                self.read_as(self._load_spec(self.retrained)[1], statement)

    def describe(self, statement: Statement) -> tuple[Schema, spec.Query]:
        """Describe the statement's query: its schema, and the query as a JobSpec stores it."""
        try:
            with shift_spans(statement.select_span), increments.hint_at_increments(statement.select):
                return self._describe(statement.select)
        except SourceError as error:
            self.check_syntax(statement)  # which knows what was meant
            confidence.add_hint(error, statement.select, self.source)
            raise

    def _describe(self, select: str) -> tuple[Schema, spec.Query]:
        arrow = self.source.schema(select)
        fields = tuple(spec.Field(field.name, str(field.type)) for field in arrow)
        return Schema(arrow, self.dialect), spec.Query(select, self.dialect, self.source.url, fields)

    def _has_rows(self, query: str) -> bool:
        return any(batch.num_rows for batch in self.source.stream(query))

    def check_target(self, statement: Statement, target: str, appended: pa.Schema | None = None) -> None:
        """Raise SourceError, at the table's name, if the table could not take the result of the statement."""
        if target:
            with set_missing_spans(target_span(statement)):
                self.source.check_target(target, appended)
                self.check_may_write(target, append=appended is not None)

    def check_may_write(self, target: str, *, append: bool = False) -> None:
        """Raise MissingRightError if the account may not write a result table."""
        if self.runs_here:
            try:
                self.source.check_may_write(target, append=append)
            except MissingRightError as error:
                error.add_hint(
                    "without the table the rows are a result, which sqlflow run -o FILE.csv writes"
                )
                raise

    def _check_machine(self, *frameworks: str, others: Sequence[str] = ()) -> None:
        """Raise SQLFlowError if a job of the frameworks could not run here, for want of a package or of disk space.

        others: installed frameworks that have the model, too.
        """
        if self.runs_here and self.place is None:
            for framework in frameworks:
                try:
                    check_installed(framework)
                except JobError as error:
                    if others:
                        error.add_hint(f"or train it with WITH model.framework = {others[0]}")
                    raise
            check_disk(state_folder())

    def check_rights(self, statement: Statement) -> None:
        """Raise MissingRightError if the account may not store the model of a TRAIN statement. Nothing is created."""
        for name in statement.into if self.runs_here else ():
            with set_missing_spans(name.span), with_other_store():
                self.registry.check_rights(str(name))

    def with_workers(self, job_spec: spec.JobSpec) -> spec.JobSpec:
        """Set the number of workers and the priority, and resolve the choices left to the compiler."""
        if job_spec.framework == spec.NO_FRAMEWORK:  # no job runs
            return job_spec
        workers = job_spec.cluster.workers if self.workers is None else self.workers
        priority = job_spec.cluster.priority if self.priority is None else self.priority
        if job_spec.kind == "train" and job_spec.optimizer.name in SOLVERS:
            workers = min(workers, 1)
        workers = max(workers, int(self.has_master))
        if workers and self.place is None:
            check_workers(job_spec)
        if job_spec.forecast is not None and workers:
            raise SemanticError(
                "a forecast runs in one process, which reads each series as a whole",
                hint="leave out --workers, --detach, --deadline and the cluster",
            )
        cluster = msgspec.structs.replace(
            job_spec.cluster, workers=workers, priority=priority, deadline=self.deadline
        )
        if job_spec.search is not None:  # each trial is trained by one worker
            cluster = spec.Cluster(
                workers,
                strategy="local",
                priority=priority,
                task_timeout=cluster.task_timeout,
                deadline=self.deadline,
            )
        elif job_spec.kind == "train":
            cluster = complete_settings(cluster, table_memory(job_spec))
            self._check_groups(cluster)
        return msgspec.structs.replace(job_spec, cluster=cluster)

    def _check_groups(self, cluster: spec.Cluster) -> None:
        """Raise JobError if the workers of a training could not form groups here; trees need PyTorch for it, too."""
        here = self.runs_here and self.place is None
        if here and cluster.strategy == "allreduce" and not is_installed("torch"):
            raise JobError(
                "workers train in groups of all-reduce, which need torch, and it is not installed",
                hint=f"{install_extras('torch')}; or leave --workers and train.num_workers out",
            )

    def _check_encryption(self, statement: Statement, cluster: spec.Cluster) -> None:
        """Raise SemanticError, before rows are pinned, if the workers of a training would have to talk in plain."""
        if self.place is not None:
            from sqlflow_edl.backends.kubernetes import certificates

            workers = cluster.workers if self.workers is None else self.workers
            cluster = complete_settings(msgspec.structs.replace(cluster, workers=workers))
            spans = (
                attribute.span
                for attribute in statement.attributes
                if attribute.key.casefold() == "kubernetes.tls"
            )
            with set_missing_spans(next(spans, statement.span)):
                certificates.check(cluster, self.place.settings(statement.attributes))

    @property
    def has_master(self) -> bool:
        """True if every job has a master, whatever its statement says."""
        return self.detached or self.place is not None or bool(self.deadline)


@contextmanager
def with_other_store() -> Iterator[None]:
    """Name the other place for models in the hint of a missing right to write them into the database."""
    try:
        yield
    except MissingRightError as error:
        error.add_hint("--model-store DIR keeps models in a folder, for which no right is needed")
        raise


def target_span(statement: Statement) -> Span | None:
    """Return the place of the table that the statement writes, or None if it writes none."""
    name = statement.target or (statement.into[0] if statement.into else None)
    return name.span if name else None
