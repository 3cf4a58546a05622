"""Statements on MaxCompute, all the way: a double of the service, a master, and workers that read from it."""

from __future__ import annotations

import pyarrow as pa
import pytest

from edl.sources.maxcompute.source import MaxComputeSource
from sqlflow_edl.session.session import Session
from tests.maxcompute.process import Running

ROWS = 1000
QUERY = "SELECT n, k, y FROM examples"
TRAIN = (
    f"{QUERY} TO TRAIN DNNRegressor WITH epochs = 1, hidden_units = [8], model.framework = torch,"
    " train.num_workers = 2 LABEL y INTO shop.model"
)


@pytest.mark.soak
def test_workers_train_from_one_download_and_nothing_is_left(maxcompute: Running) -> None:
    with Session(maxcompute.url()) as session:
        source = session.source
        assert isinstance(source, MaxComputeSource)
        rows = pa.table(
            {"n": range(ROWS), "k": [f"k{n % 5}" for n in range(ROWS)], "y": [n / 7 for n in range(ROWS)]}
        )
        source.stage("examples", "given", 0, 0, rows.to_reader())
        source.commit("examples", "given", 1)
        maxcompute.requests()
        list(session.run(TRAIN))
        downloads = [line for line in maxcompute.requests() if "pinned" in line and "POST" in line]
        [version] = session.registry.list()
        assert (version.name, version.state) == ("shop.model", "ready")
        left = sorted(found.name for found in source.list_objects(""))
    assert sum("downloads" in line for line in downloads) == 1
    assert left == ["examples", "sqlflow_edl_archives", "sqlflow_edl_models", "sqlflow_edl_results"]
