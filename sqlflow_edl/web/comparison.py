"""Versions of models, or jobs, side by side."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

from sqlflow_edl.backends.report import facts
from sqlflow_edl.reports.text import number
from sqlflow_edl.web.job_reader import Job
from sqlflow_edl.web.model_reader import Model
from sqlflow_edl.web.model_view import Series, curves, line
from sqlflow_edl.web.rendering import path_of

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


def compare_models(models: Sequence[Model]) -> Comparison:
    """Compare versions of one or several models."""
    axes = [next(curves(model.archive))[2] for model in models if model.archive is not None]
    axis = "step" if "step" in axes else "epoch"
    return Comparison(
        [(each.version.reference, path_of(each.version.reference)) for each in models],
        _sections([each.sections for each in models], SIDE_BY_SIDE),
        {each.version.reference: _losses(each, axis) for each in models},
        axis,
        _difference([each.version.record.statement for each in models]),
    )


def compare_jobs(jobs: Sequence[Job]) -> Comparison:
    """Compare jobs: their metrics, their facts and their curves."""
    reports = [each.report for each in jobs]
    sections = [
        {
            "metrics": [(name, number(value)) for name, value in each.figures.items()],
            "job": facts(each.report),
            "trials": [(f"{trial.number} {trial.name}", number(trial.value)) for trial in each.trials],
        }
        for each in jobs
    ]
    losses = {}
    for each in jobs:
        ends = [row for row in each.curve if row.final]
        held = any(row.metrics.get("loss") is not None for row in ends)
        losses[each.report.id[-6:]] = [  # as the list names it: whole ids have no room
            (float(row.epoch), row.metrics.get("loss") if held else row.loss) for row in ends
        ]
    return Comparison(
        [(each.id, f"/jobs/{quote(each.id, safe='')}") for each in reports],
        _sections(sections, ("metrics", "job", "trials")),
        losses,
        "epoch",
        _difference([each.statement for each in reports]),
    )


def _sections(
    things: Sequence[Sections], names: Sequence[str]
) -> list[tuple[str, Sequence[tuple[str, Sequence[str], bool]]]]:
    found = [(section, list(_rows([each.get(section, ()) for each in things]))) for section in names]
    return [(section, rows) for section, rows in found if rows]


def _rows(things: Sequence[Sequence[tuple[str, str]]]) -> Iterator[tuple[str, Sequence[str], bool]]:
    """Yield the facts of a section; a column may have several features."""
    found = []
    for rows in things:
        known: dict[str, str] = {}
        for name, value in rows:
            known[name] = f"{known[name]}; {value}" if name in known else value
        found.append(known)
    for name in dict.fromkeys(name for known in found for name in known):
        if name not in _NOT_COMPARED:
            values = [known.get(name, "") for known in found]
            yield name, values, len(set(values)) > 1


def _losses(model: Model, axis: str) -> list[tuple[float, float | None]]:
    curve = model.archive.curve if model.archive is not None else ()
    return line(curve, axis, "validation_loss") or line(curve, axis, "loss")


def _difference(statements: Sequence[str]) -> list[str]:
    if len(statements) < 2:
        return []
    before, after = (each.splitlines() for each in statements[:2])
    return list(difflib.unified_diff(before, after, lineterm="", n=100))[2:]
