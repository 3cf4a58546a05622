"""How a job is deployed, in its folder."""

import pytest

from edl.cluster.kubernetes.deployment import Deployment, Policy, read_deployment, write_deployment
from edl.errors import SpecError


def test_what_was_written_is_read(tmp_path):
    written = Deployment("n", "ns", "id", {"kind": "Pod"}, {}, uid="u", policy=Policy(pending_secs=1.0))
    write_deployment(tmp_path, written)
    assert read_deployment(tmp_path) == written
    assert written.manifest("worker") == {"kind": "Pod"}


def test_a_job_elsewhere_has_none(tmp_path):
    assert read_deployment(tmp_path) is None


def test_a_damaged_one_is_said_to_be(tmp_path):
    write_deployment(tmp_path, Deployment("n", "ns", "id", {}, {}))
    file = tmp_path / "cluster" / "kubernetes.json"
    file.write_bytes(file.read_bytes().replace(b'"version": 1', b'"version": 9'))
    with pytest.raises(SpecError, match=r"the deployment of job .* cannot be read"):
        read_deployment(tmp_path)
