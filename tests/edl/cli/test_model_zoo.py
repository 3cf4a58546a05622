"""From a command line to the JobSpec of a hand-written module."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from edl.cli.cluster_arguments import cluster
from edl.cli.main import _options, main
from edl.cli.model_zoo import job_spec, parameters, write_program
from edl.data.files.file_ranges import pin_files
from edl.data.pinned import write_pinned
from edl.errors import SemanticError, SpecError
from edl.jobs import job_folder
from edl.jobs.cores import available_cores
from edl.models.archive import read_archive
from edl.program import user_model
from edl.run.training_client import TrainingProcess
from edl.spec import Cluster, Evaluation, JobSpec, Training, from_json, to_json

SOURCE = "import torch\n\ndef custom_model(units, kind='a'):\n    raise RuntimeError\n"


@pytest.fixture(autouse=True)
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(user_model, "_added", [])
    (tmp_path / "zoo_job_net.py").write_text(SOURCE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def options(*more: str, kind: str = "train") -> argparse.Namespace:
    given = ["--model_def", "zoo_job_net.custom_model", "--training_data", "x.csv"]
    return _options([kind, *given, *more])


def spec_of(*more: str) -> JobSpec:
    return job_spec(options("--model_params", "units=3", *more))


def test_the_command_line_becomes_a_spec_that_is_stored_and_read(zoo: Path) -> None:
    spec = job_spec(
        options(
            *("--model_params", "units=[16, 8]; kind='x; y'", "--num_epochs", "3", "--minibatch_size", "32"),
            *("--num_minibatches_per_task", "8", "--max_step", "99", "--validation_data", "y.csv"),
            *("--evaluation_steps", "10", "--evaluation_throttle_secs", "5", "--job_name", "my-job.1"),
            *("--loss", "losses.mine", "--feed", "feed", "--data_reader_params", "table='t'"),
            *("--device", "cpu", "--precision", "bfloat16"),
        )
    )
    assert from_json(to_json(spec)) == spec
    assert spec.model.params == {"units": (16, 8), "kind": "x; y"}
    assert spec.training == Training(epochs=3, batch_size=32, max_steps=99, minibatches_per_task=8)
    assert spec.evaluation == Evaluation(steps=10, secs=5.0)
    assert (spec.framework, spec.query.source, spec.output.name) == ("torch", "x.csv", "my-job.1")
    assert (spec.device, spec.precision) == ("cpu", "bfloat16")
    assert spec.zoo is not None
    assert (spec.zoo.path, spec.zoo.module) == (str(zoo), "zoo_job_net")
    assert (spec.zoo.functions, spec.zoo.reader_params) == ({"loss": "losses.mine"}, {"table": "t"})


@pytest.mark.variants(4)
@pytest.mark.parametrize("name", ["$(rm -rf x)", "a b", "'; DROP", '"', "", "-rf", "a/b", "a" * 64])
def test_a20_a_job_name_that_a_shell_would_run_is_rejected(name: str) -> None:
    with pytest.raises(SemanticError, match="is not the name of a job"):
        spec_of(f"--job_name={name}")


@pytest.mark.variants(8)
@pytest.mark.parametrize("flag", ["--model_params", "--data_reader_params"])
@pytest.mark.parametrize(
    "value",
    [
        "units=__import__('pathlib').Path('ran').touch()",
        "units=open('ran', 'w')",
        "__import__('pathlib').Path('ran').touch()",
        "units=(lambda: open('ran', 'w'))()",
        "units=[open('ran', 'w') for _ in range(1)]",
        "import os",
        "units=f'{open(1)}'",
        "units=" + "(" * 5000,
        "units=1; units=2",
        "units={'a': 1}",
    ],
)
def test_a20_a_parameter_is_a_literal_and_nothing_is_executed(flag: str, value: str, zoo: Path) -> None:
    with pytest.raises(SemanticError, match=flag):
        job_spec(options("--model_params", "units=3", f"{flag}={value}"))
    assert not (zoo / "ran").exists()


def test_a20_a_function_name_that_is_none_is_rejected() -> None:
    with pytest.raises(SemanticError, match="is not the name of a function"):
        spec_of("--loss", "x'); import os #")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        (" a = 1 ;b='x;y'; ", {"a": 1, "b": "x;y"}),
        ("a=-1.5; b=None; c=True; d=[1, 'x']", {"a": -1.5, "b": None, "c": True, "d": (1, "x")}),
    ],
)
def test_parameters_are_literals_of_python(text: str, found: dict[str, Any]) -> None:
    assert parameters(text, "--model_params") == found


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ((), "custom_model needs its parameter units"),
        (("--model_params", "units=1; kid='a'"), "has no parameter kid"),
        (("--model_params", "units=1", "--distribution_strategy", "asynk"), "no strategy asynk"),
        (
            (
                "--model_params",
                "units=1",
                "--distribution_strategy",
                "AllreduceStrategy",
                "--num_ps_pods",
                "1",
            ),
            "--distribution_strategy: the strategy allreduce has no parameter servers",
        ),
    ],
)
def test_what_cannot_run_is_named_before_anything_does(more: tuple[str, ...], words: str) -> None:
    with pytest.raises(SemanticError, match=words):
        job_spec(options(*more))


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("written", "found"),
    [
        ((), Cluster(2, 0, "allreduce")),
        (("--distribution_strategy", "AllreduceStrategy"), Cluster(2, 0, "allreduce")),
        (("--distribution_strategy", "ParameterServerStrategy"), Cluster(2, 1, "async")),
        (
            ("--distribution_strategy", "ParameterServerStrategy", "--grads_to_wait", "2"),
            Cluster(2, 1, "sync", grads_to_wait=2),
        ),
        (
            ("--distribution_strategy", "ParameterServerStrategy", "--use_async", "false"),
            Cluster(2, 1, "sync", grads_to_wait=2),
        ),
        (("--num_ps_pods", "2"), Cluster(2, 2, "async")),
        (("--lr_staleness_modulation", "True"), Cluster(2, 1, "async", max_staleness=1)),
        (("--lr_staleness_modulation", "False"), Cluster(2, 0, "allreduce")),
        (
            ("--max_staleness", "4", "--durable_updates", "machine"),
            Cluster(2, 1, "async", durable_updates="machine", max_staleness=4),
        ),
    ],
)
def test_how_workers_share_a_training_is_written_as_in_elasticdl(
    written: tuple[str, ...], found: Cluster
) -> None:
    assert spec_of("--num_workers", "2", *written).cluster == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("auto:8", Cluster(2, 0, "allreduce", max_workers=8)),
        ("auto", Cluster(min(2, available_cores()), 0, "allreduce", max_workers=available_cores())),
    ],
)
def test_the_number_of_workers_may_be_automatic(words: str, found: Cluster) -> None:
    assert spec_of("--num_workers", words).cluster == found


def test_an_automatic_number_needs_a_maximum_on_a_cluster_and_is_for_trainings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SemanticError, match="does not know how many workers the cluster may run"):
        cluster(options("--num_workers", "auto", "--on", "kubernetes"))
    with pytest.raises(SystemExit):
        main(["predict", "--num_workers", "auto:4"])
    assert "edl predict takes a number; edl train takes auto" in capsys.readouterr().err


def test_tables_that_a_program_tells_of_count_where_nothing_is_written() -> None:
    assert cluster(options("--num_workers", "2"), in_tables=10**9) == Cluster(2, 1, "async")
    assert cluster(options("--num_workers", "2"), in_tables=10**6) == Cluster(2, 0, "allreduce")


def test_a_module_that_does_not_tell_its_framework_is_asked_for(zoo: Path) -> None:
    (zoo / "zoo_job_net.py").write_text(SOURCE.replace("import torch", ""))
    with pytest.raises(SemanticError, match="do not determine its framework"):
        spec_of()
    assert spec_of("--framework", "keras").framework == "keras"


def test_the_source_of_the_module_is_kept_and_requirements_are_noted(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (zoo / "requirements.txt").write_text("nothing\n")
    (zoo / "program").mkdir()
    spec = spec_of()
    write_program(zoo / "program", spec)
    assert from_json((zoo / "program" / "job.json").read_bytes()) == spec
    assert (zoo / "program" / "zoo_job_net.py").read_text() == SOURCE
    assert "requirements.txt is not read" in capsys.readouterr().err


def test_weights_that_are_no_archive_are_named(zoo: Path) -> None:
    (zoo / "w.zip").write_bytes(b"what")
    given = ["--model_def", "zoo_job_net.custom_model", "--prediction_data", "x.csv", "--weights", "w.zip"]
    with pytest.raises(SpecError, match=r"w\.zip|archive"):
        job_spec(_options(["predict", *given]))


NUMBERS = """
import numpy as np
import pyarrow as pa
import torch
from torch import nn

from edl import metrics


class Numbers:
    schema = pa.schema([("x", pa.float64()), ("blob", pa.binary())])

    def __init__(self, rows):
        self.rows = rows

    def read(self, start, end, columns=None):
        x = np.arange(start, end) / self.rows
        batch = pa.record_batch({"x": x, "blob": [b"-"] * len(x)}, schema=self.schema)
        yield batch if columns is None else batch.select(columns)


def custom_data_reader(origin, *, rows):
    assert origin == "numbers"
    return Numbers(rows)


def custom_model(outputs, bias=True):
    return nn.Linear(1, outputs, bias=bias)


def loss(labels, predictions):
    return ((predictions - labels) ** 2).mean(axis=1)


def optimizer(parameters):
    return torch.optim.SGD(parameters, 0.5)


def feed(batch, mode):
    x = batch["x"].to_numpy()[:, None]
    return x, None if mode == "predict" else np.concatenate([x, 2 * x], axis=1)


def eval_metrics_fn():
    return {}
"""


def test_a_module_with_its_own_reader_and_several_numbers_to_predict_runs_end_to_end(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (zoo / "zoo_numbers.py").write_text(NUMBERS)
    model = ["--model_def", "zoo_numbers.custom_model", "--data_reader_params", "rows=500"]
    train = ["--training_data", "numbers", "--model_params", "outputs=2", "--num_epochs", "40"]
    assert main(["train", *model, *train]) == 0, capsys.readouterr().err
    assert read_archive(zoo / "model.zip").lineage.rows == 500

    (zoo / "zoo_numbers.py").write_text(NUMBERS + "# changed\n")
    use = ["--prediction_data", "numbers", "--weights", "model.zip", "--output", "p.csv"]
    assert main(["predict", *model, *use]) == 0, capsys.readouterr().err
    assert "note: zoo_numbers has changed since model.zip was trained" in capsys.readouterr().err
    header, *rows = (zoo / "p.csv").read_text().splitlines()
    assert header == '"x","prediction_0","prediction_1"'
    found = [float(value) for value in rows[250].split(",")]
    assert found == pytest.approx([0.5, 0.5, 1.0], abs=0.05)
    assert len(rows) == 500


def test_a_prediction_reads_a_csv_file_as_the_training_did(
    zoo: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without_reader = NUMBERS.partition("class Numbers")[0] + NUMBERS.partition("rows)\n\n\n")[2]
    (zoo / "zoo_numbers.py").write_text(without_reader)
    (zoo / "x.csv").write_text("x;k\n" + "0,5;a\n" * 20)
    (zoo / "later.csv").write_text("x;k\n" + "1.500;a\n" * 20)
    model = ["--model_def", "zoo_numbers.custom_model", "--model_params", "outputs=2"]
    assert main(["train", *model, "--training_data", "x.csv"]) == 0, capsys.readouterr().err
    query = read_archive(zoo / "model.zip").spec.query
    assert query.readings == {"x": "DOUBLE ,"}
    assert [(field.name, field.type) for field in query.schema] == [("x", "double"), ("k", "string")]
    assert main(["predict", *model, "--prediction_data", "later.csv", "--weights", "model.zip"]) == 1
    assert "column x has the value '1.500' in row 1" in capsys.readouterr().err


def test_a_secret_in_the_name_of_the_data_is_refused(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (zoo / "zoo_numbers.py").write_text(NUMBERS)
    model = [
        "--model_def",
        "zoo_numbers.custom_model",
        "--data_reader_params",
        "rows=5",
        "--model_params",
        "outputs=2",
    ]
    assert main(["train", *model, "--training_data", "db://me:secret@host/t"]) == 1
    err = capsys.readouterr().err
    assert "holds a secret" in err
    assert "secret@" not in err


@pytest.mark.soak
def test_the_job_folder_alone_tells_another_process_what_to_run(zoo: Path, process: TrainingProcess) -> None:
    (zoo / "zoo_numbers.py").write_text(
        NUMBERS.partition("class Numbers")[0] + NUMBERS.partition("rows)\n\n\n")[2]
    )
    (zoo / "x.csv").write_text("x\n" + "\n".join(str(number / 500) for number in range(500)))
    model = ["--model_def", "zoo_numbers.custom_model", "--model_params", "outputs=2"]
    job = job_folder.create("train")
    write_program(job.program, job_spec(_options(["train", *model, "--training_data", "x.csv"])))
    write_pinned(job.rows, pin_files("x.csv", job.rows))
    outcome = process.run(job.program, job.path, lambda event: None)
    assert (outcome.rows, outcome.steps) == (500, 8)
    assert read_archive(job.path / outcome.archive).spec.query.source == "x.csv"


LINE = """
import torch
from torch import nn


def custom_model():
    return nn.Linear(2, 1)


def loss(labels, predictions):
    return (labels - predictions) ** 2


def optimizer(parameters):
    return torch.optim.SGD(parameters, 0.1)


def feed(batch, mode):
    import numpy as np

    features = np.column_stack([batch.column(name).to_numpy() * 1.0 for name in ("a", "b")])
    return features, None if mode == "predict" else batch.column("y").to_numpy().reshape(-1, 1) * 1.0


def eval_metrics_fn():
    return {}
"""


def test_a_module_is_exported_with_some_rows_as_an_example(
    zoo: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (zoo / "zoo_line.py").write_text(LINE)
    (zoo / "rows.csv").write_text("a,b,y\n" + "1,2,3\n4,5,6\n7,8,9\n" * 9)
    model = ("--model_def", "zoo_line.custom_model")
    assert main(["train", *model, "--training_data", "rows.csv", "--output", "m.zip"]) == 0
    export = ("export", *model, "--weights", "m.zip", "--prediction_data", "rows.csv", "--output")
    assert main([*export, "m.pt2"]) == 0
    program = torch.export.load("m.pt2").module()
    assert (
        main(["predict", *model, "--prediction_data", "rows.csv", "--weights", "m.zip", "--output", "p.csv"])
        == 0
    )
    first = float((zoo / "p.csv").read_text().splitlines()[1].split(",")[-1])
    assert program(torch.tensor([[1.0, 2.0]])).item() == pytest.approx(first, rel=1e-6)
    assert main([*export, "m.pt2"]) == 1
    assert "m.pt2 is there already" in capfd.readouterr().err


def test_an_export_of_a_module_needs_rows(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["export", "--model_def", "zoo_job_net.custom_model", "--weights", "m.zip", "--output", "m.pt2"]
    assert main(command) == 2
    assert "--prediction_data is required" in capsys.readouterr().err


def test_an_export_of_a_module_needs_two_rows(zoo: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (zoo / "zoo_line.py").write_text(LINE)
    (zoo / "rows.csv").write_text("a,b,y\n" + "1,2,3\n4,5,6\n" * 9)
    (zoo / "row.csv").write_text("a,b,y\n1,2,3\n")
    model = ("--model_def", "zoo_line.custom_model")
    assert main(["train", *model, "--training_data", "rows.csv", "--output", "m.zip"]) == 0
    export = ("export", *model, "--weights", "m.zip", "--prediction_data", "row.csv")
    assert main([*export, "--output", "m.pt2"]) == 1
    assert "an export needs 2 rows as an example, and --prediction_data has 1" in capsys.readouterr().err
    assert not (zoo / "m.pt2").exists()
