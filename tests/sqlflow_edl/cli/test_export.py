"""`sqlflow export`: the exported model, loaded where our code cannot be, gives the outputs that ours gives."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import sqlflow_edl
from edl import features as fc
from edl import spec
from edl.arrays import pad_lists
from edl.cli.main import main as edl_main
from edl.models.archive import read_archive
from edl.models.registry.records import ModelRecord
from sqlflow_edl.cli.main import main
from sqlflow_edl.codegen import generate
from sqlflow_edl.session.session import Session
from tests.databases import fill, on_each
from tests.edl.models.conftest import SPEC, write

TABLE = pa.table(
    {
        "a": [i * 0.5 for i in range(60)],
        "b": [f"c{i % 5}" for i in range(60)],
        "c": [f"d{i % 40}" for i in range(60)],
        "y": [i * 2.0 for i in range(60)],
        "tags": [f"{i % 30} {i % 4}" if i % 4 else "" for i in range(60)],
        "loads": [f"{i % 30}:0.5,{i % 7}:2" for i in range(60)],
    }
)
TRAIN = """SELECT a, b, c, y FROM t TO TRAIN DNNRegressor
WITH hidden_units = [4], epochs = 2, model.framework = {framework} LABEL y INTO m.{framework}"""
WITH_TABLES = """SELECT a, b, c, tags, loads, y FROM t TO TRAIN DeepFM
WITH embedding_dim = 2, hidden_units = [4], epochs = 2, model.framework = {framework}
COLUMN a, PLE(a, 4), PERIODIC(a, 3), TARGET_ENCODE(b), NGRAMS(c, 2, 50),
hash(b, 80000), hash(c, 80000), EMBEDDING(SPARSE(tags, 30, SPACE), 2, sqrtn),
EMBEDDING(SPARSE(loads, 30, kv_delimiter=COLON), 2, mean) LABEL y INTO m.{framework}_tables"""
OUTSIDE = {
    ".keras": "import keras; print(keras.models.load_model(path)(given).numpy().tolist())",
    "": "import tensorflow as tf; model = tf.saved_model.load(path); "
    "print(model.serve({k: tf.constant(v) for k, v in given.items()}).numpy().tolist())",
    ".pt2": "import torch; print(torch.export.load(path).module()("
    "{k: torch.from_numpy(v) for k, v in given.items()}).tolist())",
    ".onnx": "import onnxruntime; print(onnxruntime.InferenceSession(path).run(None, given)[0].tolist())",
}
BY_COMMAND = ("", ".onnx")


class Trained(NamedTuple):
    """A model's archive, what the model is given for the first rows, and what it predicts."""

    archive: Path
    given: dict[str, np.ndarray]
    wanted: np.ndarray


def trained(session: Session, model: str, archive: Path) -> Trained:
    session.registry.load(model, archive)
    described: spec.JobSpec = read_archive(archive).spec
    [rows] = session.run("SELECT * FROM t ORDER BY a LIMIT 7")
    [batch] = rows.to_arrow().to_batches()
    [result] = session.run(f"SELECT * FROM t ORDER BY a LIMIT 7 TO PREDICT USING {model}")
    given = pad_lists(fc.Features(*described.features).transform(batch))
    return Trained(archive, given, result.to_arrow()["y"].to_numpy())


def export_here(archive: Path, program: Path, output: Path) -> int:
    """What the command does, in this process, which has the framework already."""
    generate(read_archive(archive).spec).write(program)
    given = ("--program", program, "--weights", archive)
    return edl_main(["export", "--output", str(output), *map(str, given)])


@pytest.mark.soak
@pytest.mark.parametrize(
    ("framework", "files"),
    [
        ("keras", [("m.keras", ".keras"), ("m.keras_tables", ".keras"), ("m.keras_tables", "")]),
        ("torch", [("m.torch", ".pt2"), ("m.torch_tables", ".pt2"), ("m.torch_tables", ".onnx")]),
    ],
)
@on_each("url", always=("duckdb",))
def test_exported_models_give_the_same_outputs_without_our_code(
    framework: str, files: list[tuple[str, str]], url: str, tmp_path: Path
) -> None:
    """With row tables in them, for lists too, and without; the process that loads them knows no package of ours."""
    if framework == "torch":
        pytest.importorskip("onnxruntime")
        pytest.importorskip("onnxscript")
    with sqlflow_edl.connect(url) as session:
        fill(session, "t", TABLE)
        for text in (TRAIN, WITH_TABLES):
            list(session.run(text.format(framework=framework)))
        models = {name: trained(session, name, tmp_path / f"{name}.zip") for name, _ in files}
    code = "import sys; sys.modules['edl'] = sys.modules['sqlflow_edl'] = None\nimport numpy as np\n"
    for number, (name, suffix) in enumerate(files):
        path, arrays = tmp_path / f"exported{number}{suffix}", tmp_path / f"{number}.npz"
        if suffix in BY_COMMAND:
            assert main(["export", name, "-o", str(path), "--source", url]) == 0
        else:
            assert export_here(models[name].archive, tmp_path / f"program{number}", path) == 0
        np.savez(arrays, **models[name].given)
        code += f"path, given = {str(path)!r}, dict(np.load({str(arrays)!r}))\n{OUTSIDE[suffix]}\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (name, _), line in zip(files, done.stdout.splitlines(), strict=True):
        outputs = np.array([float(number) for number in line.replace("[", "").replace("]", "").split(",")])
        assert outputs == pytest.approx(models[name].wanted, rel=1e-5)


@pytest.fixture
def stored(url: str, tmp_path: Path) -> str:
    """A database with a model in each framework and an ensemble, which nobody trained."""
    adam = spec.Component("adam", {"learning_rate": 0.01})
    with sqlflow_edl.connect(url) as session:
        for framework in ("keras", "torch"):
            described = msgspec.structs.replace(SPEC, framework=framework, optimizer=adam)
            archive = write(tmp_path / f"{framework}.zip", spec=described)
            record = ModelRecord("DNNRegressor", framework, 8, {}, SPEC.statement)
            session.registry.save(f"m.{framework}", archive, record)
        ensemble = msgspec.structs.replace(
            SPEC, framework=spec.ENSEMBLE, inputs={}, members=(spec.Member(1.0, described),)
        )
        record = ModelRecord("Ensemble", spec.ENSEMBLE, 8, {}, SPEC.statement)
        session.registry.save("m.ensemble", write(tmp_path / "ensemble.zip", spec=ensemble), record)
    return url


@pytest.mark.soak
@on_each("url", always=("duckdb",))
def test_what_cannot_be_exported_is_named_and_a_file_that_is_there_is_not_overwritten(
    stored: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for model, name, words in (
        ("m.keras", "x.txt", "a model in keras cannot be written to x.txt"),
        ("m.torch", "x.pickle", ".pt2 (a torch.export program)"),
        ("m.tirch", "x.pt2", "did you mean m.torch?"),
        ("m.torch", "no/x.pt2", "/no is not a folder"),
        ("m.ensemble", "x.keras", "there are .onnx (an ONNX model)"),
    ):
        assert main(["export", model, "-o", str(tmp_path / name), "--source", stored]) == 1
        assert words in capfd.readouterr().err
        assert not list(tmp_path.glob("*x*"))
    (tmp_path / "x.pt2").write_text("mine", encoding="utf-8")
    assert main(["export", "m.torch", "-o", str(tmp_path / "x.pt2"), "--source", stored]) == 1
    assert "is there already" in capfd.readouterr().err
    assert (tmp_path / "x.pt2").read_text(encoding="utf-8") == "mine"


@on_each("url", always=("duckdb",))
def test_options_of_a_query_are_checked(stored: str, capfd: pytest.CaptureFixture[str]) -> None:
    wrong: list[tuple[list[str], int, str]] = [
        (["--sql"], 2, "--sql needs --from TABLE"),
        (["--from", "t"], 2, "--from is an option of --sql"),
        ([], 2, "-o PATH is needed"),
        (["--sql", "--from", "t", "--dialect", "bigqery"], 1, "did you mean bigquery?"),
        (["--sql", "--from", "t", "--keep", "a,,b"], 1, "--keep has an empty name"),
        (["--sql", "--from", "t"], 1, "the weights do not fit the model"),
    ]
    for options, code, words in wrong:
        assert main(["export", "m.torch", "--source", stored, *options]) == code
        assert words in capfd.readouterr().err
