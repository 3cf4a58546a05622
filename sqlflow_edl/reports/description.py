"""DESCRIBE MODEL: one version of a model as section, name and value; most wanted facts first."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from edl.data.cells import format_count
from edl.jobs.trials import are_refitted
from edl.models.archive import Archive
from edl.models.fitting import Fitting
from edl.models.registry.records import ModelVersion
from edl.spec import NO_FRAMEWORK, SCORED, TREES, Component, JobSpec, each_label
from sqlflow_edl.reports import curve
from sqlflow_edl.reports import text as words
from sqlflow_edl.reports.folds import describe_folds, describe_trained_rows
from sqlflow_edl.reports.importances import importances, shares
from sqlflow_edl.reports.intervals import measured_rows
from sqlflow_edl.reports.near_perfect import archived_doubt
from sqlflow_edl.reports.verdict import verdict

Rows = Iterator[tuple[str, str]]  # name, value


def describe(
    version: ModelVersion, archive: Archive | None, facts: Mapping[str, str] | None = None
) -> list[tuple[str, str, str]]:
    """Return section, name and value of each fact.

    archive: None for a failed training, known to the registry only. facts: those that a person keeps with the model.
    """
    sections: list[tuple[str, Iterable[tuple[str, str]]]] = [
        ("model", _model(version, archive)),
        ("description", (facts or {}).items()),
    ]
    if archive is None:
        sections.append(("lineage", [("statement", version.record.statement)]))
    else:
        spec, fitting = archive.spec, archive.fitting or Fitting()
        sections += [
            ("label", _labels(spec)),
            ("forecast", words.forecast(spec.forecast)),
            ("features", _features(spec, fitting.reasons)),
            ("left out", left_out(archive)),
            (
                "warnings",
                ((str(number), text) for number, text in enumerate(warnings(archive, version.name), 1)),
            ),
            ("data", _statistics(spec, fitting)),
            ("members" if spec.members else "search", _members(archive)),
            ("imported", _source_file(spec)),
            ("training", _training(archive) if _is_trained(spec) else ()),
            (_measured_on(archive), _metrics(archive)),
            ("calibration", _calibration(archive)),
            ("intervals", _intervals(archive)),
            ("importance", _importances(archive)),
            ("learning curve", curve.describe_curve(archive.curve, spec.metrics)),
            ("lineage", _lineage(archive)),
        ]
    return [(section, name, value) for section, rows in sections for name, value in rows]


COVERAGE = 0.9  # of described intervals
MOST_CAUSES = 3  # columns that are named as causes of their widths


def _intervals(archive: Archive) -> Rows:
    """Describe intervals of different widths: their range, and what they depend on most."""
    interval = archive.residuals.interval(COVERAGE) if archive.residuals is not None else None
    margin, widths = interval or (0.0, None)
    if widths is None:
        return
    ranges = {
        term.column or "the prediction": max((*term.logs, term.otherwise)) - min((*term.logs, term.otherwise))
        for term in widths.columns
    }
    causes = sorted(ranges, key=lambda name: -ranges[name])[:MOST_CAUSES]
    low, high = margin * math.exp(widths.least), margin * math.exp(widths.most)
    yield f"{COVERAGE:.0%}", f"± {low:.3g} to {high:.3g}, ± {margin:.3g} for the median row"
    yield "widths", f"most by {', '.join(causes)}"


def left_out(archive: Archive) -> Rows:
    """List the columns that the model, or members of an ensemble, do not read, with the reason."""
    models = [member.spec for member in archive.spec.members] or [archive.spec]
    reasons = archive.fitting.left_out if archive.fitting is not None else {}
    for columns, why in reasons.items():
        if described := words.left_out(columns, why, models, "member"):
            yield columns, described


def warnings(archive: Archive, model: str) -> tuple[str, ...]:
    """Return the warnings of the training rows, and of metrics that are nearly perfect."""
    stored = archive.fitting.warnings if archive.fitting is not None else ()
    doubt = archived_doubt(archive, model)
    return (*stored, doubt) if doubt else stored


def _model(version: ModelVersion, archive: Archive | None) -> Rows:
    yield "name", version.name
    yield "version", f"{version.version}{', current' if version.current else ''}"
    if version.tags:
        yield "tags", ", ".join(version.tags)
    yield "state", f"failed: {version.reason}" if version.state == "failed" else version.state
    yield "created", f"{version.created[:19].replace('T', ' ')} UTC"
    yield "model", version.record.model
    yield "framework", version.record.framework
    if archive is not None:
        if archive.spec.image:
            yield "image", archive.spec.image
        yield from parameters(archive.spec.model)
        if archive.spec.framework not in (*TREES, *SCORED, NO_FRAMEWORK):  # trees have files as weights
            yield "weights", f"{archive.parameters():,} numbers"
        yield "size", words.size(version.archive_bytes)
        if archive.spec.edited:
            yield "edited", "its generated program was edited by hand"


def _features(spec: JobSpec, reasons: Sequence[str]) -> Rows:
    features, types = spec.features, words.column_types(spec.query)
    reasons_by_feature = dict(zip(features, reasons, strict=True)) if len(reasons) == len(features) else {}
    for feature, place in words.features_with_inputs(spec):  # one that two inputs have comes twice
        place = [] if spec.imported else place  # its inputs have a number and no name
        facts = "; ".join(filter(None, [reasons_by_feature.get(feature, ""), *place]))
        yield words.columns(feature), words.feature(feature, types) + (f" ({facts})" if facts else "")


def _statistics(spec: JobSpec, fitting: Fitting) -> Rows:
    """List statistics of the training rows, in the order of the query's columns."""
    order = {field.name: position for position, field in enumerate(spec.query.schema)}
    types = words.column_types(spec.query)
    for name in sorted(fitting.columns, key=lambda name: order.get(name, len(order))):
        yield name, words.summary(fitting.columns[name], types.get(name, ""))


def _members(archive: Archive) -> Rows:
    """List the models of an ensemble by their share in it, with their trials in the search."""
    chosen = sorted((trial for trial in archive.trials if trial.weight), key=lambda trial: -trial.weight)
    for trial in chosen:
        refit = f"; {words.length_of_refit(trial)} on all rows" if trial.refit else ""
        yield (
            f"{words.percent(trial.weight)}",
            f"trial {trial.number}: {trial.name}; {words.format_figures(trial.figures)}{refit}",
        )


def _measured_on(archive: Archive) -> str:
    return {"training": "metrics"}.get(rows := measured_rows(archive)[0], rows)


def _metrics(archive: Archive) -> Rows:
    """List the metrics, and the rows that they were measured on."""
    spec, values = archive.spec, archive.metrics
    kind, count = measured_rows(archive)
    if said := verdict(archive):
        yield "verdict", said
    if kind != "training":
        which = f", {words.split(spec.split)}" if kind == "validation" and spec.split else ""
        which += f", {words.backtest(spec.forecast)}" if spec.forecast else ""
        yield "rows", f"{count:,}{which}"
    if archive.fold_values is not None:
        yield "folds", describe_folds(spec, archive.fold_values)
    if spec.validation:
        yield "query", spec.validation.select
    for name in dict.fromkeys(("loss", *spec.metrics, *values)):
        if name in values:
            yield name, words.number(values[name])


def _importances(archive: Archive) -> Rows:
    """List the columns by the importance that a search measured, or of trees by their splits, the largest first."""
    of_trees = {
        importance.column: f"gain {words.percent(importance.gain)}, "
        f"{format_count(round(importance.splits), 'split')}"
        for importance in importances(archive)
    }
    measured = archive.importances
    if measured is None:
        yield from of_trees.items()
        return
    all_shares = shares(archive)
    yield "measured by", all_shares.by if all_shares is not None else ""
    for column, share in measured.shares.items():
        facts = [words.percent(share), words.number(measured.columns[column]), of_trees.get(column, "")]
        yield column, "; ".join(filter(None, facts))


def _calibration(archive: Archive) -> Rows:
    """List the temperature with what it changed, and the thresholds by metric."""
    calibration = archive.calibration
    if calibration is None:
        return
    if calibration.log_loss:
        (loss, lower), (error, less) = calibration.log_loss, calibration.error
        yield "temperature", words.number(calibration.temperature)
        yield "log_loss", f"{words.number(lower)} instead of {words.number(loss)}"
        yield "calibration error", f"{words.percent(less)} instead of {words.percent(error)}"
    for metric, best in calibration.thresholds.items():
        yield (
            f"threshold by {metric}",
            f"{words.number(best.probability)}, {metric} {words.number(best.value)}",
        )


def _labels(spec: JobSpec) -> Rows:
    for label in each_label(spec.label):
        is_unmeasured = bool(spec.imported) and label.is_number  # mean and deviation are not known
        yield label.column, "a number" if is_unmeasured else words.label(label)


def _source_file(spec: JobSpec) -> Rows:
    """List the file of a model that was trained elsewhere, and how its outputs are understood."""
    file = spec.imported
    if not file:
        return
    yield "file", f"{file.file}, {words.size(file.size)}"
    yield "sha256", file.sha256
    if file.producer:
        yield "written by", file.producer
    if file.types:
        yield "inputs", ", ".join(file.types)
    if file.output:
        yield "output", f"{file.output}: {file.gives}"
    if file.rounds:
        yield "rounds", f"the first {file.rounds:,} predict"


def _is_trained(spec: JobSpec) -> bool:
    return spec.framework != NO_FRAMEWORK and not spec.imported


def _training(archive: Archive) -> Rows:
    spec, training = archive.spec, archive.spec.training
    refit = f"; then all {archive.learned_rows:,}, after measuring" if are_refitted(archive.trials) else ""
    if spec.members:
        yield "seed", f"{training.seed}"
        chose = f"{spec.validation_rows:,} that chose the members"
        yield "rows", f"{describe_trained_rows(spec)}, and {chose}{refit}"
        return
    yield "optimizer", component(spec.optimizer)
    yield "loss", component(spec.loss)
    if spec.framework in TREES:
        yield "rounds", f"{training.epochs:,}"
    else:
        yield "batch_size", f"{training.batch_size:,}"
        yield "epochs", f"{training.epochs:,}"
    if training.max_steps:
        yield "max_steps", f"{training.max_steps:,}"
    if spec.schedule is not None:
        yield "schedule", component(spec.schedule)
    yield from words.settings(training)
    if spec.precision != "float32":
        yield "precision", spec.precision
    if spec.weights is not None:
        yield "weight_column", spec.weights.column
    yield "rows", f"{spec.rows.training:,}{refit}"


def _lineage(archive: Archive) -> Rows:
    lineage, increment = archive.lineage, archive.spec.query.increment
    yield "statement", lineage.statement
    if archive.spec.imported:
        yield "imported", f"{lineage.started[:19].replace('T', ' ')} UTC"
        return
    measured = f" of the model that was measured; {archive.learned_rows:,} of the stored one"
    refit = measured if are_refitted(archive.trials) else ""
    yield "rows", f"{lineage.rows:,}, {lineage.training_rows:,} of them for training{refit}"
    if increment is not None:
        after = f"above {increment.after}, " if increment.after is not None else ""
        yield "increment", f"{increment.column} {after}up to {increment.until}"
    yield "data digest", lineage.data_digest
    yield "schema digest", lineage.schema_digest
    if lineage.parent:
        yield "started from", lineage.parent
    yield "seed", str(lineage.seed)
    yield "started", f"{lineage.started[:19].replace('T', ' ')} UTC"
    yield "duration", words.duration(lineage.seconds)
    if lineage.ending:
        yield "ending", lineage.ending
    yield "versions", ", ".join(f"{name} {number}" for name, number in lineage.versions.items())


def parameters(component: Component) -> Rows:
    for name, value in component.params.items():
        yield name, words.value(value)


def component(part: Component) -> str:
    """Format a component: `adam, learning_rate 0.001`."""
    return ", ".join([part.name, *(f"{name} {value}" for name, value in parameters(part))])
