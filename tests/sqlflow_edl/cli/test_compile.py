"""`sqlflow compile --schema`: programs from the tables of a file, without a database."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sqlflow_edl
from edl.data import connect
from sqlflow_edl.cli.main import main

TABLE = "CREATE TABLE clicks (shop VARCHAR(20), hour INTEGER, device INTEGER, amount DOUBLE, stars INTEGER, day DATE)"
WRITTEN = """\
SELECT shop, hour, device, amount, stars FROM clicks
TO TRAIN DNNClassifier
WITH model.framework = torch, model.hidden_units = [16, 8], model.n_classes = 3,
     train.batch_size = 100, train.epoch = 3, optimizer.schedule = constant
COLUMN EMBEDDING(CATEGORY_HASH(shop, 1000), 8), BUCKET(hour, [6, 12, 18]), INDICATOR(CATEGORY_ID(device, 10)),
       BUCKET(LOG(amount + 1), [0, 1, 2])
LABEL stars
INTO stars_model
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("tables.sql").write_text(TABLE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def compiled(folder: Path) -> Callable[..., int]:
    """Compile a program from the schema file into `out`; return the exit code."""

    def compile_(program: str, *options: str) -> int:
        Path("q.sql").write_text(program, encoding="utf-8")
        return main(["compile", "q.sql", "-o", "out", *options])

    return compile_


def files(folder: Path) -> dict[str, Any]:
    """Read a program without the numbers of its rows."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    found: dict[str, Any] = {name: text.replace(", 810 training rows", "") for name, text in texts.items()}
    del found["model.py.sha256"]
    job = json.loads(found["job.json"])
    assert job.pop("rows")["pinned"] is False
    return {**found, "job.json": job}


@pytest.mark.parametrize("scheme", ["duckdb", "sqlite"])
def test_a_schema_file_gives_the_same_program_as_the_database(
    compiled: Callable[..., int], folder: Path, scheme: str
) -> None:
    url = f"{scheme}:{folder / 'shop.db'}"
    with connect(url, create=True) as source:
        source.execute(TABLE)
        values = (f"('s{n % 7}', {n % 24}, {n % 5}, {n}, {n % 3}, '2026-11-26')" for n in range(900))
        source.execute(f"INSERT INTO clicks VALUES {', '.join(values)}")
    assert compiled(WRITTEN, "--source", url) == 0
    (folder / "shop.db").unlink()
    assert compiled(WRITTEN, "--source", url, "--schema", "tables.sql") == 0
    assert files(folder / "out/stars_model") == files(folder / "out/stars_model-2")
    assert not (folder / "shop.db").exists()


def test_rows_of_the_file_stand_for_the_databases_rows(
    compiled: Callable[..., int], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "INSERT INTO clicks VALUES ('a', 1, 2, 1.5, 1, NULL), ('b', 3, 4, 2.5, 2, NULL)"
    Path("tables.sql").write_text(f"{TABLE};\n{rows};", encoding="utf-8")
    train = "SELECT amount, stars FROM clicks TO TRAIN LinearClassifier LABEL stars INTO m"
    assert compiled(train, "--schema", "tables.sql") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "figures of features and label come from the 2 rows of tables.sql" in said
    assert "the programs name no data source: --source URL names the one that they will read" in said
    model = (folder / "out/m/model.py").read_text(encoding="utf-8")
    assert 'fc.standardize("amount", mean=2.0, std=0.5)' in model
    assert 'fc.class_label("stars", [1, 2])' in model


TRAIN = "SELECT * FROM clicks TO TRAIN {} INTO m"
TREES = (
    "SELECT shop, hour, {} FROM clicks TO TRAIN {} COLUMN HASH(shop, 9), BUCKET(hour, [6]) LABEL {} INTO m"
)


@pytest.mark.variants(7)
@pytest.mark.parametrize(
    ("program", "message", "hint"),
    [
        (TRAIN.format("DNNClassifier LABEL stars"), "the classes of stars", "write model.n_classes = 3"),
        (
            TRAIN.format("DNNClassifier LABEL shop"),
            "the classes of shop",
            "select a whole number or a boolean",
        ),
        (TRAIN.format("DNN LABEL stars"), "whether stars has classes", "name a Classifier"),
        (
            TRAIN.format("DNNRegressor LABEL amount"),
            "the mean and the deviation of amount",
            "give rows of the",
        ),
        (
            TRAIN.format("DNNClassifier LABEL stars"),
            "which features shop, hour, device, amount, day become",
            "write COLUMN CATEGORY_HASH(shop, 1000), or give rows",
        ),
        (
            TRAIN.format("DNNClassifier LABEL stars"),
            "whether day orders the rows",
            "validation.split = time or",
        ),
        (
            "SELECT * FROM clicks LABEL stars INTO m",
            "which model is best",
            "name one without folds: TO TRAIN DNN",
        ),
        (
            TREES.format("stars", "LinearClassifier", "stars").replace(
                "COL", "WITH n_classes = 3, optimizer = adam COL"
            ),
            "how long it is to be trained",
            "write train.batch_size, train.epoch, or give rows",
        ),
        (
            TREES.format("stars", "DNNClassifier", "stars").replace("HASH(shop, 9)", "VOCABULARIZE(shop)"),
            "the values of shop, which the feature is fitted to",
            "write COLUMN CATEGORY_HASH(shop, 1000)",
        ),
        (
            TREES.format("stars", "DNNClassifier", "stars")
            .replace("[6]", "4")
            .replace("BUCKET", "BUCKETIZE"),
            "the values of hour, which the feature is fitted to",
            "write COLUMN BUCKET(hour, [1, 10, 100]) or CATEGORY_ID(hour, 1000)",
        ),
        (
            TREES.format("stars", "DNNClassifier", "stars").replace(
                "BUCKET(hour", "BUCKET(hour / MEAN(hour)"
            ),
            "the values of hour / MEAN(hour), which the feature is fitted to",
            "write numbers in the place of statistics",
        ),
        (
            TREES.format("stars, device", "DNNClassifier", "stars").replace(
                "COL", "WITH weight_column = device COL"
            ),
            "the mean of the weights",
            "leave it out",
        ),
    ],
)
def test_what_only_rows_tell_is_an_error_that_says_what_to_write(
    compiled: Callable[..., int], capsys: pytest.CaptureFixture[str], program: str, message: str, hint: str
) -> None:
    assert compiled(program, "--schema", "tables.sql") == 1
    said = capsys.readouterr().err
    assert f"only rows tell {message}\n" in said
    assert hint in said
    assert not Path("out").exists()


@pytest.mark.variants(2)
@pytest.mark.parametrize(
    ("schema", "options", "said"),
    [
        (TABLE + ";\nDROP TABLE clicks", (), "tables.sql:2:1"),
        (TABLE, ("--source", "mysql://u@h/shop"), "does not speak mysql"),
        (TABLE, ("--dialect", "postgres"), "does not speak postgres"),
        (TABLE.replace("stars", "starz"), (), "did you mean starz?"),
    ],
)
def test_a_schema_that_does_not_fit_is_an_error_with_its_place(
    compiled: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    schema: str,
    options: tuple[str, ...],
    said: str,
) -> None:
    Path("tables.sql").write_text(schema, encoding="utf-8")
    assert compiled(WRITTEN, "--schema", "tables.sql", *options) == 1
    assert said in capsys.readouterr().err


def test_the_example_of_the_documentation_compiles(compiled: Callable[..., int], folder: Path) -> None:
    page = (Path(sqlflow_edl.__file__).parents[1] / "docs/cli.md").read_text(encoding="utf-8")
    schema, program = re.findall(r"```sql\n(.*?)```", page.split("### Without the database")[1], re.DOTALL)[
        :2
    ]
    Path("tables.sql").write_text(schema, encoding="utf-8")
    assert compiled(program, "--schema", "tables.sql", "--source", "duckdb:///shop.duckdb") == 0
    job = json.loads((folder / "out/clicked_model/job.json").read_text(encoding="utf-8"))
    assert job["query"]["source"] == "duckdb:///shop.duckdb"
    assert job["label"]["classes"] == [False, True]
    assert not Path("shop.duckdb").exists()


def test_a_compiled_program_trains_when_it_is_run_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with duckdb.connect("rows.duckdb") as database:
        database.execute(
            "CREATE TABLE people AS SELECT i % 60 AS age, 100 * (i % 60) + i AS income FROM range(90) t(i)"
        )
    model = "TO TRAIN BoostedTreesRegressor WITH train.num_boost_round = 3 LABEL income INTO m"
    train = f"SELECT age, income FROM people {model}"
    Path("q.sql").write_text(train)
    assert main(["compile", "q.sql", "-o", "out", "--source", "duckdb:rows.duckdb"]) == 0
    assert f"\n# {train}\n" in Path("out/m/model.py").read_text()
    command = [sys.executable, "out/m/model.py", "--output", "m.zip"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode == 0, ran.stderr
    assert "rmse" in ran.stdout
    assert Path("m.zip").exists()
