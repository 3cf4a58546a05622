"""What master and cluster speak of."""

from __future__ import annotations

import msgspec
import pytest

from edl.cluster import Instance


@pytest.mark.parametrize("name", ["", "Worker-0", "../worker", "worker 0", "-", "0", "w" * 64, "worker\n"])
def test_a_name_that_could_be_no_file_or_pod_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names no instance"):
        Instance(name, "worker")
    with pytest.raises(msgspec.ValidationError):
        msgspec.json.decode(msgspec.json.encode({"name": name, "role": "worker"}), type=Instance)


def test_an_instance_is_known_by_its_name_and_incarnation() -> None:
    assert Instance("worker-0", "worker", 2).key == ("worker-0", 2)
