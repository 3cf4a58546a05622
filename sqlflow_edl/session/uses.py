"""Uses of a trained model: what PREDICT, EVALUATE and EXPLAIN do with their rows, and the form of their results.

`WITHOUT_PROGRAM` has the uses that run no program, `FORMS` the results of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

import pyarrow as pa

from edl import data
from edl.data import Pinned
from edl.errors import SemanticError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.archive import read_archive
from edl.spec import JobSpec
from sqlflow_edl.analysis.checks.drift import ColumnDrift
from sqlflow_edl.analysis.checks.query_errors import NoRowsError
from sqlflow_edl.analysis.inference import confidence, used_model
from sqlflow_edl.analysis.inference.evaluation import UNSEEN_ONLY, unseen_only
from sqlflow_edl.analysis.inference.explanation import one_row_explanation
from sqlflow_edl.analysis.inference.prediction import taken_name_notes
from sqlflow_edl.errors.spans import set_missing_spans, shift_spans
from sqlflow_edl.reports import drift as drift_report
from sqlflow_edl.reports import features as feature_report
from sqlflow_edl.reports import job_results, reasons
from sqlflow_edl.reports.result import Result
from sqlflow_edl.session import comparison
from sqlflow_edl.session.advice.corrections import add_correction
from sqlflow_edl.session.compiler import Compiler, Use
from sqlflow_edl.session.observer import Observer, report
from sqlflow_edl.syntax.ast import Statement

Form = Literal["reasons", "rows", "table"]


class UsedRows(NamedTuple):
    """Pinned rows of a use, and the JobSpec with them. explains_row: the result explains one row. drift: of columns."""

    pinned: Pinned
    spec: JobSpec
    notes: tuple[str, ...]
    explains_row: bool
    drift: list[ColumnDrift] | None


class UseOutcome(NamedTuple):
    """Outcome of a use. sizes: rows of each class. stored: number of rows of the table, if this process wrote it."""

    outcome: Outcome
    sizes: list[float]
    stored: int | None


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Use of a model on the rows of a statement's query, by a job."""

    statement: Statement
    use: Use
    job: JobFolder
    compiler: Compiler
    observer: Observer

    @property
    def target(self) -> str:
        """Name of the table of the result; empty for a result set."""
        return self.use.planned.output.name

    @property
    def report(self) -> str:
        """Report that needs no program, a key of `WITHOUT_PROGRAM`, or an empty text."""
        name = self.use.planned.report
        return name if name == "features" or (name == "drift" and not self.target) else ""

    @property
    def needs_framework(self) -> bool:
        """True if this process runs the model."""
        reports = self.use.planned.report in ("drift", "features") and not self.target
        return not (self.use.planned.cluster.workers or self.use.planned.image or reports)

    def prepare(self, *, here: bool) -> UsedRows:
        """Pin the rows, and return them with what is to be done with them. here: the job runs on this machine."""
        statement, trained = self.statement, self.use.trained
        pinned = self._pin()
        drift = self._compare(pinned) if self.use.planned.report == "drift" else None
        notes: tuple[str, ...] = ()
        if statement.kind == "evaluate":
            pinned, notes = self._leave_out_seen_rows(pinned)
        planned, row_notes = used_model.with_rows(self.use.planned, pinned.rows, pinned.digest)
        used_model.check_explains(statement, planned)
        one_row = None
        if here and not self.compiler.detached:
            one_row = one_row_explanation(statement, planned, trained)
        planned = one_row or planned
        notes = row_notes + notes + used_model.used_model_notes(statement, trained, planned)
        notes += tuple(used_model.time_notes(trained, planned.query))
        notes += confidence.former_name_notes(planned) + taken_name_notes(planned)
        if planned.kind in ("predict", "evaluate"):
            fitting = read_archive(self.job.model).fitting
            notes += comparison.comparison_notes(fitting, trained, planned, pinned, self.job)
        return UsedRows(pinned, planned, notes, one_row is not None, drift)

    def form(self, rows: UsedRows) -> Form:
        """Return the form of the result, a key of `FORMS`."""
        return "reasons" if rows.explains_row else "table" if self.target else "rows"

    def add_drift(self, result: Result, rows: UsedRows) -> Result:
        """Return the result with the drift of the rows, if the statement reports it."""
        return drift_report.add_drift(result, rows.drift, self.use.reference)

    def give_features(self) -> Result:
        """Return what the model sees of the rows, which are read and transformed as the result is read."""
        statement, planned = self.statement, self.use.planned
        notes = tuple(used_model.time_notes(self.use.trained, planned.query))
        report(self.observer, notes)
        schema = self.compiler.source.schema(statement.select)
        read = set(planned.columns)
        others = [name for name in schema.names if name not in read]

        def rows() -> Iterator[pa.RecordBatch]:  # the query begins when its first row is asked for
            with shift_spans(statement.select_span):
                yield from self.compiler.source.stream(statement.select)

        def seen() -> Iterator[pa.RecordBatch]:
            with set_missing_spans(statement.select_span):
                yield from batches

        with set_missing_spans(statement.select_span):
            batches = feature_report.reader(planned, rows(), schema, others)
        reader = pa.RecordBatchReader.from_batches(batches.schema, seen())
        computed = tuple(batches.schema.names[len(others) :])
        return Result(statement, reader=reader, computed=computed, notes=notes)

    def give_drift(self) -> Result:
        """Return how the rows differ from the training rows, by column."""
        drift = self._compare(self._pin())
        return drift_report.add_drift(Result(self.statement), drift, self.use.reference)

    def _pin(self) -> Pinned:
        """Pin the rows that a model is used on. Raises SemanticError if there are none to measure or to explain."""
        statement, planned = self.statement, self.use.planned
        self.observer.doing("pinning the rows")
        shuffle = used_model.is_sampled(planned)
        with shift_spans(statement.select_span):
            pinned = self.compiler.source.pin(statement.select, self.job.rows, seed=0, shuffle=shuffle)
            pinned.check_fits(None if statement.kind == "predict" else planned.columns)
        if not pinned.rows and statement.kind != "predict":
            raise NoRowsError(span=statement.select_span, hint=None)
        if not pinned.rows:
            error = NoRowsError(span=statement.select_span, hint=None)
            add_correction(error, self.compiler, statement)
            self.observer.warn("; ".join(filter(None, (error.message, error.hint))))
        return pinned

    def _leave_out_seen_rows(self, pinned: Pinned) -> tuple[Pinned, tuple[str, ...]]:
        """Return the rows of EVALUATE, without those that trained the model if they are to be left out, and a note.

        Raises SemanticError if they are not known, or no others are left.
        """
        self.observer.doing("looking for rows that trained the model")
        use, job, source = self.use, self.job, self.compiler.source
        attribute = unseen_only(self.statement)
        archive = read_archive(job.model)
        finder = comparison.SeenRowsFinder(source, use.reference, archive, use.planned.query, pinned, job)
        seen = finder.find(at_any_cost=attribute is not None)
        if attribute is None:
            return pinned, (seen.note(),) if seen is not None else ()
        with set_missing_spans(attribute.written.span):
            if seen is None:
                return pinned, (
                    f"{use.reference} was trained on rows of other tables, so all rows are measured",
                )
            if self.compiler.place is not None:
                raise SemanticError(
                    f"{UNSEEN_ONLY} chooses rows on this machine, which pods do not read",
                    hint="leave it out, or run the statement without --on kubernetes",
                )
            if seen.why:
                raise SemanticError(seen.note(), hint=f"leave {UNSEEN_ONLY} out")
            if seen.seen == seen.count:
                raise SemanticError(seen.note(), hint="select rows that the model was not trained on")
        left = f"{seen.seen:,} of {pinned.rows:,} rows trained {use.reference} and are left out"
        return comparison.pin_unseen(seen, pinned, source, job), (left,) if seen.seen else ()

    def _compare(self, pinned: Pinned) -> list[ColumnDrift]:
        """Compare the pinned rows with the training rows of the model."""
        self.observer.doing("comparing the rows")
        reader = data.open_reader(pinned, self.job.rows)
        return comparison.drift(
            read_archive(self.job.model),
            reader.schema.names,
            lambda columns: reader.read(0, pinned.rows, columns),
        )


def _explain_row(use: ModelUse, rows: UsedRows, end: UseOutcome) -> Result:
    explained = job_results.result_set(use.statement, use.job, rows.spec, end.outcome, rows.notes)
    return reasons.explained_row(explained, rows.spec, read_archive(use.job.model))


def _give_rows(use: ModelUse, rows: UsedRows, end: UseOutcome) -> Result:
    return job_results.result_set(use.statement, use.job, rows.spec, end.outcome, rows.notes, end.sizes)


def _describe_table(use: ModelUse, rows: UsedRows, end: UseOutcome) -> Result:
    count = end.stored
    if count is None:
        count = end.outcome.rows if rows.spec.work == "predict" else end.outcome.made
    reference = use.use.reference
    result = job_results.written_rows_result(
        use.statement, rows.spec, end.outcome, rows.notes, count, reference, end.sizes
    )
    return use.add_drift(result, rows)


WITHOUT_PROGRAM: Mapping[str, Callable[[ModelUse], Result]] = {
    "features": ModelUse.give_features,
    "drift": ModelUse.give_drift,
}
FORMS: Mapping[Form, Callable[[ModelUse, UsedRows, UseOutcome], Result]] = {
    "reasons": _explain_row,
    "rows": _give_rows,
    "table": _describe_table,
}
