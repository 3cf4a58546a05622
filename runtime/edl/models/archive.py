"""Archive of a trained model: one file.

A zip file of fixed layout, with the same bytes for the same model:

    job.json               the JobSpec: features with their fitted parameters, label, model, training settings
    program/…              model.py, reader.py and vocabulary files, as the job ran them; for reading only
    weights.safetensors    name -> array, stored without compression
    metrics.json           name -> figure, of the validation rows or, without any, of the training rows
    curve.json             the learning curve: a row per epoch, name -> figure
    lineage.json           statement, rows, digests, seed, versions, times
    fitting.json           statistics of the training rows, and the reasons for these features; compiled jobs only
    trials.json            the trials of the search that found the model; searches only
    residuals.json         errors of the validation rows; models of a number that have such rows
    calibration.json       temperature, thresholds, curves and confusion by the validation rows; classifiers that have
                           such rows
    importances.json       importances of the columns; searches only
    folds.json             metric of each fold; searches in folds only
    background.arrow       rows with which EXPLAIN compares others; models that do not explain themselves

Reading trusts nothing: names, sizes and checksums are checked before a member is used, nothing is unpickled and
nothing executed. A damaged or hostile archive is a SpecError.
"""

from __future__ import annotations

import io
import math
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from edl.errors import SpecError
from edl.files import sync
from edl.jobs.trials import Trial, are_refitted
from edl.models import background as background_rows
from edl.models import weights as weight_files
from edl.models.fitting import Fitting
from edl.spec import Calibration, FoldValues, Importances, JobSpec, Residuals, Uncertainty, from_json, to_json

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
Figures = dict[str, float | None]  # None: NaN

FORMAT = b"sqlflow-edl model 1"  # comment of the zip file

_WEIGHTS = "weights.safetensors"
_JSON = ("job.json", "metrics.json", "curve.json", "lineage.json")
_FITTING, _TRIALS = "fitting.json", "trials.json"
_RESIDUALS, _CALIBRATION = "residuals.json", "calibration.json"
_IMPORTANCES, _FOLDS, _BACKGROUND = "importances.json", "folds.json", background_rows.FILE
_OPTIONAL = (_FITTING, _TRIALS, _RESIDUALS, _CALIBRATION, _IMPORTANCES, _FOLDS, _BACKGROUND)
_UNCERTAINTY: Mapping[type, str] = {Residuals: _RESIDUALS, Calibration: _CALIBRATION}
_PROGRAM = re.compile(r"program/([^/\\\0:]+(?:/[^/\\\0:]+)*)")
_EPOCH = (1980, 1, 1, 0, 0, 0)  # time of every member, so that equal models are equal files
_COPY_BYTES = 1 << 20

MAX_MEMBERS = 10_000
MAX_MEMBER_BYTES = 256 << 20  # limit of a compressed member
MAX_EXPANDED_BYTES = 1 << 30  # limit of all members together


class Lineage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Origin of a model. Times are UTC in ISO 8601; `seconds` is the duration of training.

    `ending` is the reason if training stopped early or returned to an earlier epoch. `parent` is the model that its
    initial weights came from, name@version; empty for new weights.
    """

    statement: str
    rows: int
    training_rows: int
    data_digest: str
    schema_digest: str
    seed: int
    versions: dict[str, str]
    started: str
    seconds: float
    ending: str = ""
    parent: str = ""


@dataclass(frozen=True, slots=True)
class Archive:
    """Contents of an archive. Weights and background rows are read on demand."""

    spec: JobSpec
    program: dict[str, bytes]  # path inside the program folder -> contents
    metrics: Figures
    curve: tuple[Figures, ...]
    lineage: Lineage
    fitting: Fitting | None
    trials: tuple[Trial, ...]
    residuals: Residuals | None
    calibration: Calibration | None
    importances: Importances | None
    fold_values: FoldValues | None
    has_background: bool
    _file: Path | bytes

    def weights(self) -> dict[str, np.ndarray]:
        """Read the weights: name -> array. Raises SpecError if they are damaged."""
        with _open_archive(self._file) as archive, archive.open(_WEIGHTS) as member:
            return weight_files.loads(member.read())

    def background(self) -> pa.RecordBatch | None:
        """Read the background rows, None if there are none. Raises SpecError if they are damaged."""
        if not self.has_background:
            return None
        with _open_archive(self._file) as archive:
            return background_rows.from_bytes(archive.read(_BACKGROUND))

    @property
    def learned_rows(self) -> int:
        """Number of rows that the model learned from: all, if the models of a search were trained on them once more."""
        return self.lineage.rows if are_refitted(self.trials) else self.lineage.training_rows

    @property
    def threshold(self) -> float | None:
        """Least probability of the second of two classes that the training wrote, or its validation rows chose."""
        setting = self.spec.training.threshold
        if not isinstance(setting, str):
            return setting
        chosen = self.calibration.thresholds.get(setting) if self.calibration is not None else None
        return None if chosen is None else chosen.probability

    def parameters(self) -> int:
        """Return the number of values in the weights, without reading them. Raises SpecError if they are damaged."""
        with _open_archive(self._file) as archive, archive.open(_WEIGHTS) as member:
            return weight_files.count(member)

    def write_program(self, folder: Path) -> None:
        """Write the program's files into `folder`."""
        for name, contents in self.program.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)


def write_archive(
    path: Path,
    *,
    spec: JobSpec,
    program: Mapping[str, bytes],
    weights: weight_files.Weights,
    metrics: Mapping[str, float | None],
    curve: Sequence[Mapping[str, float | None]],
    lineage: Lineage,
    fitting: Fitting | None = None,
    trials: Sequence[Trial] = (),
    uncertainty: Uncertainty | None = None,
    importances: Importances | None = None,
    fold_values: FoldValues | None = None,
    background: pa.RecordBatch | None = None,
) -> None:
    """Write a model's archive. It appears at `path` once it is complete.

    `program` maps paths inside the program folder to contents, see `program_files`. Raises SpecError for a name or an
    array that an archive cannot hold.
    """
    documents = {
        "job.json": to_json(spec),
        "metrics.json": _json(dict(metrics)),
        "curve.json": _json(list(curve)),
        "lineage.json": _json(lineage),
        **({_FITTING: _json(fitting)} if fitting is not None else {}),
        **({_TRIALS: _json(list(trials))} if trials else {}),
        **({_UNCERTAINTY[type(uncertainty)]: _json(uncertainty)} if uncertainty is not None else {}),
        **({_IMPORTANCES: _in_order(importances)} if importances is not None else {}),
        **({_FOLDS: _json(fold_values)} if fold_values is not None else {}),
        **({_BACKGROUND: background_rows.to_bytes(background)} if background is not None else {}),
    }
    members = documents | {f"program/{name}": program[name] for name in sorted(program)}
    for name in members:
        _check_name(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    # Beside the archive, because the folder for temporary files may be a small RAM disk.
    with TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as folder:
        partial, tensors = Path(folder) / "archive", Path(folder) / _WEIGHTS
        weight_files.save(weights, tensors)
        with zipfile.ZipFile(partial, "w") as archive:
            archive.comment = FORMAT
            for name, contents in members.items():
                archive.writestr(_entry(name, zipfile.ZIP_DEFLATED), contents)
            _store(archive, tensors)
        sync(partial)  # checkpoints are removed when the model is there
        partial.replace(path)
        sync(path.parent)


def read_archive(file: Path | bytes) -> Archive:
    """Read and check an archive. Raises SpecError if it is no archive, is damaged, or has unexpected members."""
    with _open_archive(file) as archive:
        _check(archive)
        program = {
            match[1]: archive.read(name)
            for name in archive.namelist()
            if (match := _PROGRAM.fullmatch(name)) is not None
        }
        names = archive.namelist()
        return Archive(
            spec=from_json(archive.read("job.json")),
            program=program,
            metrics=_parse_entry(archive, "metrics.json", Figures),
            curve=_parse_entry(archive, "curve.json", tuple[Figures, ...]),
            lineage=_parse_entry(archive, "lineage.json", Lineage),
            fitting=_parse_entry(archive, _FITTING, Fitting) if _FITTING in names else None,
            trials=_parse_entry(archive, _TRIALS, tuple[Trial, ...]) if _TRIALS in names else (),
            residuals=_residuals(archive) if _RESIDUALS in names else None,
            calibration=_calibration(archive) if _CALIBRATION in names else None,
            importances=_parse_entry(archive, _IMPORTANCES, Importances) if _IMPORTANCES in names else None,
            fold_values=_parse_entry(archive, _FOLDS, FoldValues) if _FOLDS in names else None,
            has_background=_BACKGROUND in names,
            _file=file,
        )


def program_files(folder: Path) -> dict[str, bytes]:
    """Return the files of a program folder for `write_archive`, without job.json and caches."""
    paths = (path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file())
    return {
        path.as_posix(): (folder / path).read_bytes()
        for path in paths
        if path.as_posix() != "job.json" and not any(part.startswith((".", "__")) for part in path.parts)
    }


# Writing -----------------------------------------------------------------------------------------------------


def _json(value: object) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2) + b"\n"


def _in_order(importances: Importances) -> bytes:
    """Return JSON with the columns in their order, the largest first."""
    return msgspec.json.format(msgspec.json.encode(importances), indent=2) + b"\n"


def _entry(name: str, compression: int) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, date_time=_EPOCH)
    entry.compress_type = compression
    entry.external_attr = 0o644 << 16
    entry.create_system = 3
    return entry


def _store(archive: zipfile.ZipFile, tensors: Path) -> None:
    """Copy the weights into the archive in pieces."""
    entry = _entry(_WEIGHTS, zipfile.ZIP_STORED)
    entry.file_size = tensors.stat().st_size
    with tensors.open("rb") as source, archive.open(entry, "w") as member:
        while piece := source.read(_COPY_BYTES):
            member.write(piece)


# Reading -----------------------------------------------------------------------------------------------------


@contextmanager
def _open_archive(file: Path | bytes) -> Iterator[zipfile.ZipFile]:
    shown = file.name if isinstance(file, Path) else "the archive"
    opened: Path | IO[bytes] = io.BytesIO(file) if isinstance(file, bytes) else file
    try:
        with zipfile.ZipFile(opened) as archive:
            yield archive
    except FileNotFoundError:
        raise SpecError(f"there is no archive {file!s}") from None
    except (
        zipfile.BadZipFile,
        zipfile.LargeZipFile,
        EOFError,
        NotImplementedError,
        OSError,
        ValueError,  # an offset before the file's start
        zlib.error,
    ) as error:
        raise SpecError(f"{shown} is damaged or is not a model archive: {error}") from None


def _check(archive: zipfile.ZipFile) -> None:
    """Raise SpecError if a member is none of `write_archive`'s, or exceeds the limits."""
    if archive.comment != FORMAT:
        raise SpecError("this file is not a model archive of a version that this program reads")
    entries = archive.infolist()
    if len(entries) > MAX_MEMBERS:
        raise SpecError(f"the archive has {len(entries):,} members, more than {MAX_MEMBERS:,}")
    names = [entry.filename for entry in entries]
    if len(set(names)) != len(names):
        raise SpecError("the archive has two members of one name")
    if missing := {*_JSON, _WEIGHTS} - set(names):
        raise SpecError(f"the archive has no {min(missing)}")
    for entry in entries:
        _check_name(entry.filename)
        _check_entry(entry)
    if sum(entry.file_size for entry in entries if entry.filename != _WEIGHTS) > MAX_EXPANDED_BYTES:
        raise SpecError("the archive expands beyond the limit")


def _check_name(name: str) -> None:
    match = _PROGRAM.fullmatch(name)
    if match and not any(part in (".", "..") for part in match[1].split("/")):
        return
    if name not in (*_JSON, *_OPTIONAL, _WEIGHTS):
        raise SpecError(f"an archive cannot have a member named {name!r}")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    if entry.flag_bits & 0x1:
        raise SpecError(f"the archive's member {entry.filename} is encrypted")
    if entry.filename == _WEIGHTS:
        if entry.compress_type != zipfile.ZIP_STORED or entry.file_size != entry.compress_size:
            raise SpecError("the archive's weights are compressed, which is not allowed")
    elif entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise SpecError(f"the archive's member {entry.filename} uses an unsupported compression")
    elif entry.file_size > MAX_MEMBER_BYTES:
        raise SpecError(f"the archive's member {entry.filename} expands to {entry.file_size:,} bytes")


def _parse_entry(archive: zipfile.ZipFile, name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(archive.read(name), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise SpecError(f"the archive's {name} is damaged: {error}") from None


def _calibration(archive: zipfile.ZipFile) -> Calibration:
    calibration = _parse_entry(archive, _CALIBRATION, Calibration)
    probabilities = [threshold.probability for threshold in calibration.thresholds.values()]
    if not (
        0 < calibration.temperature < math.inf and all(0 <= probability <= 1 for probability in probabilities)
    ):
        raise SpecError(
            f"the archive's {_CALIBRATION} is damaged: a temperature or probability is out of range"
        )
    for curve in calibration.curves:
        if not len(curve.thresholds) == len(curve.hits) == len(curve.alarms):
            raise SpecError(
                f"the archive's {_CALIBRATION} is damaged: a curve has lists of different lengths"
            )
    return calibration


def _residuals(archive: zipfile.ZipFile) -> Residuals:
    residuals = _parse_entry(archive, _RESIDUALS, Residuals)
    if not 0 < len(residuals.quantiles) <= residuals.rows:
        raise SpecError(
            f"the archive's {_RESIDUALS} is damaged: {len(residuals.quantiles)} quantiles of {residuals.rows} rows"
        )
    if residuals.scaled is not None and not residuals.scaled.is_sound:
        raise SpecError(
            f"the archive's {_RESIDUALS} is damaged: the widths of intervals do not fit their columns"
        )
    return residuals
