"""Lineage: other systems are told of the statements that train and use models, through one interface.

A tracker is told when a statement begins and how it ends. What goes wrong there is a note, and never fails a statement.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeVar

from edl.installation import install_extras
from sqlflow_edl.analysis.programs.outline import Thing, effects
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Statement

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Execution:
    """Statement that runs. source, models: URLs of its data source and of its models, without passwords.

    reads, makes: names of tables. uses, trains: a model, or empty.
    """

    statement: Statement
    dialect: str
    source: str
    models: str
    reads: tuple[str, ...]
    makes: tuple[str, ...]
    uses: str
    trains: str


class Tracker(Protocol):
    """Receiver of the beginning and the end of one statement."""

    def begins(self) -> None:
        """Report that the statement begins."""

    def ends(self, result: Result | None, error: str) -> None:
        """Report the result of the statement; without one, its error."""


@dataclass(frozen=True, slots=True)
class _System:
    """System to tell. variables: prefix of those that configure its client. load: imports what makes a tracker."""

    name: str
    variables: str
    extra: str
    load: Callable[[], Callable[[Execution], Tracker]]
    only_training: bool = False

    def wants(self, statement: Statement) -> bool:
        is_told = statement.trains or not self.only_training
        return is_told and any(name.startswith(self.variables) for name in os.environ)


def _openlineage() -> Callable[[Execution], Tracker]:
    from sqlflow_edl.extensions.lineage.openlineage import OpenLineage

    return OpenLineage


def _mlflow() -> Callable[[Execution], Tracker]:
    from sqlflow_edl.extensions.lineage.mlflow import MLflow

    return MLflow


def _opentelemetry() -> Callable[[Execution], Tracker]:
    from sqlflow_edl.extensions.lineage.opentelemetry import OpenTelemetry

    return OpenTelemetry


_SYSTEMS = (
    _System("OpenLineage", "OPENLINEAGE_", "lineage", _openlineage),
    _System("MLflow", "MLFLOW_TRACKING_URI", "mlflow", _mlflow, only_training=True),
    _System("OpenTelemetry", "OTEL_EXPORTER_OTLP_", "", _opentelemetry),
)


def run_tracked(
    statement: Statement,
    run: Callable[[], Result],
    note: Callable[[str], None],
    *,
    dialect: str,
    source: str,
    models: str,
) -> Result:
    """Run the statement, and tell the trackers that the environment configures. note: receives what goes wrong.

    source, models: as in `Execution`.
    """
    systems = [system for system in _SYSTEMS if system.wants(statement)]
    if not systems:
        return run()
    execution = _execution(statement, dialect, source, models)
    begun = [(system, _begin_tracking(system, execution, note)) for system in systems]
    result, error = None, "interrupted"
    try:
        result = run()
    except Exception as problem:
        error = str(problem)
        raise
    finally:
        for system, tracker in begun:
            if tracker is not None:
                _noting_errors(system, partial(tracker.ends, result, error), note)
    return result


def _execution(statement: Statement, dialect: str, source: str, models: str) -> Execution:
    """Name what the statement reads and makes."""
    statement_effects = effects(statement, dialect)
    trains = [".".join(thing.parts) for thing in statement_effects.makes if thing.kind == "model"]
    return Execution(
        statement,
        dialect,
        source,
        models,
        _tables(statement_effects.uses),
        _tables(statement_effects.makes),
        str(statement.used_model or ""),
        trains[0] if trains else "",
    )


def _tables(things: tuple[Thing, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(".".join(thing.parts) for thing in things if thing.kind == "table"))


def _begin_tracking(system: _System, execution: Execution, note: Callable[[str], None]) -> Tracker | None:
    try:
        make = system.load()
    except ImportError:
        install = install_extras(system.extra)
        note(f"{system.name} is configured, and its client is not installed: {install}")
        return None

    def begin() -> Tracker:
        tracker = make(execution)
        tracker.begins()
        return tracker

    return _noting_errors(system, begin, note)


def _noting_errors(system: _System, call: Callable[[], T], note: Callable[[str], None]) -> T | None:
    try:
        return call()
    except Exception as error:  # of a client, a configuration or a network that are not ours
        note(f"{system.name} was not told: {str(error) or type(error).__name__}")
        return None
