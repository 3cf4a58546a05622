"""Names of a job's objects."""

import re

import pytest

from edl.cluster import Instance
from edl.cluster.kubernetes import names

ID = "20261122-130258-027012-9458e4"


@pytest.mark.parametrize(
    "kind", ["train", "my_model", "Umsätze/2026", "--", "", "m" * 80, "a" * 20 + "-" * 20]
)
def test_a_job_of_any_kind_has_a_name_that_is_a_dns_label_with_room_behind_it(kind):
    name = names.job_name(kind, ID)
    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", name)
    assert len(name) <= names.LONGEST
    assert name.endswith("-9458e4")
    assert len(names.pod(name, Instance("worker-999", "worker", 99_999))) <= 63


def test_the_selector_finds_workers_and_servers_and_not_the_master():
    assert names.selector("j") == "app.kubernetes.io/instance=j,sqlflow-edl/role in (worker,ps)"
    assert names.labels("j", ID, "ps")["sqlflow-edl/role"] == "ps"
    assert "sqlflow-edl/role" not in names.labels("j", ID)
