"""FAULTS A25: a database that somebody else wrote to: nothing of it is executed, nothing of the user's overwritten."""

from __future__ import annotations

import contextlib
import io
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sqlflow_edl
from edl.errors import ErrorList, SourceError, SQLFlowError
from edl.models.registry.tables import CHUNKS, MODELS
from edl.program.user_model import PATH_VARIABLE, find
from sqlflow_edl.session.session import Session
from tests.databases import Databases

ROWS = 60
TABLES = ("duckdb", "sqlite", "mysql", "postgres")  # where a registry is two tables
OTHERS = (*TABLES[1:], "maxcompute")
PREDICT = "SELECT x, k FROM t ORDER BY x TO PREDICT USING {}"


@pytest.fixture(
    scope="module", params=["duckdb", *(pytest.param(other, marks=pytest.mark.soak) for other in OTHERS)]
)
def session(
    request: pytest.FixtureRequest, databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Session]:
    """A database with a table and a model of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        with sqlflow_edl.connect(databases.url(request.param), create=True) as opened:
            rows = pa.table(
                {
                    "x": [i / ROWS for i in range(ROWS)],
                    "k": [f"k{i % 3}" for i in range(ROWS)],
                    "y": ["no" if i < ROWS // 2 else "yes" for i in range(ROWS)],
                }
            )
            opened.source.stage("t", "given", 0, 0, rows.to_reader())
            opened.source.commit("t", "given", 1)
            list(
                opened.run(
                    "CREATE TABLE data AS SELECT * FROM t;"
                    "SELECT x, k, y FROM t TO TRAIN DNNClassifier WITH model.framework = torch,"
                    " model.hidden_units = [4], model.members = 1, train.epoch = 1 LABEL y INTO clean"
                )
            )
            yield opened


def predicted(session: Session, model: str) -> pa.Table:
    [result] = session.run(PREDICT.format(model))
    return result.to_arrow()


def members(session: Session, tmp_path: Path) -> dict[str, bytes]:
    """The files of the clean model's archive."""
    path = tmp_path / "clean.zip"
    session.registry.load("clean", path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def plant(session: Session, name: str, files: dict[str, bytes], tmp_path: Path) -> None:
    """Write a model into the database as somebody would who has its password: with a checksum that fits."""
    clean = tmp_path / "clean.zip"
    session.registry.load("clean", clean)
    made = io.BytesIO()
    with zipfile.ZipFile(clean) as real, zipfile.ZipFile(made, "w") as archive:
        archive.comment = real.comment
        for entry in real.infolist():
            archive.writestr(entry, files[entry.filename])
    path = tmp_path / "planted.zip"
    path.write_bytes(made.getvalue())
    record = session.registry.find("clean").record
    session.registry.save(name, path, record)


def test_a25_the_program_in_an_archive_is_not_the_one_that_runs(session: Session, tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    files = members(session, tmp_path)
    evil = f"open({str(marker)!r}, 'w').close()\nraise SystemExit('executed')\n".encode()
    hostile = {name: evil if name.startswith("program/") else content for name, content in files.items()}
    assert hostile != files
    plant(session, "hostile_program", hostile, tmp_path)
    assert predicted(session, "hostile_program").equals(predicted(session, "clean"))
    list(session.run("SELECT x, k, y FROM t TO EVALUATE hostile_program"))
    assert not marker.exists()


def changed(spec: Any, path: str, value: object) -> Any:
    """The JobSpec with the value at a path of keys and numbers."""
    at = spec
    *parents, last = path.split("/")
    for key in parents:
        at = at[int(key)] if key.isdigit() else at[key]
    if last.isdigit():
        at[int(last)] = value
    else:
        assert last in at, f"no {last} in {sorted(at)}"
        at[last] = value
    return spec


CODE = "__import__('pathlib').Path({!r}).touch()"
BREAKS = ('"); {} #', '"""\n{}\n"""')  # codegen/test_hostile_specs.py has more, without running them
PATHS = (
    "model/name",
    "optimizer/name",
    "loss/name",
    "framework",
    "statement",
    "metrics/0",
    "label/column",
    "label/classes/0",
    "query/select",
    "query/source",
    "inputs/features/0/column",
    "inputs/features/1/column",
    "inputs/features/2/category/column",
    "inputs/features/2/category/values/0",
    "trained_model",
)


@pytest.mark.variants(5)
@pytest.mark.parametrize(
    ("path", "shape"),
    [
        pytest.param(path, shape, marks=pytest.mark.soak if (place + number) % 2 else ())
        for place, path in enumerate(PATHS)
        for number, shape in enumerate(BREAKS)
    ],
)
def test_a25_code_in_a_jobspec_is_a_name_or_an_error(
    session: Session, tmp_path: Path, path: str, shape: str
) -> None:
    marker = tmp_path / "executed"
    files = members(session, tmp_path)
    text = shape.format(CODE.format(str(marker)))
    files["job.json"] = json.dumps(changed(json.loads(files["job.json"]), path, text)).encode()
    plant(session, "hostile_spec", files, tmp_path)
    try:
        predicted(session, "hostile_spec")
        list(session.run("SELECT x, k, y FROM t TO EVALUATE hostile_spec"))
    except SQLFlowError as error:
        assert error.message
    assert not marker.exists()


@pytest.mark.variants(5)
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("model/name", "os.system"),
        ("model/name", "subprocess.Popen"),
        ("model/name", "builtins:exec"),
        ("model/params", {"hidden_units": ["__import__('os')"]}),
        ("model/params", {"args": "touch executed", "shell": True}),
        ("optimizer/name", "__class__"),
        ("optimizer/params", {"learning_rate": "__import__('os').system('true')"}),
        ("loss/name", "__init__"),
        ("metrics", ["__class__"]),
        ("inputs/features/0/mean", "0); import os"),
        ("inputs/features/0", {"type": "os.system"}),
        ("version", 99),
        ("inputs", {"../../evil": []}),
    ],
)
def test_a25_a_jobspec_that_names_something_else_is_a_named_error(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, value: object
) -> None:
    monkeypatch.chdir(tmp_path)
    files = members(session, tmp_path)
    files["job.json"] = json.dumps(changed(json.loads(files["job.json"]), path, value)).encode()
    plant(session, "hostile_names", files, tmp_path)
    try:
        predicted(session, "hostile_names")
    except SQLFlowError as error:
        assert error.message
        assert "Traceback" not in error.message
    assert not (tmp_path / "executed").exists()


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("subprocess.Popen", {"args": ["touch", "{marker}"]}),
        ("shutil.copyfile", {"src": "/etc/hostname", "dst": "{marker}"}),
        ("pathlib.Path", {"x=__import__('pathlib').Path('{marker}').touch(), y": 1}),
    ],
)
def test_a25_a_stored_model_may_not_name_any_function_there_is(
    session: Session, tmp_path: Path, name: str, params: dict[str, Any]
) -> None:
    """Digest and all are right: whoever made this knows the library that its user has installed."""
    marker = tmp_path / "executed"
    files = members(session, tmp_path)
    found = find(name)
    job = json.loads(files["job.json"])
    filled = json.loads(json.dumps(params).replace("{marker}", str(marker)))
    job["model"] = {"name": name, "params": filled}
    job["own"] = {"module": found.module, "attribute": found.attribute, "digest": found.digest, "passes": []}
    files["job.json"] = json.dumps(job).encode()
    plant(session, "hostile_own", files, tmp_path)
    with pytest.raises(SQLFlowError, match=r"SQL may not name|is damaged"):
        predicted(session, "hostile_own")
    assert not marker.exists()


def test_a25_the_module_of_a_stored_model_is_the_one_that_was_looked_at(
    session: Session, tmp_path: Path
) -> None:
    marker = tmp_path / "executed"
    files = members(session, tmp_path)
    found = find("keras.layers.Dense")
    job = json.loads(files["job.json"])
    job["model"] = {"name": "keras.layers.Dense", "params": {"args": ["touch", str(marker)]}}
    job["own"] = {"module": "subprocess", "attribute": "Popen", "digest": found.digest, "passes": []}
    files["job.json"] = json.dumps(job).encode()
    plant(session, "hostile_own", files, tmp_path)
    with pytest.raises(SQLFlowError, match=r"keras\.layers\.Dense is not subprocess\.Popen"):
        predicted(session, "hostile_own")
    assert not marker.exists()


HELPERS = """
import subprocess, torch
from subprocess import getoutput
from torch.hub import load

class Task:
    def __init__(self, cmd):
        subprocess.run(cmd, shell=True)
"""


@pytest.mark.variants(5)
@pytest.mark.parametrize(
    "model",
    [
        "subprocess.getoutput",
        "helpers.getoutput",
        "helpers.subprocess.getoutput",
        "helpers.load",
        "helpers.Task",
        "helpers.__loader__.exec_module",
        "os.system",
        "os.path.join",
        "builtins.eval",
        "torch.hub.load",
        "keras.utils.get_file",
        "sqlflow_edl.session.session.Session",
    ],
)
def test_a25_a_statement_trains_models_and_calls_nothing_else(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    marker = tmp_path / "executed"
    statement = f"SELECT x, y FROM t TO TRAIN {model} WITH model.cmd = 'touch {marker}' LABEL y INTO trained"
    with pytest.raises(SQLFlowError) as raised:
        list(session.run(statement))
    error = raised.value.errors[0] if isinstance(raised.value, ErrorList) else raised.value
    assert error.span is not None
    assert statement[error.span.start : error.span.end] == model
    assert not marker.exists()


@pytest.mark.variants(2)
@pytest.mark.parametrize("target", ["data", "DATA", "`data`", MODELS, CHUNKS])
def test_a25_a_result_never_replaces_a_table_that_no_job_made(session: Session, target: str) -> None:
    tables = ("data", MODELS, CHUNKS) if session.dialect in TABLES else ("data", MODELS)
    rows = {name: count(session, name) for name in tables}
    is_another = target == "DATA" if session.dialect == "mysql" else target not in (*tables, "DATA", "`data`")
    refused = pytest.raises(SourceError, match="was not made by sqlflow-edl")
    with contextlib.nullcontext() if is_another else refused:
        list(session.run(f"SELECT x, k FROM t TO PREDICT {target}.y USING clean"))
    with contextlib.nullcontext() if is_another else refused:
        list(session.run(f"SELECT x, k, y FROM t TO EVALUATE clean INTO {target}"))
    assert {name: count(session, name) for name in rows} == rows


def test_a25_a_model_of_a_tables_name_leaves_the_table(session: Session) -> None:
    fast = "model.framework = torch, train.epoch = 1"
    list(session.run(f"SELECT x, y FROM data TO TRAIN LinearClassifier WITH {fast} LABEL y INTO data"))
    assert session.registry.find("data").state == "ready"
    assert count(session, "data") == ROWS
    list(session.run("DROP MODEL data"))
    assert count(session, "data") == ROWS


def count(session: Session, table: str) -> int:
    [result] = session.run(f"SELECT count(*) AS n FROM {table}")
    found: int = result.to_arrow()["n"][0].as_py()
    return found
