"""Predictions of a module into a table of MaxCompute."""

from __future__ import annotations

import pytest
from odps import ODPS

from edl.errors import SourceError
from edl.extensions.elasticdl.names.constants import MaxComputeConfig
from edl.extensions.elasticdl.names.maxcompute import ODPSWriter, is_odps_configured
from tests.maxcompute.process import ACCOUNT, SECRET, Running


def write(maxcompute: Running, rows: list[list[float]], *, columns: list[str] | None = None) -> ODPS:
    """Write rows of worker 1 into a new project. Return a client of it."""
    project = maxcompute.new_project()
    where = (project, ACCOUNT, SECRET, maxcompute.endpoint)
    types = ["double"] * len(columns) if columns else None
    writer = ODPSWriter(*where, "predictions", columns=columns, column_types=types)
    writer.from_iterator(rows, 1)
    return ODPS(ACCOUNT, SECRET, project, maxcompute.endpoint, tunnel_endpoint=maxcompute.endpoint)


@pytest.fixture(autouse=True)
def tunnel(maxcompute: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MaxComputeConfig.TUNNEL_ENDPOINT, maxcompute.endpoint)


def test_rows_of_a_worker_are_a_partition_of_the_table(maxcompute: Running) -> None:
    client = write(maxcompute, [[1.0, 2.0], [3.0, 4.0]], columns=["f0", "f1"])
    with client.get_table("predictions").open_reader(partition="worker=1") as rows:
        assert [list(row.values)[:2] for row in rows] == [[1.0, 2.0], [3.0, 4.0]]


def test_a_table_that_is_not_there_needs_columns(maxcompute: Running) -> None:
    with pytest.raises(SourceError, match="there is no table predictions"):
        write(maxcompute, [[1.0]])


def test_all_variables_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    names = (MaxComputeConfig.PROJECT_NAME, MaxComputeConfig.ACCESS_ID, MaxComputeConfig.ACCESS_KEY)
    for name in names:
        monkeypatch.setenv(name, "x")
    monkeypatch.delenv(MaxComputeConfig.ENDPOINT, raising=False)
    assert not is_odps_configured()
    monkeypatch.setenv(MaxComputeConfig.ENDPOINT, "x")
    assert is_odps_configured()
