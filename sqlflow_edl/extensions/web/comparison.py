"""Versions of models, or jobs, side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlflow_edl.backends.report import facts
from sqlflow_edl.extensions.web.job_reader import JobView
from sqlflow_edl.extensions.web.model_reader import ModelDetails
from sqlflow_edl.extensions.web.model_view import Series, curves, line, name_axis
from sqlflow_edl.extensions.web.rendering import path_of
from sqlflow_edl.reports.text import number

SIDE_BY_SIDE = ("validation", "test", "metrics", "model", "training", "calibration", "features", "lineage")
_NOT_COMPARED = ("name", "statement", "data digest", "schema digest", "started", "created", "job", "note")

Sections = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class Comparison:
    """Things side by side. heads: the name and the path of each. sections: each with names, a value for each thing, and
    True if they differ. difference: of the statements of the first two.
    """

    heads: Sequence[tuple[str, str]]
    sections: Sequence[tuple[str, Sequence[tuple[str, Sequence[str], bool]]]]
    losses: Series
    axis: str
    difference: Sequence[str]


def compare_models(models: Sequence[ModelDetails]) -> Comparison:
    """Compare versions of one or several models."""
    archives = [model.archive for model in models if model.archive is not None]
    axes = [next(curves(archive))[2] for archive in archives]
    axis = "step" if "step" in axes else "epoch"
    return Comparison(
        [(one_model.version.reference, path_of(one_model.version.reference)) for one_model in models],
        _sections([one_model.sections for one_model in models], SIDE_BY_SIDE),
        {one_model.version.reference: _losses(one_model, axis) for one_model in models},
        name_axis(axis, archives),
        _difference([one_model.version.record.statement for one_model in models]),
    )


def compare_jobs(jobs: Sequence[JobView]) -> Comparison:
    """Compare jobs: their metrics, their facts and their curves."""
    reports = [job.report for job in jobs]
    sections = [
        {
            "metrics": [(name, number(value)) for name, value in job.figures.items()],
            "job": facts(job.report),
            "trials": [(f"{trial.number} {trial.name}", number(trial.value)) for trial in job.trials],
        }
        for job in jobs
    ]
    losses = {}
    for job in jobs:
        ends = [row for row in job.curve if row.final]
        held = any(row.metrics.get("loss") is not None for row in ends)
        losses[job.report.id[-6:]] = [  # as the list names it: whole ids have no room
            (float(row.epoch), row.metrics.get("loss") if held else row.loss) for row in ends
        ]
    return Comparison(
        [(report.id, f"/jobs/{quote(report.id, safe='')}") for report in reports],
        _sections(sections, ("metrics", "job", "trials")),
        losses,
        "epoch",
        _difference([report.statement for report in reports]),
    )


def _sections(
    things: Sequence[Sections], names: Sequence[str]
) -> list[tuple[str, Sequence[tuple[str, Sequence[str], bool]]]]:
    all_rows = [(section, list(_rows([thing.get(section, ()) for thing in things]))) for section in names]
    return [(section, rows) for section, rows in all_rows if rows]


def _rows(things: Sequence[Sequence[tuple[str, str]]]) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Yield the facts of a section; a column may have several features."""
    columns = []
    for rows in things:
        values_by_name: dict[str, str] = {}
        for name, value in rows:
            values_by_name[name] = f"{values_by_name[name]}; {value}" if name in values_by_name else value
        columns.append(values_by_name)
    for name in dict.fromkeys(name for values_by_name in columns for name in values_by_name):
        if name not in _NOT_COMPARED:
            values = [values_by_name.get(name, "") for values_by_name in columns]
            yield name, values, len(set(values)) > 1


def _losses(model: ModelDetails, axis: str) -> list[tuple[float, float | None]]:
    curve = model.archive.curve if model.archive is not None else ()
    return line(curve, axis, "validation_loss") or line(curve, axis, "loss")


def _difference(statements: Sequence[str]) -> list[str]:
    if len(statements) < 2:
        return []
    before, after = (statement.splitlines() for statement in statements[:2])
    return list(difflib.unified_diff(before, after, lineterm="", n=100))[2:]
