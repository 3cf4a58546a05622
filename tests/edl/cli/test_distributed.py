"""The `edl` command with a master and workers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.jobs import job_folder
from edl.models.archive import read_archive
from edl.spec import ClassLabel, Rows
from tests.edl.cli.test_main import READER
from tests.edl.programs import simple

MODULE = """
import torch
from torch import nn
from torch.nn import functional as F

from edl import features as fc
from edl import metrics

LABEL = fc.label("y")


def custom_model():
    return nn.Linear(1, 1)


def loss(labels, predictions):
    return F.mse_loss(predictions, labels, reduction="none")


def optimizer(parameters, lr=0.1):
    return torch.optim.Adam(parameters, lr)


def feed(batch, mode):
    x = batch.column("x").to_numpy(zero_copy_only=False).astype("float32").reshape(-1, 1)
    return x, LABEL.transform(batch, mode)


def eval_metrics_fn():
    return {"rmse": metrics.RMSE()}
"""
DATASET = """

from torch.utils.data import Dataset


class Lines(Dataset):
    def __init__(self, batches, mode):
        self.rows = [feed(batch, mode) for batch in batches]

    def __len__(self):
        return sum(len(x) for x, _ in self.rows)

    def __getitem__(self, row):
        x, y = self.rows[0]
        return x[row], None if y is None else y[row]


def rows_of(reader, start, end, mode):
    return Lines(reader.read(start, end), mode)
"""
STREAM = """

from torch.utils.data import DataLoader, IterableDataset


class Lines(IterableDataset):
    def __init__(self, batches, mode):
        self.batches, self.mode = batches, mode

    def __iter__(self):
        return (feed(batch, self.mode) for batch in self.batches)


def rows_of(batches, mode):
    return DataLoader(Lines(batches, mode), batch_size=None)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows, label = Rows(False, 0, 0), ClassLabel("y", ("down", "up"))
    program = simple(tmp_path / "program", rows=rows, label=label, epochs=5, batch_size=20)
    (program / "reader.py").write_text(READER)
    return program


def output(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert main([str(argument) for argument in arguments]) == exit_codes.OK
    return capsys.readouterr().out


@pytest.mark.soak
def test_a_program_gives_the_same_with_workers_as_without(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone, served = tmp_path / "alone.zip", tmp_path / "served.zip"
    train = ("train", "--program", folder, "--output")
    assert output(capsys, *train, alone) == output(capsys, *train, served, "--num_workers", 1)
    one, other = read_archive(alone).weights(), read_archive(served).weights()
    assert all(np.array_equal(one[name], other[name]) for name in one)
    use = ("predict", "--program", folder, "--weights", served)
    assert output(capsys, *use) == output(capsys, *use, "--num_workers", 2)
    assert job_folder.jobs() == []


@pytest.mark.soak
def test_a_module_of_a_zoo_is_trained_and_measured_by_workers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "line.py").write_text(MODULE)
    rows = tmp_path / "rows.csv"
    rows.write_text("x,y\n" + "".join(f"{x / 100},{3 * x / 100 + 1}\n" for x in range(400)))
    model = ("--model_zoo", tmp_path / "zoo", "--model_def", "line.custom_model")
    archive = tmp_path / "m.zip"
    output(
        capsys,
        "train",
        *model,
        *("--training_data", rows, "--num_epochs", 20, "--minibatch_size", 50, "--output", archive),
        *("--num_workers", 1, "--checkpoint_steps", 10),
    )
    use = ("evaluate", *model, "--validation_data", rows, "--weights", archive)
    alone = output(capsys, *use)
    assert alone == output(capsys, *use, "--num_workers", 2)
    assert float(dict(line.split() for line in alone.splitlines())["rmse"]) < 1.0


@pytest.mark.soak
@pytest.mark.parametrize(("way", "source"), [("dataset", DATASET), ("stream", STREAM)])
def test_rows_that_come_by_a_loader_of_pytorch_give_the_same_with_workers(
    way: str, source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = source.replace("rows_of", way).replace("feed(", "arrays(")
    (tmp_path / f"plain_{way}.py").write_text(MODULE)
    (tmp_path / f"loading_{way}.py").write_text(MODULE.replace("def feed(", "def arrays(") + source)
    rows = tmp_path / "rows.csv"
    rows.write_text("x,y\n" + "".join(f"{x / 100},{3 * x / 100 + 1}\n" for x in range(400)))
    tasks = ("--minibatch_size", 50, "--num_minibatches_per_task", 2)
    train = ("--training_data", rows, "--num_epochs", 5, *tasks, "--output", tmp_path / "m.zip")
    use = ("--weights", tmp_path / "m.zip")

    def told(module: str, workers: int) -> list[str]:
        model = ("--model_zoo", tmp_path, "--model_def", f"{module}.custom_model")
        served = ("--num_workers", workers) if workers else ()
        return [
            output(capsys, "train", *model, *train, *served),
            output(capsys, "evaluate", *model, "--validation_data", rows, *use, *served),
            output(capsys, "predict", *model, "--prediction_data", rows, *use, *served),
        ]

    assert told(f"plain_{way}", 0) == told(f"loading_{way}", 0) == told(f"loading_{way}", 1)
