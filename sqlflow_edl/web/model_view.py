"""Parts of the page of a model, derived from what the registry has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from edl.jobs.trials import Trial
from edl.models.archive import Archive, Figures
from edl.models.fitting import ColumnSummary, Histogram
from edl.spec import ClassLabel, Computed, Feature, ScoreCurve, each_label, source_columns, sources
from sqlflow_edl.reports import text as words
from sqlflow_edl.reports.description import left_out, warnings
from sqlflow_edl.reports.intervals import Interval, intervals, measured_rows
from sqlflow_edl.reports.verdict import verdict
from sqlflow_edl.web.model_reader import Model

COVERAGES = (0.5, 0.8, 0.9, 0.95)  # of the intervals of a predicted number
FEW_VALUES = 10  # of a column whose frequent values are shown
_CLOCK = ("epoch", "step", "seconds", "loss", "validation_loss")

Series = Mapping[str, Sequence[tuple[float, float | None]]]


@dataclass(frozen=True)
class Metric:
    name: str
    value: float | None
    interval: Interval | None


@dataclass(frozen=True)
class Column:
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
        """Histogram of numbers, unless they have few values, whose frequencies tell more."""
        found = self.summary
        if found is None or (found.top and found.distinct is not None and found.distinct <= FEW_VALUES):
            return None
        return found.histogram


@dataclass(frozen=True)
class ModelView:
    """Contents of the page of a model besides the sections of its description.

    measured_rows, row_kind: of the metrics, scores and errors: test, validation or training rows.
    """

    model: Model
    metrics: Sequence[Metric]
    measured_rows: int
    row_kind: str
    curves: Sequence[tuple[str, Series, str]]  # title, lines, name of the horizontal axis
    columns: Sequence[Column]
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
        return tuple(map(words.value, label.classes)) if isinstance(label, ClassLabel) else ()

    @property
    def confusion(self) -> tuple[tuple[float, ...], ...]:
        found = self.archive.calibration if self.archive is not None else None
        matrix = found.confusion if found is not None else ()
        return matrix if len(matrix) == len(self.classes) == len(next(iter(matrix), ())) else ()

    @property
    def scores(self) -> tuple[ScoreCurve, ...]:
        """Curves that have rows on both sides."""
        found = self.archive.calibration if self.archive is not None else None
        known = found.curves if found is not None else ()
        count = len(self.classes)
        return tuple(each for each in known if each.inside and each.outside and each.position < count)

    @property
    def score_data(self) -> list[dict[str, object]]:
        """Curves for the script of the page: names, weights of rows, and points."""
        return [
            {
                "name": self.classes[each.position],
                "inside": each.inside,
                "outside": each.outside,
                "thresholds": each.thresholds,
                "hits": each.hits,
                "alarms": each.alarms,
            }
            for each in self.scores
        ]

    @property
    def best_thresholds(self) -> Sequence[tuple[str, float, float]]:
        """Metrics with the threshold that is best by it, and its value there."""
        found = self.archive.calibration if self.archive is not None else None
        known = found.thresholds if found is not None else {}
        return [(name, each.probability, each.value) for name, each in known.items()]

    @property
    def trials(self) -> Sequence[Trial]:
        """Trials of a search, the members of the ensemble first."""
        known = self.archive.trials if self.archive is not None else ()
        return sorted(known, key=lambda trial: (-trial.weight, trial.number))

    @property
    def margins(self) -> Sequence[tuple[float, float]]:
        """Coverage and half the width of the intervals of a predicted number."""
        found = self.archive.residuals if self.archive is not None else None
        pairs = [(each, found.margin(each)) for each in COVERAGES] if found is not None else []
        return [(coverage, margin) for coverage, margin in pairs if margin is not None]


def view(model: Model) -> ModelView:
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
        list(curves(archive)),
        list(_columns(archive)),
        warnings(archive, model.version.name),
    )


def _metrics(archive: Archive) -> list[Metric]:
    found, known = archive.metrics, intervals(archive)
    ordered = dict.fromkeys((*archive.spec.metrics, *found, "loss"))
    names = [name for name in ordered if name != "loss"]
    return [Metric(name, found[name], known.get(name)) for name in (*names, "loss") if name in found]


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


def line(curve: Sequence[Figures], axis: str, name: str) -> list[tuple[float, float | None]]:
    """Return the points of a figure over the epochs or steps."""
    return [(row.get(axis) or 0.0, row[name]) for row in curve if row.get(name) is not None]


def _columns(archive: Archive) -> Iterator[Column]:
    """Yield the label, then the columns of the query in their order."""
    spec, fitting = archive.spec, archive.fitting
    summaries = fitting.columns if fitting is not None else {}
    without = {name: why for names, why in left_out(archive) for name in names.split(", ")}
    fields = words.column_types(spec.query)
    labels = {each.column: words.label(each) for each in each_label(spec.label)}
    for name in sorted(fields, key=lambda name: name not in labels):
        features = [_described(each, fields) for each in spec.features if name in source_columns(each)]
        is_label = name in labels
        shown = [labels[name]] if is_label else features
        summary = summaries.get(name)
        yield Column(name, fields[name], shown, summary, without.get(name, ""), is_label)


def _described(feature: Feature, types: words.Types) -> str:
    """Describe a feature, with its expression if it has one."""
    computed = any(isinstance(source, Computed) for source in sources(feature))
    described = words.feature(feature, types)
    return f"{words.columns(feature)}: {described}" if computed else described
