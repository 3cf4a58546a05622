"""Output of a job in ConfigMaps, from the master to the client."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from edl.cluster.kubernetes import names, output_maps
from edl.cluster.kubernetes.api_calls import Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.cluster.kubernetes.output_maps import OutputMaps, join_parts, paths, read_map
from edl.errors import JobError
from tests.edl.cluster.kubernetes.conftest import Site

Sites = Callable[..., Site]


@pytest.fixture
def place(site: Sites, monkeypatch: pytest.MonkeyPatch) -> Site:
    """A job with three ConfigMaps of 100 bytes for output."""
    monkeypatch.setattr(output_maps, "ROOM", 100)
    found = site()
    found.deployment = msgspec.structs.replace(found.deployment, outputs=3)
    for number in range(3):
        body = {"metadata": {"name": names.output(found.deployment.name, number)}}
        found.double.ask("POST", f"/api/v1/namespaces/{found.namespace}/configmaps", body)
    return found


def put(place: Site, file: Path, content: bytes, name: str = "output") -> None:
    """Store a file as a new master does."""
    file.write_bytes(content)
    with closing(OutputMaps(place.double.client(), place.deployment)) as output:
        output.put(name, file.name, file)


def found(place: Site, deployment: Deployment) -> dict[str, bytes]:
    calls = Calls(place.double.client())
    return join_parts(
        {key: each for path in paths(deployment) for key, each in read_map(calls, path).items()}
    )


@pytest.mark.soak
def test_files_come_back_whole_whichever_master_has_stored_them(place: Site, tmp_path: Path) -> None:
    files = {"archive.zip": bytes(range(150)), "00000001.0.arrow": b"rows", "00000002.0.arrow": b""}
    for name, content in files.items():
        put(place, tmp_path / name, content)
    assert found(place, place.deployment) == files


def test_a_file_that_is_sent_again_replaces_the_first(place: Site, tmp_path: Path) -> None:
    for content in (b"a" * 250, b"b" * 250):
        put(place, tmp_path / "archive.zip", content)
    assert found(place, place.deployment) == {"archive.zip": b"b" * 250}


def test_more_than_there_is_room_for_is_refused_with_another_way(place: Site, tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"larger than the .* MB that come back") as refused:
        put(place, tmp_path / "archive.zip", b"a" * 301)
    assert "--output pod:/edl/volume" in str(refused.value.hint)
    assert found(place, place.deployment) == {}  # no part of a file is taken for a file


def test_a_file_that_the_cluster_does_not_take_is_refused_with_the_reason(
    place: Site, tmp_path: Path
) -> None:
    for path in paths(place.deployment):
        place.double.ask("DELETE", path)
    with pytest.raises(JobError, match=r"archive.zip cannot be stored in the job's ConfigMaps: .*not found"):
        put(place, tmp_path / "archive.zip", b"a")


def test_other_files_of_pods_are_not_stored(place: Site, tmp_path: Path) -> None:
    put(place, tmp_path / "rows.msgpack", b"index", name="rows")
    assert found(place, place.deployment) == {}


def test_what_workers_of_a_script_told_an_earlier_master_is_restored(place: Site, tmp_path: Path) -> None:
    put(place, tmp_path / "workload.json", b"{}", name="script")
    with closing(OutputMaps(place.double.client(), place.deployment)) as output:
        output.restore(tmp_path / "records")
    assert (tmp_path / "records" / "workload.json").read_bytes() == b"{}"
