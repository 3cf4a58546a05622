"""Statements about stored models: SHOW MODELS, SHOW TRAIN, SHOW CURVE, SHOW TRIALS, DESCRIBE MODEL,
SET MODEL and DROP MODEL, with a version or a tag.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from edl.errors import SemanticError
from edl.extension_loader import defer
from edl.models.archive import Archive, read_archive
from edl.models.registry.base import Registry
from edl.models.registry.records import ModelVersion, split_reference
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.reports import curve, table, text
from sqlflow_edl.reports.description import describe
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax.ast import Attribute, Constant, Name, Statement
from sqlflow_edl.syntax.kinds import Kind

if TYPE_CHECKING:
    pass

OF_BIGQUERY = "sqlflow_edl.extensions.bigquery_ml.model_reports"
KEY_METRICS = 3  # metrics that SHOW MODELS has room for


def show_models(registry: Registry, statement: Statement) -> Result:
    """Return a row per version, with the reason of a failure. SHOW MODELS LIKE 'p%' restricts the names."""
    import pyarrow as pa

    columns = {
        "name": pa.string(),
        "version": pa.int32(),
        "state": pa.string(),
        "current": pa.bool_(),
        "tags": pa.string(),
        "model": pa.string(),
        "framework": pa.string(),
        "rows": pa.int64(),
        "metrics": pa.string(),
        "created": pa.timestamp("s"),  # UTC
        "size": pa.int64(),  # bytes
        "reason": pa.string(),
    }
    return Result(
        statement,
        reader=table.make_typed_reader(columns, map(_row, registry.list(statement.like))),
        view="models",
    )


def _row(version: ModelVersion) -> tuple[object, ...]:
    record = version.record
    ready = version.state == "ready"
    return (
        version.name,
        version.version,
        version.state,
        version.current,
        ", ".join(version.tags) or None,
        record.model,
        record.framework,
        record.rows,
        _key_metrics(record.metrics),
        datetime.fromisoformat(version.created).astimezone(UTC).replace(microsecond=0, tzinfo=None),
        version.archive_bytes if ready else None,
        None if ready else version.reason,
    )


def _key_metrics(figures: Mapping[str, float | None]) -> str | None:
    """Format the first metrics, or the loss if there are none."""
    metrics = {name: value for name, value in figures.items() if name != "loss"} or figures
    return text.format_figures(dict(list(metrics.items())[:KEY_METRICS])) or None


def show_train(registry: Registry, statement: Statement) -> Result:
    """Return the statement that trained the model, as it was written; also for a failed training."""
    version = _find_version(registry, statement)
    rows = [(version.reference, version.record.statement)]
    return Result(statement, reader=table.texts(("model", "statement"), rows))


def describe_model(registry: Registry, statement: Statement) -> Result:
    """Return all facts about a version, as section, name and value."""
    version = _find_version(registry, statement)
    if version.state != "ready":
        rows = describe(version, None, registry.facts(version.name))
    else:
        with open_archive(registry, statement, version.reference) as archive:
            rows = describe(version, archive, registry.facts(version.name))
    return Result(statement, reader=table.texts(("section", "name", "value"), rows), view="sections")


def show_curve(registry: Registry, statement: Statement) -> Result:
    """Return a row for each measurement of the training: epoch, step, seconds, the losses and the metrics."""
    import pyarrow as pa

    archive = read_model(registry, statement)
    names = curve.columns(archive.curve, archive.spec.metrics) or (*curve.CLOCK, "loss")
    types = {name: pa.int64() if name in curve.WHOLE else pa.float64() for name in names}
    reader = table.make_typed_reader(types, curve.rows(archive.curve, names))
    return Result(statement, reader=reader, view="figures", computed=names)


def show_trials(registry: Registry, statement: Statement) -> Result:
    """Return a row for each trial of the search that found the model, the best first."""
    import pyarrow as pa

    archive = read_model(registry, statement)
    if not archive.trials:
        return Result(statement, message=f"{statement.model} was not found by a search: it has no trials")
    names = tuple(dict.fromkeys(name for trial in archive.trials for name in trial.figures))
    columns = {
        "trial": pa.int32(),
        "model": pa.string(),
        "weight": pa.float64(),
        **dict.fromkeys(names, pa.float64()),
        "epochs": pa.int32(),
        "refit": pa.int32(),
        "seconds": pa.float64(),
        "rows_per_second": pa.float64(),
        "ending": pa.string(),
        "error": pa.string(),
        "statement": pa.string(),
    }
    rows = (
        (
            trial.number,
            trial.name,
            trial.weight,
            *map(trial.figures.get, names),
            trial.epochs or None,
            trial.refit or None,
            trial.seconds,
            trial.rows_per_second or None,
            trial.ending or None,
            trial.error or None,
            trial.statement,
        )
        for trial in sorted(archive.trials, key=lambda trial: (-trial.weight, trial.number))
    )
    return Result(
        statement,
        reader=table.make_typed_reader(columns, rows),
        computed=("weight", "seconds", "rows_per_second", *names),
    )


def set_model(registry: Registry, statement: Statement) -> Result:
    """Make a version the current one of its name."""
    reference = str(statement.model)
    with _at_model(statement):
        before = registry.look_up(split_reference(reference)[0])
        active = registry.activate(reference)
    if before.version == active.version:
        message = f"{active.reference} is current already"
    else:
        message = f"{active.reference} is current, {before.reference} no longer"
    return Result(statement, message=message)


def set_tag(registry: Registry, statement: Statement) -> Result:
    """Make a tag mean a version."""
    with _at_model(statement):
        before = registry.tag(str(statement.model), statement.tag)
        after = registry.find(f"{split_reference(str(statement.model))[0]}@{statement.tag}")
    moved = (
        f", no longer {before.reference}" if before is not None and before.version != after.version else ""
    )
    return Result(statement, message=f"{after.name}@{statement.tag} is {after.reference}{moved}")


def drop_tag(registry: Registry, statement: Statement) -> Result:
    """Remove a tag; its version stays."""
    with _at_model(statement):
        version = registry.untag(str(statement.model), statement.tag)
    return Result(statement, message=f"dropped the tag {statement.tag} of {version.reference}, which stays")


def rename_model(registry: Registry, statement: Statement) -> Result:
    """Give a model another name, with all its versions and tags."""
    name, new_name = str(statement.model), statement.into[0]
    if statement.if_exists and not registry.has(name):
        return Result(statement, message=f"there is no model {name}; nothing is renamed")
    with _at_model(statement):
        registry.look_up(name)
    with set_missing_spans(new_name.span):
        count = registry.rename(name, str(new_name))
    return Result(
        statement, message=f"{name} is named {new_name}, {count:,} version{'' if count == 1 else 's'}"
    )


def set_facts(registry: Registry, statement: Statement) -> Result:
    """Keep facts for people with a model: its description, labels and the time of its expiration."""
    name = str(statement.model)
    if statement.if_exists and not registry.has(name):
        return Result(statement, message=f"there is no model {name}; nothing is changed")
    facts = read_facts(statement.attributes)
    with _at_model(statement):
        registry.describe(name, facts)
    kept, removed = [key for key in facts if facts[key]], [key for key in facts if not facts[key]]
    parts = [f"keeps its {', '.join(kept)}"] * bool(kept) + [f"has no {', '.join(removed)} any more"] * bool(
        removed
    )
    return Result(statement, message=f"{name} {' and '.join(parts)}")


def read_facts(options: Iterable[Attribute]) -> dict[str, str]:
    """Return facts for people by name; an empty text removes one."""
    values = {option.key: option.value for option in options}
    return {
        key: value.value if isinstance(value, Constant) and isinstance(value.value, str) else ""
        for key, value in values.items()
    }


def drop_model(registry: Registry, statement: Statement) -> Result:
    """Drop a model with all its versions, or one of them."""
    reference = str(statement.model)
    if statement.if_exists and not registry.has(reference):
        return Result(statement, message=f"there is no model {reference}; nothing is dropped")
    name, selector = split_reference(reference)
    with _at_model(statement):
        dropped = registry.look_up(reference).reference
        count = registry.drop(reference)
    if selector is None:
        what = f"dropped {name}, {count:,} version{'' if count == 1 else 's'}"
    else:
        what = f"dropped {dropped}"
        if registry.has(name) and (left := registry.look_up(name)).current:
            what += f"; {left.reference} is current"
    return Result(statement, message=what)


def find_present(registry: Registry, statement: Statement) -> str:
    """Return the model that makes CREATE MODEL IF NOT EXISTS needless as name@version; empty for other statements."""
    if not statement.if_absent:
        return ""
    try:
        return registry.find(str(statement.into[0])).reference
    except SemanticError:  # there is none, or its training failed
        return ""


def read_model(registry: Registry, statement: Statement) -> Archive:
    """Read the archive of the statement's model, without its weights."""
    with open_archive(registry, statement, str(statement.model)) as archive:
        return archive


@contextmanager
def open_archive(registry: Registry, of: Statement | Name, reference: str) -> Iterator[Archive]:
    """Open the archive of the statement's model, or of a name, from which weights can be read."""
    place = set_missing_spans(of.span) if isinstance(of, Name) else _at_model(of)
    with place, registry.fetch(reference) as (_, file):
        yield read_archive(file)


def _find_version(registry: Registry, statement: Statement) -> ModelVersion:
    with _at_model(statement):
        return registry.look_up(str(statement.model))


def _at_model(statement: Statement) -> AbstractContextManager[None]:
    return set_missing_spans(statement.model.span if statement.model else None)


HANDLERS: Mapping[Kind, Callable[[Registry, Statement], Result]] = {
    "import_model": defer("sqlflow_edl.extensions.imported", "import_model"),
    "export_model": defer("sqlflow_edl.extensions.bigquery_ml.export_model", "export_model"),
    "show_models": show_models,
    "show_train": show_train,
    "show_curve": show_curve,
    "show_trials": show_trials,
    # functions of BigQuery ML
    "show_metrics": defer(OF_BIGQUERY, "show_metrics"),
    "show_importances": defer(OF_BIGQUERY, "show_importances"),
    "show_columns": defer(OF_BIGQUERY, "show_columns"),
    "show_weights": defer(OF_BIGQUERY, "show_weights"),
    "show_centroids": defer(OF_BIGQUERY, "show_centroids"),
    "show_confusion": defer(OF_BIGQUERY, "show_confusion"),
    "show_roc_curve": defer(OF_BIGQUERY, "show_roc_curve"),
    "describe_model": describe_model,
    "set_model": set_model,
    "set_tag": set_tag,
    "rename_model": rename_model,
    "set_facts": set_facts,
    "drop_model": drop_model,
    "drop_tag": drop_tag,
}
