"""Rows of a TRAIN statement: the step from its plan to its JobSpec.

`fix` pins the rows, fits the features to the training rows and checks the validation rows. `look` makes the
same JobSpec from a look at the queries and pins nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import pyarrow as pa

from edl import data, spec
from edl.data.pinned import write_pinned
from edl.jobs.job_folder import JobFolder
from edl.models.fitting import write_fitting
from sqlflow_edl.analysis import validation
from sqlflow_edl.analysis.checks.data import DataChecks, DataWarning
from sqlflow_edl.analysis.columns.decisions import fitting, summaries
from sqlflow_edl.analysis.columns.derive import delimited
from sqlflow_edl.analysis.search.plan import TrainPlan
from sqlflow_edl.analysis.statistics import ColumnStatistics, Want, collect, distinct_values
from sqlflow_edl.errors.spans import placed
from sqlflow_edl.reports.plan import Planned
from sqlflow_edl.session.observer import Observer


@dataclass(frozen=True, slots=True)
class Fixed:
    """Training whose rows are pinned. spec: JobSpec fitted to them. warnings: findings of the data checks."""

    pinned: data.Pinned
    spec: spec.JobSpec
    warnings: tuple[DataWarning, ...]


def fix(source: data.Source, plan: TrainPlan, job: JobFolder, observer: Observer) -> Fixed:
    """Pin the rows of the plan in the job's folder, fit the features to them, and check them."""
    statement = plan.statement
    checks = plan.checks()
    observer.doing("pinning the rows")
    with placed(statement.select_span):
        pinned = source.pin(statement.select, job.rows, seed=plan.seed, shuffle=plan.shuffle)
    own = _pin_held_out(source, plan, job, checks)
    observer.doing("fitting the features")
    reader = data.open_reader(pinned, job.rows)
    rows = _split(plan, pinned.rows, own.rows, pinned.digest)
    wants = plan.wants()
    if rows.validation and not plan.held_out.query:
        checks.hold_out(reader.read(rows.training, pinned.rows, list(wants)))
    statistics = _statistics(plan, checks, lambda: reader.read(0, rows.training, list(wants)))
    classes = distinct_values(reader.read(0, pinned.rows, [plan.label]), plan.label)
    fitted = plan.fit(statistics, rows, classes)
    validation.check_labels(plan.held_out, fitted.label, own, plan.query.dialect)
    warnings = tuple(checks.warnings(statistics, fitted.label, fitted.features, plan.named))
    write_fitting(job.rows, fitting(statistics, wants, plan.decisions, fitted.features, warnings))
    return Fixed(pinned, fitted, warnings)


def look(source: data.Source, plan: TrainPlan) -> Planned:
    """Make the JobSpec from a look at the queries, without pinning rows."""
    checks = plan.checks()
    with placed(plan.statement.select_span):
        statistics = _statistics(plan, checks, lambda: source.stream(plan.statement.select))
    if plan.held_out.query:
        with plan.held_out.placed():
            checks.held_out = validation.labels(plan.label, source.stream(plan.held_out.query))
    own = checks.held_out
    found = statistics[plan.label]
    rows = _split(plan, found.rows, own.rows)
    fitted = plan.fit(statistics, rows, found.counts.classes if found.counts else None)
    validation.check_labels(plan.held_out, fitted.label, own, plan.query.dialect)
    warnings = tuple(checks.warnings(statistics, fitted.label, fitted.features, plan.named))
    return Planned(plan, fitted, summaries(statistics, plan.wants()), warnings)


def _statistics(
    plan: TrainPlan, checks: DataChecks, read: Callable[[], Iterable[pa.RecordBatch]]
) -> dict[str, ColumnStatistics]:
    """Collect the statistics that the plan wants of the training rows.

    Takes one pass, or two where texts turn out to be lists. checks: data checks, which see the rows of the
    first pass.
    """
    wants = plan.wants()
    found = collect(checks.watch(read()), wants, seed=plan.seed, lists=plan.lists())
    if cells := set(delimited(wants, found)):
        of_items = collect(read(), {each.column: Want.NONE for each in cells}, seed=plan.seed, lists=cells)
        for column, items in of_items.items():
            found[column] = replace(found[column], lists={**found[column].lists, **items.lists})
    return found


def _pin_held_out(
    source: data.Source, plan: TrainPlan, job: JobFolder, checks: DataChecks
) -> ColumnStatistics:
    """Pin the rows of the validation query, in its order, and return the statistics of their labels."""
    if not plan.held_out.query:
        return ColumnStatistics()
    with plan.held_out.placed():
        pinned = source.pin(plan.held_out.query, job.validation_rows, seed=0, shuffle=False)
    write_pinned(job.validation_rows, pinned)
    reader = data.open_reader(pinned, job.validation_rows)
    checks.hold_out(reader.read(0, reader.rows))
    return checks.held_out


def _split(plan: TrainPlan, total: int, own: int, digest: str = "") -> spec.Rows:
    """Count the rows of both sets. Validation rows are the last of the query, or all of another query."""
    last = plan.held_out.rows(total)
    return spec.Rows(bool(digest), total + own, total - last, last + own, digest)
