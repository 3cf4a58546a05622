"""Parts of the page of a model, derived from what the registry has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from edl.jobs.trials import Trial
from edl.models.archive import Archive, Figures
from edl.models.fitting import ColumnSummary, Histogram
from edl.spec import TREES, Computed, Feature, ScoreCurve, each_label, source_columns, sources
from sqlflow_edl.extensions.web.model_reader import ModelDetails
from sqlflow_edl.extensions.web.rendering import asset, render
from sqlflow_edl.reports import text as words
from sqlflow_edl.reports.description import left_out, warnings
from sqlflow_edl.reports.intervals import Interval, intervals, measured_rows
from sqlflow_edl.reports.verdict import verdict

COVERAGES = (0.5, 0.8, 0.9, 0.95)  # of the intervals of a predicted number
FEW_VALUES = 10  # of a column: its frequent values are shown
_CLOCK = ("epoch", "step", "seconds", "loss", "validation_loss")

Series = Mapping[str, Sequence[tuple[float, float | None]]]


@dataclass(frozen=True)
class MetricView:
    name: str
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class ColumnView:
    """Column of the query. features: what the model makes of it. left_out: why it, or members of it, do not."""

    name: str
    type: str
    features: Sequence[str]
    summary: ColumnSummary | None
    left_out: str
    is_label: bool

    @property
    def facts(self) -> str:
        """Statistics in words, without the most frequent values, which a chart shows."""
        return words.summary(replace(self.summary, top=()), self.type) if self.summary is not None else ""

    @property
    def histogram(self) -> Histogram | None:
        """Histogram of numbers, unless they have few values: the frequencies of these tell more."""
        summary = self.summary
        if summary is None or (
            summary.top and summary.distinct is not None and summary.distinct <= FEW_VALUES
        ):
            return None
        return summary.histogram


@dataclass(frozen=True)
class ModelView:
    """Contents of the page of a model besides the sections of its description.

    measured_rows, row_kind: of the metrics, scores and errors: test, validation or training rows.
    """

    model: ModelDetails
    metrics: Sequence[MetricView]
    measured_rows: int
    row_kind: str
    curves: Sequence[tuple[str, Series, str]]  # title, lines, name of the horizontal axis
    columns: Sequence[ColumnView]
    warnings: Sequence[str]

    @property
    def archive(self) -> Archive | None:
        return self.model.archive

    @property
    def verdict(self) -> str:
        return verdict(self.archive) if self.archive is not None else ""

    @property
    def classes(self) -> tuple[str, ...]:
        label = self.archive.spec.label if self.archive is not None else None
        return tuple(map(words.value, label.classes)) if label is not None else ()

    @property
    def confusion(self) -> tuple[tuple[float, ...], ...]:
        calibration = self.archive.calibration if self.archive is not None else None
        matrix = calibration.confusion if calibration is not None else ()
        return matrix if len(matrix) == len(self.classes) == len(next(iter(matrix), ())) else ()

    @property
    def scores(self) -> tuple[ScoreCurve, ...]:
        """Curves that have rows on both sides."""
        calibration = self.archive.calibration if self.archive is not None else None
        all_curves = calibration.curves if calibration is not None else ()
        count = len(self.classes)
        return tuple(
            curve for curve in all_curves if curve.inside and curve.outside and curve.position < count
        )

    @property
    def score_data(self) -> list[dict[str, object]]:
        """Curves for the script of the page: names, weights of rows, and points."""
        return [
            {
                "name": self.classes[curve.position],
                "inside": curve.inside,
                "outside": curve.outside,
                "thresholds": curve.thresholds,
                "hits": curve.hits,
                "alarms": curve.alarms,
            }
            for curve in self.scores
        ]

    @property
    def best_thresholds(self) -> Sequence[tuple[str, float, float]]:
        """Metrics with the threshold that is best by it, and its value there."""
        calibration = self.archive.calibration if self.archive is not None else None
        thresholds = calibration.thresholds if calibration is not None else {}
        return [(name, threshold.probability, threshold.value) for name, threshold in thresholds.items()]

    @property
    def trials(self) -> Sequence[Trial]:
        """Trials of a search, the members of the ensemble first."""
        all_trials = self.archive.trials if self.archive is not None else ()
        return sorted(all_trials, key=lambda trial: (-trial.weight, trial.number))

    @property
    def widths_differ(self) -> bool:
        """True if the intervals of predicted numbers have different widths."""
        residuals = self.archive.residuals if self.archive is not None else None
        return residuals is not None and residuals.scaled is not None

    @property
    def margins(self) -> Sequence[tuple[float, float]]:
        """Coverage and half the width of the intervals of a predicted number, of the median row if widths differ."""
        residuals = self.archive.residuals if self.archive is not None else None
        pairs = [(share, residuals.interval(share)) for share in COVERAGES] if residuals is not None else []
        return [(coverage, interval[0]) for coverage, interval in pairs if interval is not None]


def view(model: ModelDetails) -> ModelView:
    """Derive what the page of the model shows."""
    archive = model.archive
    if archive is None:
        return ModelView(model, (), 0, "", (), (), ())
    kind, count = measured_rows(archive)
    return ModelView(
        model,
        _metrics(archive),
        count,
        kind,
        [(title, lines, name_axis(axis, [archive])) for title, lines, axis in curves(archive)],
        list(_columns(archive)),
        warnings(archive, model.version.name),
    )


def _metrics(archive: Archive) -> list[MetricView]:
    values, all_intervals = archive.metrics, intervals(archive)
    ordered = dict.fromkeys((*archive.spec.metrics, *values, "loss"))
    names = [name for name in ordered if name != "loss"]
    return [
        MetricView(name, values[name], all_intervals.get(name)) for name in (*names, "loss") if name in values
    ]


def curves(archive: Archive) -> Iterator[tuple[str, Series, str]]:
    """Yield the losses, then each metric of the validation rows."""
    curve = archive.curve
    axis = "epoch" if len({row.get("epoch") for row in curve}) == len(curve) else "step"
    losses = {"training loss": line(curve, axis, "loss")}
    losses["validation loss"] = line(curve, axis, "validation_loss")
    yield "Loss", losses, axis
    names = dict.fromkeys((*archive.spec.metrics, *(name for row in curve for name in row)))
    for name in names:
        if name not in _CLOCK and (points := line(curve, axis, name)):
            yield name, {f"validation {name}": points}, axis


def name_axis(axis: str, archives: Sequence[Archive]) -> str:
    """Name the horizontal axis of the curves of models: an epoch of trees is a round."""
    of_trees = {archive.spec.framework in TREES for archive in archives} == {True}
    return "round" if of_trees and axis == "epoch" else axis


def line(curve: Sequence[Figures], axis: str, name: str) -> list[tuple[float, float | None]]:
    """Return the points of a figure over the epochs or steps."""
    return [(row.get(axis) or 0.0, row[name]) for row in curve if row.get(name) is not None]


def _columns(archive: Archive) -> Iterator[ColumnView]:
    """Yield the label, then the columns of the query in their order."""
    spec, fitting = archive.spec, archive.fitting
    summaries = fitting.columns if fitting is not None else {}
    without = {name: why for names, why in left_out(archive) for name in names.split(", ")}
    fields = words.column_types(spec.query)
    labels = {one_label.column: words.label(one_label) for one_label in each_label(spec.label)}
    for name in sorted(fields, key=lambda name: name not in labels):
        features = [
            _describe_feature(feature, fields) for feature in spec.features if name in source_columns(feature)
        ]
        is_label = name in labels
        shown = [labels[name]] if is_label else features
        summary = summaries.get(name)
        yield ColumnView(name, fields[name], shown, summary, without.get(name, ""), is_label)


def _describe_feature(feature: Feature, types: words.Types) -> str:
    """Describe a feature, with its expression if it has one."""
    computed = any(isinstance(source, Computed) for source in sources(feature))
    described = words.feature(feature, types)
    return f"{words.columns(feature)}: {described}" if computed else described


def render_report(model: ModelDetails) -> str:
    """Render `sqlflow report`: a version of a model as one static page, without references to anything else."""
    return render("report", view=view(model), style=asset("page.css"), script=asset("page.js"))
