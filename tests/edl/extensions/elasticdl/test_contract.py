"""Modules written for ElasticDL, unchanged: trained, evaluated, used and exported by the command."""

from __future__ import annotations

import csv
import logging
from pathlib import Path

import pytest

from edl.cli.main import main
from edl.models.archive import read_archive
from tests.edl.extensions.elasticdl.data import ZOO, write_clicks, write_people, write_stripes


def run(kind: str, module: str, data: Path | str, *more: str | Path) -> int:
    flag = {"train": "training", "evaluate": "validation", "predict": "prediction", "export": "prediction"}[
        kind
    ]
    model = ["--model_zoo", str(ZOO), "--model_def", f"{module}.custom_model"]
    return main([kind, *model, f"--{flag}_data", str(data), *map(str, more)])


def figures(out: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


def read_csv(path: Path) -> list[dict[str, str]]:
    with path.open() as file:
        return list(csv.DictReader(file))


def test_images_are_learnt_from_records_with_the_rate_of_a_schedule(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    write_stripes(tmp_path / "train.recordio", 640)
    write_stripes(tmp_path / "test.recordio", 80)
    archive = tmp_path / "m.zip"
    assert (
        run("train", "stripes.net", tmp_path / "train.recordio", "--num_epochs", "4", "--output", archive)
        == 0
    )
    assert run("evaluate", "stripes.net", tmp_path / "test.recordio", "--weights", archive) == 0
    assert figures(capfd.readouterr().out)["accuracy"] > 0.95
    with caplog.at_level(logging.INFO, "edl.zoo"):
        output = ("--weights", archive, "--output", tmp_path / "p.csv")
        assert run("predict", "stripes.net", tmp_path / "test.recordio", *output) == 0
    assert "worker 0: 80 rows, float32" in caplog.messages
    rows = read_csv(tmp_path / "p.csv")
    assert len(rows) == 80
    assert list(rows[0]) == [f"prediction_{place}" for place in range(4)]


def test_feature_columns_read_the_texts_of_a_csv_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_people(tmp_path / "people.csv", 600)
    archive = tmp_path / "m.zip"
    assert (
        run("train", "people.columns", tmp_path / "people.csv", "--num_epochs", "4", "--output", archive) == 0
    )
    assert run("evaluate", "people.columns", tmp_path / "people.csv", "--weights", archive) == 0
    assert figures(capfd.readouterr().out)["auc"] > 0.95
    output = ("--weights", archive, "--output", tmp_path / "saved")
    assert run("export", "people.columns", tmp_path / "people.csv", *output) == 0
    assert (tmp_path / "saved" / "saved_model.pb").exists()


def test_outputs_keep_their_names_and_rows_of_embeddings_are_kept_by_id(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_clicks(tmp_path / "clicks.recordio", 600)
    archive = tmp_path / "m.zip"
    module, data = "clicks.factorization", tmp_path / "clicks.recordio"
    assert run("train", module, data, "--num_epochs", "6", "--output", archive) == 0
    assert run("evaluate", module, data, "--weights", archive) == 0
    measured = figures(capfd.readouterr().out)
    assert measured["logits_accuracy"] > 0.9
    assert measured["probs_auc"] > 0.95
    assert run("predict", module, data, "--weights", archive, "--output", tmp_path / "p.csv") == 0
    assert list(read_csv(tmp_path / "p.csv")[0]) == ["prediction_logits", "prediction_probs"]
    assert run("export", module, data, "--weights", archive, "--output", tmp_path / "saved") == 1
    assert "needs to know how many" in capfd.readouterr().err


def test_a_reader_of_shards_gives_rows_to_layers_of_the_preprocessing_package(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    archive = tmp_path / "m.zip"
    assert run("train", "clicks.hashed", "700", "--num_epochs", "4", "--output", archive) == 0
    assert run("evaluate", "clicks.hashed", "100", "--weights", archive) == 0
    assert figures(capfd.readouterr().out)["accuracy"] == 1.0


@pytest.mark.soak
@pytest.mark.parametrize(
    "cluster", [("--num_ps_pods", "2"), ("--distribution_strategy", "AllreduceStrategy")]
)
@pytest.mark.parametrize("module", ["stripes.net", "clicks.factorization"])
def test_workers_train_a_module_of_elasticdl(
    module: str, cluster: tuple[str, ...], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write = write_stripes if module == "stripes.net" else write_clicks
    write(tmp_path / "train.recordio", 640)
    train = ("--num_epochs", "6", "--num_workers", "2", *cluster, "--output", tmp_path / "m.zip")
    assert run("train", module, tmp_path / "train.recordio", *train) == 0
    use = ("--weights", tmp_path / "m.zip", "--num_workers", "2")
    assert run("evaluate", module, tmp_path / "train.recordio", *use) == 0
    measured = figures(capfd.readouterr().out)
    assert max(value for name, value in measured.items() if name.endswith("accuracy")) > 0.85
    predict = (*use, "--output", tmp_path / "p.csv")
    assert run("predict", module, tmp_path / "train.recordio", *predict) == 0
    assert len((tmp_path / "p.csv").read_text().splitlines()) == 641


def test_the_archive_tells_the_module_and_its_functions(tmp_path: Path) -> None:
    write_people(tmp_path / "people.csv", 60)
    more = ("--feed", "dataset_fn", "--embedding_threshold", "1000", "--output", tmp_path / "m.zip")
    assert run("train", "people.columns", tmp_path / "people.csv", *more) == 0
    spec = read_archive(tmp_path / "m.zip").spec
    assert spec.zoo is not None
    assert (spec.zoo.module, spec.zoo.functions) == ("people.columns", {"feed": "dataset_fn"})
    assert spec.zoo.embedding_threshold == 1000


def test_a_dataset_of_tensorflow_feeds_a_model_of_pytorch(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_stripes(tmp_path / "train.recordio", 640)
    more = ("--framework", "torch", "--num_epochs", "5", "--output", tmp_path / "m.zip")
    assert run("train", "mixed.net", tmp_path / "train.recordio", *more) == 0
    use = ("--framework", "torch", "--weights", tmp_path / "m.zip")
    assert run("evaluate", "mixed.net", tmp_path / "train.recordio", *use) == 0
    assert figures(capfd.readouterr().out)["accuracy"] > 0.95
