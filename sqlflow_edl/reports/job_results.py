"""Results of job statements: their rows, and the sentences about what was done."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from edl.data.cells import format_count
from edl.data.metric_tables import importances, one_row
from edl.data.results import ResultFolder
from edl.evaluation.prediction import added_names
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import TIME_LIMIT, Outcome
from edl.models.archive import read_archive
from edl.models.fitting import Fitting
from edl.spec import NO_FRAMEWORK, TREES, JobSpec, Output
from sqlflow_edl.analysis import expressions
from sqlflow_edl.reports import text
from sqlflow_edl.reports.folds import describe_folds, describe_trained_rows
from sqlflow_edl.reports.importances import unit
from sqlflow_edl.reports.intervals import wilson
from sqlflow_edl.reports.near_perfect import doubt
from sqlflow_edl.reports.result import Result, View
from sqlflow_edl.reports.text import number
from sqlflow_edl.reports.verdict import verdict, verdict_of_evaluation
from sqlflow_edl.syntax.ast import Statement

FEW_ROWS = 2000  # of more, the interval of an accuracy is narrower than 0.05


def result_set(
    statement: Statement,
    job: JobFolder,
    planned: JobSpec,
    outcome: Outcome,
    notes: tuple[str, ...],
    sizes: Sequence[float] = (),
) -> Result:
    """Return the answer of a statement without a target table. sizes: rows of each class of its label, if known."""
    table = _answer(job, planned, outcome)
    return Result(
        statement,
        message=_positive_class(planned) or _unit(planned),
        notes=notes,
        figures=_figures(planned, outcome),
        verdict=_verdict_of_evaluation(planned, outcome, sizes),
        reader=table.to_reader(),
        view=_view(planned),
        computed=tuple(name for name in table.column_names if name not in planned.output.keep),
    )


def written_rows_result(
    statement: Statement,
    planned: JobSpec,
    outcome: Outcome,
    notes: tuple[str, ...],
    rows: int,
    model: str,
    sizes: Sequence[float] = (),
) -> Result:
    """Return the answer of a statement that wrote so many rows to its target table. sizes: as in `result_set`."""
    done = f"{'added' if statement.append else 'wrote'} {format_count(rows)} to {planned.output.name} with {model}"
    return Result(
        statement,
        message="; ".join(filter(None, (done, _positive_class(planned), _unit(planned)))),
        notes=notes,
        rows=rows,
        figures=_figures(planned, outcome),
        verdict=_verdict_of_evaluation(planned, outcome, sizes),
    )


def trained_on(trained: JobSpec, model: str, trials: int = 0, stopped: str = "") -> str:
    """Return a sentence about a training. trials, stopped: of a search, those that ended, and why others did not."""
    if trained.search is not None:
        search, on = trained.search, f"{model} on {describe_trained_rows(trained)}"
        if search.count == 1:
            return f"trained {search.candidates[0].name} {on}, {_chosen_on(trained, 'validated')}"
        tried = f"tried {trials:,} of up to {format_count(search.count, 'candidate')}"
        if trials == search.count:
            tried = f"tried {format_count(trials, 'candidate')}"
        elif stopped.startswith(TIME_LIMIT):
            tried += f" in {search.time_limit:g} s"
        return f"{tried} for {on}, {_chosen_on(trained)}"
    if trained.framework == NO_FRAMEWORK:
        features = format_count(len(trained.features), "feature")
        return f"fitted {features} of {model} to {format_count(trained.rows.training)}"
    learned = format_count(trained.rows.training, "row" if trained.forecast is None else "example")
    return f"trained {text.model(trained)} {model} on {learned}, {_validated_on(trained)}"


def _chosen_on(trained: JobSpec, what: str = "chosen") -> str:
    """Describe the rows that chose the models of a search."""
    if trained.folds > 1:
        return f"{what} on {format_count(trained.validation_rows)}"
    return f"{what} on {_validation_rows(trained)}"


def _validated_on(trained: JobSpec) -> str:
    """Describe the validation rows, and what they chose."""
    if not trained.rows.validation:
        return "measured on the same rows"
    chose = "number of rounds" if trained.framework in TREES else "epoch"
    chosen = trained.training.keep == "best" and trained.training.epochs > 1
    return f"validated on {_validation_rows(trained)}" + (f", which chose the {chose}" if chosen else "")


def _validation_rows(trained: JobSpec) -> str:
    count, split = trained.rows.validation, trained.split
    which = format_count(count)
    if trained.forecast is not None:
        which = f"the backtest, {text.backtest(trained.forecast)}"
    elif split is not None:
        which = {
            "time": f"the {format_count(count, 'latest row')} by {split.column}, from {split.since}",
            "group": f"{which} of other values of {split.column}",
            "column": f"{which} that {split.column} marks",
            "stratified": f"{which} stratified by {split.column}",
            "random": format_count(count, "random row"),
        }[split.by]
    elif trained.validation is None:
        which = f"the last {which}" if count > 1 else "the last row"
    return which


def measured_rows(trained: JobSpec, outcome: Outcome) -> tuple[str, int]:
    """Return the kind and the number of the rows that the metrics were measured on: test, validation or training."""
    rows = trained.rows
    if outcome.measured_on == "test":
        return "test", rows.test
    if rows.validation:
        return "validation", trained.validation_rows
    return "training", rows.training


def measured_on(trained: JobSpec, outcome: Outcome) -> str:
    """Name the rows that the metrics of a training were measured on, and the interval of an accuracy of few rows."""
    kind, count = measured_rows(trained, outcome)
    if kind == "training":
        return format_count(count, "training row")
    if kind == "test":
        measured = f"{format_count(count, 'test row')}, used for neither training nor selection"
    elif trained.forecast is not None:
        measured = f"{format_count(count)} of the backtest"
    else:
        measured = format_count(count, "validation row")
    if outcome.fold_values and kind == "validation":
        measured += f" in {describe_folds(trained, outcome.fold_values)}"
    accuracy = outcome.figures.get("accuracy")
    if accuracy is None or trained.weights is not None or count >= FEW_ROWS:
        return measured
    least, most = wilson(accuracy, count)
    return f"{measured}; accuracy {number(least)} to {number(most)} with 95 % confidence"


def verdict_of(job: JobFolder, outcome: Outcome) -> str:
    """Return the verdict on the model in the job's folder; empty if there is none, as of pods that store it."""
    path = job.path / outcome.archive
    return verdict(read_archive(path)) if outcome.archive and path.is_file() else ""


def next_statements(trained: JobSpec, model: str) -> tuple[str, ...]:
    """Return statements that use the model, with the names of its label and of its second class."""
    name = expressions.model(model)
    statements = [f"DESCRIBE MODEL {name}"]
    if trained.search is not None:
        statements.append(f"SHOW TRIALS {name}")
    if trained.framework == NO_FRAMEWORK:
        return (
            *statements,
            f"SHOW FEATURES FOR {name} (SELECT …)",
            f"SELECT … TO TRAIN … COLUMN FEATURES({name}) …",
        )
    label = trained.label
    column = "" if label.labels else label.column
    quoted = expressions.name(column, trained.query.dialect) if column else "column"
    statements += [f"SELECT … TO EVALUATE {name}", f"SELECT … TO PREDICT table.{quoted} USING {name}"]
    if label.is_binary:
        likely = added_names(label, column, Output(), (), trained.query.source.partition(":")[0])[-1]
        order = expressions.name(likely, trained.query.dialect)
        statements.append(f"SELECT * FROM PREDICT({name}, (SELECT …)) ORDER BY {order} DESC")
    return tuple(statements)


def doubts(trained: JobSpec, outcome: Outcome, fitting: Fitting | None, model: str) -> tuple[str, ...]:
    """Return a warning about metrics of a training that are nearly perfect, or none."""
    sentence = doubt(trained, outcome.figures, *measured_rows(trained, outcome), fitting, model)
    return (sentence,) if sentence else ()


def _answer(job: JobFolder, planned: JobSpec, outcome: Outcome) -> pa.Table:
    """Return the rows, or the figures in the job's own form: one row, or one per column of an explanation."""
    if planned.work == "predict" or planned.report != "figures":
        return ResultFolder(job.results).read(outcome.tasks).read_all()
    to_table = importances if outcome.kind == "explain" else one_row
    return pa.Table.from_batches([to_table(outcome.figures)])


def _figures(planned: JobSpec, outcome: Outcome) -> dict[str, float | None] | None:
    return outcome.figures if planned.work == "evaluate" else None


def _verdict_of_evaluation(planned: JobSpec, outcome: Outcome, sizes: Sequence[float]) -> str:
    if planned.kind != "evaluate" or planned.forecast is not None or planned.report != "figures":
        return ""
    return verdict_of_evaluation(planned.label, outcome.figures, outcome.rows, sizes)


def _view(planned: JobSpec) -> View:
    """Return the display form for the answer of a job without a table."""
    if planned.work == "predict":
        return "rows"
    return "importances" if planned.kind == "explain" else planned.report


def _positive_class(planned: JobSpec) -> str:
    """Name the positive class of a ROC curve; return an empty string for other answers."""
    if planned.report != "roc_curve" or not planned.label.has_classes:
        return ""
    return f"the positive class is {planned.label.classes[1]}"


def _unit(planned: JobSpec) -> str:
    """Name the unit of importances or contributions; return an empty string for other answers."""
    if planned.kind != "explain":
        return ""
    what = "contributions" if planned.work == "predict" else "importance"
    return f"{what} in {unit(planned, is_margin=planned.framework in TREES)}"
