"""Rows of files that only pods see: the master's pod reads CSV files as the training rows of the model were read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl.data import open_reader
from edl.data.pinned import read_pinned
from edl.entrypoints.pod_rows import SPEC as PROGRAM
from edl.entrypoints.pod_rows import place_rows
from edl.errors import SourceError
from edl.jobs.job_folder import JobFolder
from edl.models.pending import Intent, write_intent
from edl.spec import JobSpec, Query, from_json, to_json
from tests.edl.models.conftest import SPEC, write

TRAINING = Query("", "", "/d/training.csv")


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    found = JobFolder(tmp_path / "20260101-120000-000000-abcdef")
    found.program.mkdir(parents=True)
    return found


def place(job: JobFolder, kind: str, files: Mapping[str, Path]) -> JobSpec:
    """The JobSpec after the master's pod has indexed the files, by folder of the job."""
    spec = msgspec.structs.replace(SPEC, kind=kind, query=TRAINING)
    (job.path / PROGRAM).write_bytes(to_json(spec))
    job.unindexed_files.parent.mkdir(parents=True, exist_ok=True)
    job.unindexed_files.write_bytes(msgspec.json.encode({name: str(path) for name, path in files.items()}))
    place_rows(job, "master")
    return from_json((job.path / PROGRAM).read_bytes())


def rows(folder: Path) -> list[dict[str, object]]:
    pinned = read_pinned(folder)
    return pa.Table.from_batches(open_reader(pinned, folder).read(0, pinned.rows)).to_pylist()


@pytest.fixture
def training(tmp_path: Path) -> Path:
    path = tmp_path / "training.csv"
    path.write_text("x;k\n1,5;a\n2.750,25;b\n")
    return path


@pytest.fixture
def later(tmp_path: Path) -> Path:
    """A file in which 1.250 is a thousand, if the training rows tell, and 1.10 a text."""
    path = tmp_path / "later.csv"
    path.write_text("x;k\n1.250;1.10\n")
    return path


@pytest.fixture
def model(job: JobFolder, training: Path, tmp_path: Path) -> Path:
    """A model of the training file, as a pod trained it."""
    trained = place(job, "train", {"rows": training})
    job.unindexed_files.unlink()
    return write(tmp_path / "model.zip", spec=trained)


def test_a_training_in_pods_keeps_how_its_files_are_read_and_reads_its_validation_rows_alike(
    job: JobFolder, training: Path, later: Path
) -> None:
    spec = place(job, "train", {"rows": training, "rows/held-out": later})
    assert [(field.name, field.type) for field in spec.query.schema] == [("x", "double"), ("k", "string")]
    assert spec.query.readings == {"x": "DOUBLE .,"}
    assert (spec.rows.training, spec.rows.validation) == (2, 1)
    assert rows(job.validation_rows) == [{"x": 1250.0, "k": "1.10"}]


def test_files_of_pods_are_read_as_the_training_rows_of_a_model_that_was_sent(
    job: JobFolder, model: Path, later: Path
) -> None:
    model.rename(job.model)
    assert place(job, "evaluate", {"rows": later}).rows.total == 1
    assert rows(job.rows) == [{"x": 1250.0, "k": "1.10"}]


def test_a_value_of_pods_that_does_not_fit_the_training_rows_of_a_model_there_is_named(
    job: JobFolder, model: Path, later: Path
) -> None:
    write_intent(job.path, Intent("predict", "", "", weights=str(model)))
    later.write_text("x;k\n1.5;a\n")
    with pytest.raises(SourceError, match=r"column x has the value '1\.5' in row 1"):
        place(job, "predict", {"rows": later})
