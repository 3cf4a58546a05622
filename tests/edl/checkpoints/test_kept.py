"""Checkpoints in the data source of a job: the files come back, one of each job, whatever ended in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.checkpoints import DAMAGED, STATE, GoneError
from edl.checkpoints.kept import CHECKPOINTS, KeptCheckpoint, KeptCheckpoints, keeps_checkpoints
from edl.data import Source, connect
from edl.errors import SourceError, SpecError
from edl.models.registry import own_tables

JOB, OTHER = "20260101-120000-000000-abcdef", "20260101-120000-000000-fedcba"
FILES = {"weights.safetensors": bytes(range(256)) * 1024, "empty": b"", "position.msgpack": b"step 7"}
SERVERS = {"mysql": "mariadb", "postgresql": "postgresql"}


@pytest.fixture(params=SERVERS)
def url(request: pytest.FixtureRequest) -> str:
    return request.getfixturevalue(SERVERS[request.param]).url()  # type: ignore[no-any-return]


@pytest.fixture
def source(url: str) -> Iterator[Source]:
    with connect(url) as opened:
        yield opened


@pytest.fixture
def checkpoints(source: Source) -> KeptCheckpoints:
    return KeptCheckpoints(source)


def checkpoint(folder: Path, name: str) -> Path:
    made = folder / name
    made.mkdir(parents=True)
    for file, content in {**FILES, DAMAGED: b"no", STATE: b"an earlier state"}.items():
        (made / file).write_bytes(content)
    return made


def count(source: Source) -> int:
    rows = source.execute(f"SELECT COUNT(*) AS n FROM {CHECKPOINTS}")
    assert rows is not None
    return int(rows.read_all().to_pylist()[0]["n"])


def test_a_checkpoint_comes_back_with_the_state_that_it_was_kept_with(
    checkpoints: KeptCheckpoints, tmp_path: Path
) -> None:
    checkpoints.put(JOB, checkpoint(tmp_path, "7-worker-0-0"), b"the state")
    checkpoints.fetch(JOB, "7-worker-0-0", tmp_path / "again")
    found = {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    assert found == {**FILES, STATE: b"the state"}
    assert (checkpoints.state(JOB), checkpoints.names(JOB)) == (b"the state", ["7-worker-0-0"])


def test_the_next_checkpoint_takes_the_place_of_the_last_and_of_no_other_job(
    checkpoints: KeptCheckpoints, tmp_path: Path
) -> None:
    first, second = (checkpoint(tmp_path, name) for name in ("7-worker-0-0", "9-worker-0-0"))
    checkpoints.put(OTHER, first, b"of the other")
    checkpoints.put(JOB, first, b"the first")
    checkpoints.put(JOB, second, b"the second")
    checkpoints.put(JOB, second, b"the third")
    assert (checkpoints.names(JOB), checkpoints.state(JOB)) == (["9-worker-0-0"], b"the third")
    with pytest.raises(GoneError, match="the checkpoint 7-worker-0-0 is gone"):
        checkpoints.fetch(JOB, "7-worker-0-0", tmp_path / "again")
    checkpoints.fetch(OTHER, "7-worker-0-0", tmp_path / "again")


def test_half_of_a_checkpoint_is_none_and_does_not_hide_the_one_before(
    checkpoints: KeptCheckpoints, source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (checkpoint(tmp_path, name) for name in ("7-worker-0-0", "9-worker-0-0"))
    checkpoints.put(JOB, first, b"the first")
    whole, insert = count(source), own_tables.OwnTables.insert_chunks

    def insert_half(own: own_tables.OwnTables, table: str, key: list[str], chunks: Iterator[bytes]) -> None:
        insert(own, table, key, [next(iter(chunks), b"")])
        if key[-1] == "weights.safetensors":
            raise SourceError("the connection is lost")

    with monkeypatch.context() as patch, pytest.raises(SourceError):
        patch.setattr(own_tables.OwnTables, "insert_chunks", insert_half)
        checkpoints.put(JOB, second, b"the second")
    assert (checkpoints.names(JOB), checkpoints.state(JOB)) == (["7-worker-0-0"], b"the first")
    checkpoints.put(JOB, second, b"the second")
    assert (checkpoints.names(JOB), count(source)) == (["9-worker-0-0"], whole)


def test_a_name_that_leads_out_of_the_folder_is_refused(
    checkpoints: KeptCheckpoints, source: Source, tmp_path: Path
) -> None:
    checkpoints.put(JOB, checkpoint(tmp_path, "7-worker-0-0"), b"state")
    source.execute(f"UPDATE {CHECKPOINTS} SET file = '../../evil' WHERE file = 'position.msgpack'")
    with pytest.raises(SpecError, match=r"'\.\./\.\./evil' is no name"):
        checkpoints.fetch(JOB, "7-worker-0-0", tmp_path / "deep" / "again")
    assert not (tmp_path / "deep").exists()
    assert not (tmp_path / "evil").exists()


def test_those_of_jobs_that_are_over_are_swept(
    checkpoints: KeptCheckpoints, source: Source, tmp_path: Path
) -> None:
    assert checkpoints.sweep(lambda job: True) == 0
    for job in (JOB, OTHER):
        checkpoints.put(job, checkpoint(tmp_path / job, "7-worker-0-0"), b"state")
    assert checkpoints.sweep(lambda job: job == OTHER) == 1
    assert (checkpoints.names(OTHER), checkpoints.names(JOB)) == ([], ["7-worker-0-0"])
    checkpoints.remove(JOB)
    assert count(source) == 0


def test_a_job_reaches_its_own_by_the_url_of_its_source(url: str, tmp_path: Path) -> None:
    ours = KeptCheckpoint(url, JOB)
    assert ours.state() is None
    ours.put(checkpoint(tmp_path, "7-worker-0-0"), b"state")
    ours.fetch("7-worker-0-0", tmp_path / "again")
    assert (ours.state(), (tmp_path / "again" / STATE).read_bytes()) == (b"state", b"state")
    ours.remove()
    assert ours.state() is None
    assert keeps_checkpoints(url)
    assert not keeps_checkpoints("maxcompute://id@host/api")
