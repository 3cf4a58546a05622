"""Creation of a trained model's archive."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import msgspec
import pyarrow as pa

from edl.data import Pinned
from edl.data.pinned import read_pinned
from edl.features import Features, Inputs, Target
from edl.installation import VERSION
from edl.jobs.events import EpochEnd, Figures
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.archive import Lineage, program_files, write_archive
from edl.models.fitting import Fitting, read_fitting
from edl.models.weights import Weights
from edl.program import Program
from edl.spec import TREES, JobSpec, ReductionLabel, Rows
from edl.spec.job import COMPONENTS

_PACKAGES = {
    "keras": ("keras", "tensorflow-cpu", "tensorflow"),
    "torch": ("torch",),
    "lightgbm": ("lightgbm",),
    "xgboost": ("xgboost", "xgboost-cpu"),
    "onnx": ("onnxruntime",),
}


def save(
    path: Path,
    program: Program,
    pinned: Pinned,
    rows: Rows,
    weights: Weights,
    outcome: Outcome,
    started: datetime,
    fitting: Fitting | None = None,
    background: pa.RecordBatch | None = None,
) -> None:
    """Write the archive of a trained model."""
    spec, weights = keep_components(trained_spec(program, rows), weights)
    write_archive(
        path,
        spec=spec,
        program=program_files(program.folder),
        weights=weights,
        metrics=outcome.figures,
        curve=[curve_row(end) for end in outcome.curve],
        lineage=_lineage(spec, pinned, outcome, started),
        fitting=fitting if not program.edited else None,
        trials=outcome.trials,
        uncertainty=outcome.uncertainty,
        importances=outcome.importances or None,
        fold_values=outcome.fold_values or None,
        background=background,
    )


def save_transform(job: JobFolder, spec: JobSpec, pinned: Pinned) -> Outcome:
    """Write the archive of a transform. It has fitted features and no weights. Return its outcome."""
    started = datetime.fromisoformat(job.status().started)
    outcome = Outcome(
        "train", spec.rows.training, (datetime.now(UTC) - started).total_seconds(), archive=job.archive.name
    )
    write_archive(
        job.archive,
        spec=spec,
        program={},
        weights={},
        metrics={},
        curve=(),
        lineage=_lineage(spec, pinned, outcome, started),
        fitting=read_fitting(job.rows),
    )
    return outcome


def save_checkpoint(
    path: Path, job: JobFolder, program: Program, weights: Weights, step: int, epoch: int
) -> None:
    """Write the archive of a model from the weights of a checkpoint, without figures of the training."""
    started = datetime.fromisoformat(job.status().started)
    stopped = f"a checkpoint at step {step:,}"
    of_trees = program.spec.framework in TREES
    outcome = Outcome(
        "train",
        program.spec.rows.training,
        0.0,
        epochs=max(0, epoch - 1),
        by_rounds=of_trees,
        stopped=stopped,
    )
    rows, fitting = program.spec.rows, read_fitting(job.rows)
    save(path, program, read_pinned(job.rows), rows, weights, outcome, started, fitting)


def trained_spec(program: Program, rows: Rows) -> JobSpec:
    """Return the JobSpec of the training.

    For an edited program it has the features and label that the program defines.
    """
    spec = msgspec.structs.replace(program.spec, rows=rows, edited=program.edited)
    if not program.edited:
        return spec
    features, label = (program.module.__dict__.get(name) for name in ("FEATURES", "LABEL"))
    if isinstance(features, Inputs):
        inputs = {name: features[name].columns for name in features}
        spec = msgspec.structs.replace(spec, inputs=inputs)
    elif isinstance(features, Features):
        spec = msgspec.structs.replace(spec, inputs={next(iter(spec.inputs), "features"): features.columns})
    return msgspec.structs.replace(spec, label=label.spec) if isinstance(label, Target) else spec


def keep_components(spec: JobSpec, weights: Weights) -> tuple[JobSpec, Weights]:
    """Return a reduction with the numbers alone that the wanted share of the variance needs; other models as they are.

    The training counts them, so that its own program has room for all.
    """
    if spec.optimizer.name != COMPONENTS or not isinstance(weights, Mapping):
        return spec, weights
    kept = next(int(array[0]) for name, array in weights.items() if name.endswith(".kept"))
    if kept == spec.label.dimensions:
        return spec, weights
    cut = {
        name: array[:kept] if name.endswith((".components.weight", ".variances")) else array
        for name, array in weights.items()
    }
    return msgspec.structs.replace(
        spec,
        model=msgspec.structs.replace(spec.model, params={**spec.model.params, "num_components": kept}),
        label=ReductionLabel(kept, spec.label.column),
    ), cut


def curve_row(end: EpochEnd) -> Figures:
    """Return an epoch as a row of figures: `loss` of training, `validation_loss`, and the validation metrics."""
    validation = {
        ("validation_loss" if name == "loss" else name): value for name, value in end.metrics.items()
    }
    return {
        **validation,
        "epoch": float(end.epoch),
        "step": float(end.step),
        "seconds": end.seconds,
        "loss": end.loss,
    }


def _lineage(spec: JobSpec, pinned: Pinned, outcome: Outcome, started: datetime) -> Lineage:
    return Lineage(
        statement=spec.statement,
        rows=pinned.rows,
        training_rows=spec.rows.training,
        data_digest=pinned.digest,
        schema_digest=hashlib.sha256(msgspec.json.encode(pinned.schema)).hexdigest(),
        seed=spec.training.seed,
        versions=_versions(_packages(spec)),
        started=started.isoformat(timespec="seconds"),
        seconds=outcome.seconds,
        ending=outcome.ending,
        parent=spec.trained_model,
    )


def _packages(spec: JobSpec) -> list[str]:
    frameworks = dict.fromkeys(
        one_spec.framework for one_spec in (spec, *(member.spec for member in spec.members))
    )
    return [package for framework in frameworks for package in _PACKAGES.get(framework, ())]


def _versions(packages: Sequence[str]) -> dict[str, str]:
    versions = {"edl": VERSION, "python": platform.python_version()}
    for package in ("numpy", "pyarrow", *packages):
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # some have two package names
            continue
    return versions
