"""Where workers find models and put what they make: in the job folder, or in the data source of a job in pods."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from edl.cluster.kubernetes.deployment import Deployment, write_deployment
from edl.data import connect
from edl.data.results import ResultFolder
from edl.errors import JobError, SpecError
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.models.pending import Intent, Rival, write_intent
from edl.models.registry.factory import open_registry
from edl.models.registry.records import ModelRecord
from edl.run.storage import InSource, storage_of
from edl.spec import Component, JobSpec, Query, RegressionLabel, Rows

SPEC = JobSpec(
    kind="train",
    statement="SELECT …",
    query=Query("SELECT …", "sqlite", ""),
    rows=Rows(True, 100, 100, 0),
    framework="torch",
    model=Component("DNNRegressor"),
    inputs={},
    label=RegressionLabel("y"),
    optimizer=Component("adam"),
    loss=Component("mean_squared_error"),
    metrics=(),
)
RECORD = ModelRecord("DNNRegressor", "torch", 100, {}, "SELECT …")
OUTCOME = Outcome("train", 100, 1.0, figures={"loss": 0.5}, archive="archive.zip")


@pytest.fixture
def url(tmp_path: Path) -> str:
    place = f"sqlite:{tmp_path / 's.sqlite'}"
    connect(place, create=True).close()
    return place


@pytest.fixture
def job(tmp_path: Path) -> JobFolder:
    """Of a job in pods, with an archive that was just written."""
    found = JobFolder(tmp_path / "20260101-120000-000000-abcdef")
    found.path.mkdir()
    write_deployment(found.path, Deployment("n", "ns", found.id, {}, {}))
    found.archive.write_bytes(b"weights")
    return found


def storage(job: JobFolder, intent: Intent, spec: JobSpec = SPEC) -> InSource:
    write_intent(job.path, intent)
    found = storage_of(job, spec)
    assert isinstance(found, InSource)
    return found


def test_a_job_of_this_machine_keeps_all_in_its_folder(tmp_path: Path) -> None:
    job = JobFolder(tmp_path)
    job.model.write_bytes(b"weights")
    kept = storage_of(job, SPEC)
    assert (kept.model(), kept.keep(OUTCOME)) == (job.model, OUTCOME)
    assert isinstance(kept.results(), ResultFolder)


def test_a_model_that_two_workers_wrote_is_one_version_with_its_figures(job: JobFolder, url: str) -> None:
    intent = Intent("train", url, "a.m", RECORD)
    for _ in range(2):
        job.archive.write_bytes(b"weights")
        stored = storage(job, intent).keep(OUTCOME)
        assert (stored.stored, stored.archive, stored.figures) == ("a.m@1", "", {"loss": 0.5})
    with connect(url) as source:
        [version] = open_registry(source).list()
    assert version.record == msgspec.structs.replace(RECORD, metrics={"loss": 0.5})
    assert not job.archive.exists()


@pytest.mark.parametrize(("loss", "current"), [(0.4, 1), (0.6, 2)])
def test_a_model_is_current_unless_it_is_worse_than_its_rival(
    job: JobFolder, url: str, loss: float, current: int
) -> None:
    with connect(url) as source:
        open_registry(source).save("a.m", job.archive, RECORD)
    rival = Rival("a.m@1", "loss", loss, 20, higher_is_better=False)
    assert storage(job, Intent("train", url, "a.m", RECORD, rival=rival)).keep(OUTCOME).stored == "a.m@2"
    with connect(url) as source:
        assert open_registry(source).find("a.m").version == current


def test_the_model_that_is_used_comes_from_the_registry(job: JobFolder, url: str) -> None:
    storage(job, Intent("train", url, "a.m", RECORD)).keep(OUTCOME)
    using = msgspec.structs.replace(SPEC, kind="predict", trained_model="a.m@1")
    assert storage(job, Intent("predict", url, "t"), using).model() == job.model
    assert job.model.read_bytes() == b"weights"


def test_a_model_goes_to_the_store_that_the_job_names_and_is_found_there(
    job: JobFolder, url: str, tmp_path: Path
) -> None:
    store = str(tmp_path / "models")
    assert storage(job, Intent("train", url, "a.m", RECORD, store)).keep(OUTCOME).stored == "a.m@1"
    using = msgspec.structs.replace(SPEC, kind="predict", trained_model="a.m@1")
    assert storage(job, Intent("predict", url, "t", store=store), using).model() == job.model
    with connect(url) as source:
        assert open_registry(source).list() == []
        assert open_registry(source, store).has("a.m@1")


def test_a_training_that_starts_from_new_weights_has_no_model(job: JobFolder, url: str) -> None:
    assert storage(job, Intent("train", url, "a.m", RECORD)).model() is None


def test_results_wait_in_the_source_for_the_master(job: JobFolder, url: str) -> None:
    sink = storage(job, Intent("predict", url, "scores")).results()
    assert sink.stage(0, 1, [pa.record_batch({"a": [1, 2]})]) == 2
    with connect(url) as source:
        assert "scores" not in source.tables()
        assert source.commit("scores", job.id, 1) == 2


def test_a_job_in_pods_says_what_is_to_become_of_it(job: JobFolder) -> None:
    with pytest.raises(SpecError, match=f"there is no output destination for job {job.id}"):
        storage_of(job, SPEC)


def test_a_model_that_goes_to_a_path_of_pods_is_there_whole_and_nowhere_else(
    job: JobFolder, tmp_path: Path
) -> None:
    target = tmp_path / "volume" / "models" / "m.zip"
    write_intent(job.path, Intent("train", "", str(target)))
    kept = storage_of(job, SPEC).keep(OUTCOME)
    assert (kept.archive, kept.stored, target.read_bytes()) == ("", str(target), b"weights")
    assert [path.name for path in target.parent.iterdir()] == ["m.zip"]


def test_a_path_of_pods_that_cannot_be_written_fails_the_job_with_its_name(
    job: JobFolder, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    write_intent(job.path, Intent("train", "", str(tmp_path / "file" / "m.zip")))
    with pytest.raises(JobError, match=r"cannot be written to .*m\.zip"):
        storage_of(job, SPEC).keep(OUTCOME)


def test_a_model_that_comes_back_is_limited_by_the_config_maps_of_the_job(job: JobFolder) -> None:
    write_deployment(job.path, Deployment("n", "ns", job.id, {}, {}, outputs=2))
    write_intent(job.path, Intent("train", "", ""))
    assert storage_of(job, SPEC).most == 1_800_000


def test_a_model_that_only_pods_see_is_read_where_it_is(job: JobFolder) -> None:
    job.model.write_bytes(b"another")
    write_intent(job.path, Intent("predict", "", "", weights="/edl/volume/m.zip"))
    assert storage_of(job, SPEC).model() == Path("/edl/volume/m.zip")
