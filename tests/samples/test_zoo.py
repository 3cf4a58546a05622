"""The hand-written modules of samples/zoo, run by the `edl` command in a process of its own."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

from edl.data.recordio import read_records
from edl.models.archive import read_archive

ZOO = Path(__file__).parents[2] / "samples" / "zoo"


def run(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "edl.cli.main", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=300, check=False)


def figures(out: str) -> dict[str, float]:
    return {name: float(value) for name, value in (line.split() for line in out.splitlines())}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What samples/zoo/make_data.py writes."""
    folder = tmp_path_factory.mktemp("data")
    subprocess.run([sys.executable, ZOO / "make_data.py", folder], check=True, timeout=120)
    return folder


def trained_digits(module: str, data: Path, folder: Path) -> list[str | Path]:
    """The arguments that name the module, of which `d.zip` in the folder is trained."""
    model = ["--model_zoo", ZOO, "--model_def", f"digits.{module}.custom_model"]
    train = ["--training_data", data / "digits" / "train-*.recordio", "--num_epochs", "15"]
    trained = run("train", *model, *train, "--model_params", "filters=8", "--output", "d.zip", cwd=folder)
    assert trained.returncode == 0, trained.stderr
    assert "1,500 rows" in trained.stderr
    archive = read_archive(folder / "d.zip")
    assert archive.spec.label.column == "digit"
    assert f"digits/{module}.py" in archive.program
    return model


@pytest.mark.soak
def test_digits_in_recordio_are_learnt_and_measured_in_pytorch(data: Path, tmp_path: Path) -> None:
    model = trained_digits("torch_net", data, tmp_path)
    test = ["--validation_data", data / "digits" / "test.recordio", "--weights", "d.zip"]
    measured = run("evaluate", *model, *test, cwd=tmp_path)
    assert figures(measured.stdout)["accuracy"] > 0.93, measured.stderr


@pytest.mark.soak
@pytest.mark.parametrize(
    ("module", "data_file", "epochs"),
    [
        ("digits.torch_dataset.custom_model", "digits", "40"),
        ("iris.torch_stream.Net", "iris.csv", "15"),
    ],
)
def test_rows_come_by_datasets_of_pytorch(
    module: str, data_file: str, epochs: str, data: Path, tmp_path: Path
) -> None:
    rows = data / data_file if data_file.endswith("csv") else data / data_file / "t*.recordio"
    trained = run(
        *(
            "train",
            "--model_zoo",
            ZOO,
            "--model_def",
            module,
            "--training_data",
            rows,
            "--num_epochs",
            epochs,
        ),
        *("--minibatch_size", "16"),
        cwd=tmp_path,
    )
    assert figures(trained.stdout)["accuracy"] > 0.9, trained.stderr


@pytest.mark.soak
def test_digits_in_recordio_are_learnt_and_predicted_in_keras(data: Path, tmp_path: Path) -> None:
    model = trained_digits("keras_net", data, tmp_path)
    test = data / "digits" / "test.recordio"
    predicted = run("predict", *model, "--prediction_data", test, "--weights", "d.zip", cwd=tmp_path)
    rows = list(csv.DictReader(predicted.stdout.splitlines()))
    assert rows[0].keys() >= {"digit", "digit_confidence", "digit_prob_9"}
    right = [int(row["digit"]) == record[64] for row, record in zip(rows, read_records(test), strict=True)]
    assert sum(right) > 0.93 * 297


@pytest.mark.soak
def test_iris_in_csv_is_learnt_with_a_loss_of_another_module(data: Path, tmp_path: Path) -> None:
    model = ["--model_zoo", ZOO, "--model_def", "iris.torch_dnn.Net", "--training_data", data / "iris.csv"]
    more = ["--model_params", "units=[32, 16]", "--loss", "losses.smoothed", "--num_epochs", "30"]
    trained = run("train", *model, *more, "--minibatch_size", "16", "--log_loss_steps", "100", cwd=tmp_path)
    assert trained.returncode == 0, trained.stderr
    assert figures(trained.stdout)["accuracy"] > 0.95
    assert read_archive(tmp_path / "model.zip").spec.model.params == {"units": (32, 16)}


@pytest.mark.soak
def test_iris_with_held_out_rows_ends_when_its_own_callback_says_so(data: Path, tmp_path: Path) -> None:
    header, *rows = (data / "iris.csv").read_text().splitlines()
    (tmp_path / "train.csv").write_text("\n".join([header, *rows[:120]]))
    (tmp_path / "test.csv").write_text("\n".join([header, *rows[120:]]))
    trained = run(
        *("train", "--model_zoo", ZOO, "--model_def", "iris.keras_dnn.custom_model", "--num_epochs", "300"),
        *("--training_data", "train.csv", "--validation_data", "test.csv", "--minibatch_size", "16"),
        *("--num_minibatches_per_task", "4", "--evaluation_steps", "20"),
        cwd=tmp_path,
    )
    assert trained.returncode == 0, trained.stderr
    assert "the loss is 0.0" in trained.stderr
    assert figures(trained.stdout)["accuracy"] > 0.9
    assert "measured on the validation rows" in trained.stderr


@pytest.fixture(scope="module")
def clicks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small click log, in which pairs of ids are seen often."""
    folder = tmp_path_factory.mktemp("clicks")
    size = ("--rows", "20000", "--ids", "50")
    subprocess.run(
        [sys.executable, ZOO / "click_log" / "generate.py", folder, *size], check=True, timeout=120
    )
    return folder


@pytest.mark.soak
@pytest.mark.parametrize(
    ("module", "params", "least", "most"),
    [
        ("torch_deepfm.DeepFM", "linear=True", 0.62, 0.7),
        ("torch_deepfm.DeepFM", "", 0.75, 1.0),
        pytest.param("torch_wide_deep.WideDeep", "", 0.73, 1.0, marks=pytest.mark.soak),
        pytest.param("keras_deepfm.custom_model", "", 0.75, 1.0, marks=pytest.mark.soak),
        pytest.param("keras_wide_deep.custom_model", "", 0.73, 1.0, marks=pytest.mark.soak),
    ],
)
def test_models_of_pairs_find_in_a_click_log_what_a_linear_one_cannot(
    module: str, params: str, least: float, most: float, clicks: Path, tmp_path: Path
) -> None:
    trained = run(
        *("train", "--model_zoo", ZOO, "--model_def", f"click_log.{module}", "--model_params", params),
        *("--training_data", clicks / "train.parquet", "--validation_data", clicks / "test.parquet"),
        *("--num_epochs", "4", "--minibatch_size", "64"),
        cwd=tmp_path,
    )
    assert trained.returncode == 0, trained.stderr
    assert least < figures(trained.stdout)["auc"] < most


@pytest.mark.soak
def test_an_error_of_a_module_is_its_own_line(data: Path, tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(
        (ZOO / "iris" / "torch_dnn.py").read_text().replace("return F.cross", "return 1 / 0, F.cross")
    )
    failed = run("train", "--model_def", "net.Net", "--training_data", data / "iris.csv", cwd=tmp_path)
    assert failed.returncode == 1
    first, second = failed.stderr.splitlines()[-2:]
    assert "net.py:" in first
    assert "in loss: ZeroDivisionError" in first
    assert second.startswith("hint: return 1 / 0")
