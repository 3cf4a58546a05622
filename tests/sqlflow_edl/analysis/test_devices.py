"""Device and precision of statements that use a model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from edl import spec
from edl.errors import SemanticError
from edl.models.archive import read_archive
from sqlflow_edl.analysis import inference
from sqlflow_edl.analysis.inference.prediction import prediction_in_memory
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.syntax import parse
from tests.edl.models.conftest import SPEC, write

STATEMENTS = {
    "predict": "SELECT x FROM t TO PREDICT USING m",
    "evaluate": "SELECT x, y FROM t TO EVALUATE m",
    "explain": "SELECT x, y FROM t TO EXPLAIN m",
}


def planned(folder: Path, kind: str, attributes: str = "", **changes: Any) -> spec.JobSpec:
    """The job of a model that was trained on a GPU."""
    trained = msgspec.structs.replace(SPEC, device="cuda", precision="bfloat16", **changes)
    archive = read_archive(write(folder / "m.zip", spec=trained))
    schema = Schema(pa.schema([("x", pa.float64()), ("y", pa.float64())]))
    statement: Any = parse(STATEMENTS[kind] + attributes)[0]
    query = spec.Query("SELECT", "duckdb", "duckdb:")
    return inference.USES[kind][1](statement, archive, "m@1", query, schema)


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_model_is_used_in_its_precision_on_a_device_of_the_statement(kind: str, tmp_path: Path) -> None:
    found = [
        planned(tmp_path, kind, attributes)
        for attributes in ("", f" WITH {kind}.device = cpu", " WITH device = GPU")
    ]
    assert [job.device for job in found] == ["auto", "cpu", "cuda"]
    assert {job.precision for job in found} == {"bfloat16"}


def test_a_model_in_memory_leaves_gpus_alone(tmp_path: Path) -> None:
    archive = read_archive(write(tmp_path / "m.zip", spec=msgspec.structs.replace(SPEC, device="cuda")))
    assert prediction_in_memory(archive, "m@1").device == "cpu"


def test_trees_are_used_on_the_cpu(tmp_path: Path) -> None:
    trees = {"framework": "lightgbm", "model": spec.Component("BoostedTreesRegressor")}
    assert planned(tmp_path, "predict", " WITH device = cpu", **trees).device == "cpu"
    with pytest.raises(SemanticError, match="trees compute on the CPU") as refused:
        planned(tmp_path, "predict", " WITH device = cuda", **trees)
    assert refused.value.hint == "leave predict.device out"
