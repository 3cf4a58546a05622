"""Initial weights of a job: a model's archive, a safetensors file, or a checkpoint of a job.

A checkpoint is a folder, written by parameter servers or by a trainer; of a folder with several, the newest is used.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from edl.arrays import Array
from edl.checkpoints import POSITION, trainer
from edl.checkpoints.folder import SharedFolder
from edl.errors import JobError, SpecError
from edl.jobs.job_folder import JobFolder
from edl.models import weights as weight_files
from edl.models.archive import read_archive
from edl.ps.checkpoint import manifests
from edl.spec import TREES, JobSpec

if TYPE_CHECKING:
    import pyarrow as pa


def is_archive(path: Path) -> bool:
    """Return True if the path names an archive. An archive holds more than weights."""
    return path.suffix != ".safetensors" and not path.is_dir()


def trained_weights(path: Path | None) -> Mapping[str, Array]:
    """Read the weights. Raises JobError if there are none, SpecError if they cannot be read."""
    if path is None:
        raise JobError("a model's weights are required, but none were given")
    if is_archive(path):
        return read_archive(path).weights()
    if path.is_dir():
        return _of_checkpoint(_find_newest(path))
    try:
        return weight_files.loads(path.read_bytes())
    except OSError as error:
        raise SpecError(f"cannot read {path}: {error.strerror}") from None


def trained_temperature(path: Path) -> float:
    """Return the temperature by which the model of an archive was calibrated, 1 without one."""
    calibration = read_archive(path).calibration if is_archive(path) else None
    return 1.0 if calibration is None else calibration.temperature


def trained_threshold(path: Path) -> float | None:
    """Return the least probability of the second of two classes that the training chose or wrote, or None."""
    return read_archive(path).threshold if is_archive(path) else None


def trained_background(path: Path | None, spec: JobSpec) -> pa.RecordBatch | None:
    """Read the background rows of a model for a job that explains rows by them; None for others, and without any."""
    compares = spec.kind == "explain" and spec.explanation is not None and not spec.explanation.background
    if not compares or spec.framework in TREES or path is None or not is_archive(path):
        return None
    return read_archive(path).background()


def take(job: JobFolder, path: Path) -> None:
    """Copy the weights to the path that workers read them from."""
    if path.is_dir():
        weight_files.save(trained_weights(path), job.weights)
    else:
        shutil.copyfile(path, job.model if is_archive(path) else job.weights)


def find_copied_weights(job: JobFolder) -> Path | None:
    """Return the path of the copied weights, or None if there are none."""
    return next((path for path in (job.model, job.weights) if path.exists()), None)


def _find_newest(folder: Path) -> Path:
    """Return the folder if it is a checkpoint, or the newest checkpoint in it. Raises SpecError if there is none."""
    if (folder / manifests.MANIFEST).exists() or (folder / POSITION).exists():
        return folder
    names = manifests.complete(folder) or trainer.complete(SharedFolder(folder))
    if not names:
        raise SpecError(
            f"{folder} is not a checkpoint, and contains no complete one",
            hint="a running job stores its checkpoints in the folder checkpoints of its job folder",
        )
    # Earlier trainers may have left checkpoints of later steps.
    last = manifests.MANIFEST if (folder / names[-1] / manifests.MANIFEST).exists() else POSITION
    return max((folder / name for name in names), key=lambda path: (path / last).stat().st_mtime_ns)


def _of_checkpoint(folder: Path) -> Mapping[str, Array]:
    if (folder / manifests.MANIFEST).exists():
        return manifests.read_weights(folder)
    return trainer.read_checkpoint(folder).weights
