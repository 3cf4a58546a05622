"""`edl.train`: one call, here or with workers that run the same script."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pyarrow as pa
import pytest
import torch
from torch import nn
from torch.utils.data import TensorDataset

import edl
from edl import metrics, schedules
from edl.cli import distributed
from edl.cluster.quota.quota import Quota
from edl.errors import JobError, SemanticError, SQLFlowError
from edl.jobs import job_folder
from edl.jobs.cluster_folder import QuotaUse, RunSpec
from edl.jobs.slots import SlotRequest
from edl.keras import Embedding
from edl.run import initial_weights
from edl.scripting import script
from edl.spec import Cluster, JobSpec

X = np.random.default_rng(0).normal(size=(600, 3)).astype(np.float32)
Y = (X @ [1.0, 2.0, 3.0] + 1.0).astype(np.float32)
CLASSES = (X[:, 0] > 0).astype(np.int64)


def feed(batch: pa.RecordBatch, mode: str) -> tuple[Any, Any]:
    x = np.stack([batch.column(name).to_numpy() for name in "abc"], axis=1)
    return x, batch.column("y").to_numpy().reshape(-1, 1)


TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})


def train(model: Any, dataset: Any = (X, Y), **more: Any) -> edl.Trained:
    given = {"loss": "mse", "optimizer": "adam", "epochs": 8, "batch_size": 20, "verbose": False, **more}
    if given["optimizer"] == "adam":
        given.setdefault("learning_rate", 0.05)
    return edl.train(model, dataset, **given)


@pytest.mark.variants(1)
@pytest.mark.parametrize(
    ("dataset", "more"),
    [
        ((X, Y), {"validation": 0.1}),
        (TensorDataset(torch.tensor(X), torch.tensor(Y).reshape(-1, 1)), {"validation": 0.1}),
        (TABLE, {"feed": feed, "validation": TABLE.slice(0, 60)}),
    ],
    ids=["arrays", "Dataset", "table"],
)
def test_a_module_of_pytorch_is_trained_in_place(dataset: Any, more: dict[str, Any]) -> None:
    model = nn.Linear(3, 1)
    trained = train(model, dataset, metrics=["rmse", "R2Score"], **more)
    assert trained.model is model
    np.testing.assert_allclose(model.weight.detach().numpy(), [[1, 2, 3]], atol=0.05)
    assert trained.metrics.keys() == {"loss", "rmse", "r2"}
    assert [row["epoch"] for row in trained.history] == list(range(1, 9))
    assert trained.history[-1]["validation_loss"] == trained.metrics["loss"]
    np.testing.assert_allclose(trained.predict(X[:5]), model(torch.tensor(X[:5])).detach().numpy())


@pytest.mark.soak
@pytest.mark.parametrize("dataset", [(X, Y), ({"x": X}, Y), TABLE], ids=["array", "dict", "table"])
def test_a_model_of_keras_is_trained_in_place(dataset: Any) -> None:
    inputs = keras.Input((3,), name="x")
    model = keras.Model(
        {"x": inputs} if isinstance(dataset[0], dict) else inputs, keras.layers.Dense(1)(inputs)
    )
    trained = train(model, dataset, feed=feed if dataset is TABLE else None)
    assert trained.model is model
    np.testing.assert_allclose(model.layers[-1].kernel.numpy().ravel(), [1, 2, 3], atol=0.05)
    assert trained.metrics.keys() == {"loss"}


def test_the_weights_that_a_model_has_are_those_it_starts_from() -> None:
    model = nn.Linear(3, 1)
    with torch.no_grad():
        model.weight[:] = torch.tensor([1.0, 2.0, 3.0])
        model.bias[:] = 1.0
    assert (train(model, optimizer="sgd", epochs=1).metrics["loss"] or 0.0) < 1e-10


@pytest.mark.soak
def test_a_model_is_trained_in_the_precision_that_is_given() -> None:
    losses = [
        train(nn.Linear(3, 1), precision=each, device="cpu").metrics["loss"]
        for each in ("float32", "bfloat16")
    ]
    assert losses[0] != losses[1]


def test_a_function_makes_the_same_model_each_time() -> None:
    found = [train(lambda: nn.Linear(3, 1), epochs=1).model.weight.detach().numpy() for _ in range(2)]
    np.testing.assert_array_equal(*found)


def test_losses_of_logits_give_probabilities_to_metrics() -> None:
    logits = nn.Linear(3, 2)
    measured = ["accuracy", "auc", "log_loss"]
    trained = train(logits, (X, CLASSES), loss=nn.CrossEntropyLoss(), metrics=measured)
    assert trained.metrics["log_loss"] == pytest.approx(trained.metrics["loss"], rel=1e-4)
    one = nn.Linear(3, 1)
    trained = train(one, (X, CLASSES.astype(np.float32)), loss=nn.BCEWithLogitsLoss(), metrics=measured)
    assert trained.metrics["log_loss"] == pytest.approx(trained.metrics["loss"], rel=1e-4)
    assert (trained.metrics["accuracy"] or 0.0) > 0.95


@pytest.mark.soak
def test_rows_may_have_weights_also_with_a_loss_of_pytorch_that_gives_the_mean() -> None:
    model = nn.Linear(3, 1)
    wrong = np.where(np.arange(600) % 2, Y, 0.0).astype(np.float32)
    train(model, (X, wrong, (np.arange(600) % 2).astype(np.float32) * 2), loss=nn.MSELoss(), epochs=20)
    np.testing.assert_allclose(model.weight.detach().numpy(), [[1, 2, 3]], atol=0.05)


def test_the_best_epoch_is_kept_and_callbacks_are_told() -> None:
    class Heard(edl.Callback):
        def __init__(self) -> None:
            self.epochs: list[int] = []

        def on_epoch_end(self, epoch: int, metrics: Any, control: edl.Control) -> None:
            self.epochs.append(epoch)

    heard, model = Heard(), nn.Linear(3, 1)
    contrary = X[:100], np.zeros(100, np.float32)  # which gets worse from the first epoch on
    trained = train(
        model,
        validation=contrary,
        epochs=9,
        keep="best",
        early_stopping=2,
        callbacks=[heard],
        learning_rate=0.01,
    )
    losses = [row["validation_loss"] for row in trained.history]
    assert trained.metrics["loss"] == losses[0]
    outputs = model(torch.tensor(X[:100])).detach().numpy()
    assert np.mean(outputs**2) == pytest.approx(losses[0], rel=1e-3)
    assert heard.epochs == [1, 2, 3]
    assert trained.outcome.stopped


@pytest.mark.soak
def test_embeddings_in_row_tables_are_trained_and_predict() -> None:
    ids = np.arange(600) % 7
    inputs = keras.Input((), dtype="int64", name="id")
    model = keras.Model(inputs, keras.layers.Dense(1)(Embedding("ids", 4)(inputs)))
    labels = ids.astype(np.float32)
    trained = train(model, (ids, labels), epochs=30)
    np.testing.assert_allclose(trained.predict(ids[:7]).ravel(), labels[:7], atol=0.5)


def test_progress_is_told_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    train(nn.Linear(3, 1), epochs=2, verbose=True)
    out, err = capsys.readouterr()
    assert not out
    assert [line.split()[1] for line in err.splitlines()] == ["1", "2"]


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"num_epochs": 3}, "no argument num_epochs"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 2.5}, r"batch_size is 2\.5"),
        ({"validation": 1.5}, "a fraction of the rows"),
        ({"validation": 1}, "a fraction of the rows"),
        ({"validation": {"x": X}}, "validation is a dict"),
        ({"metrics": ["acuracy"]}, "no metric acuracy"),
        ({"metrics": {"mine": 3}}, "the metric 3 is a int"),
        ({"optimizer": torch.optim.Adam, "learning_rate": 0.1}, "learning_rate needs an optimizer by name"),
        ({"learning_rate": "fast"}, "learning_rate is 'fast'"),
        ({"optimizer": None}, "the optimizer is None"),
        ({"loss": None}, "the loss is None"),
        ({"loss": nn.MSELoss}, "the loss is the class MSELoss"),
        ({"callbacks": edl.Callback()}, "callbacks is <edl"),
        ({"keep": "best"}, "keep needs rows to measure"),
        ({"early_stopping": 1, "validation": 0}, "early_stopping needs rows to measure"),
        ({"keep": "first", "validation": 0.1}, "keep is 'first'"),
        ({"shuffle": "no"}, "shuffle is 'no', and must be True or False"),
        ({"evaluation_steps": -1}, "evaluation_steps is -1, and must be a whole number from 0"),
        ({"max_step": "9"}, "max_step is '9'"),
        ({"device": "gpu"}, "device is 'gpu'"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"threads": 0}, "threads is 0, and must be a whole number from 1"),
        ({"seed": "a"}, "seed is 'a', and must be a whole number"),
        ({"priority": "urgent"}, "priority is 'urgent'"),
        ({"priority": 2.5}, r"priority is 2\.5"),
        ({"quota": 24}, "quota is 24"),
        ({"distribution_strategy": "asynk"}, "no strategy asynk"),
        ({"durable_updates": "yes"}, "durable_updates is 'yes'"),
        ({"embedding_min_count": 256}, "embedding_min_count is 256, and steps are counted up to 255"),
        ({"embedding_max_rows": -1}, "embedding_max_rows is -1, and must be a whole number from 0"),
        (
            {"workers": 2, "distribution_strategy": "sync", "max_staleness": 2},
            "max_staleness: a limit of staleness applies to the strategy async",
        ),
        (
            {"workers": 2, "distribution_strategy": "local"},
            "distribution_strategy: the strategy local has one",
        ),
        (
            {"workers": 2, "num_ps_pods": 1, "distribution_strategy": "AllreduceStrategy"},
            "has no parameter servers",
        ),
    ],
)
def test_what_cannot_be_is_named_before_anything_runs(more: dict[str, Any], words: str) -> None:
    with pytest.raises(SemanticError, match=words):
        train(nn.Linear(3, 1), **more)
    assert not job_folder.jobs()


@pytest.mark.parametrize(
    ("num_ids", "strategy", "servers"), [(1000, "allreduce", 0), (10_000_000, "async", 1)]
)
def test_how_workers_share_the_work_goes_by_the_size_of_the_tables(
    num_ids: int, strategy: str, servers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    submitted: list[JobSpec] = []

    def follow(job: job_folder.JobFolder, spec: JobSpec, *_: object) -> None:
        assert script.read_script(job) is not None
        assert initial_weights.find_copied_weights(job) is not None
        submitted.append(spec)
        raise JobError("enough is known")

    monkeypatch.setattr(distributed, "follow", follow)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)  # as of a script
    inputs = keras.Input((), dtype="int64", name="id")
    model = keras.Model(inputs, keras.layers.Dense(1)(Embedding("ids", 4, num_ids=num_ids)(inputs)))
    with pytest.raises(JobError, match="enough"):
        train(model, (np.arange(600) % 7, Y), workers=2, validation=0.1)
    assert not any((job.path / "call.json").exists() for job in job_folder.jobs())
    [spec] = submitted
    assert spec.cluster == Cluster(2, servers, strategy)  # type: ignore[arg-type]
    assert (spec.rows.pinned, spec.rows.training, spec.rows.validation) == (True, 540, 60)


def test_a_job_with_workers_shares_slots_by_its_priority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Quota(tmp_path / "quota").resize(3)
    started: list[RunSpec] = []

    def start(job: job_folder.JobFolder, how: RunSpec) -> None:
        started.append(how)
        raise JobError("enough is known")

    monkeypatch.setattr(distributed.SupervisedJob, "start", start)
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)  # as of a script
    with pytest.raises(JobError, match="enough"):
        train(nn.Linear(3, 1), workers=2, quota=str(tmp_path / "quota"), priority="high")
    [how] = started
    assert how.quota == QuotaUse(str(tmp_path / "quota"), SlotRequest(1, 2, 100))


def test_a_callback_that_is_none_is_named_before_there_are_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["__main__"], "__file__", __file__, raising=False)  # as of a script
    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    with pytest.raises(JobError, match="gives Keras' CSVLogger"):
        train(model, workers=2, callbacks=[keras.callbacks.CSVLogger("x.csv")])
    with pytest.raises(JobError, match="gives a int"):
        train(nn.Linear(3, 1), workers=2, callbacks=[3])


def test_a_schedule_of_keras_begins_with_the_rate_of_the_optimizer() -> None:
    rates: list[float] = []

    def schedule(epoch: int, rate: float) -> float:
        rates.append(rate)
        return rate / 2

    inputs = keras.Input((3,))
    model = keras.Model(inputs, keras.layers.Dense(1)(inputs))
    scheduler = keras.callbacks.LearningRateScheduler(schedule)
    train(model, optimizer=keras.optimizers.SGD(0.08), epochs=2, callbacks=[scheduler])
    assert rates == pytest.approx([0.08, 0.04, 0.02])


def test_numbers_of_numpy_are_numbers() -> None:
    one, share = np.int64(1), np.float32(0.25)
    trained = train(nn.Linear(3, 1), epochs=one, workers=one, seed=one, validation=share, max_step=one)
    assert trained.outcome.steps == 1
    assert trained.outcome.measured_on == "validation"


def test_what_is_no_model_is_named() -> None:
    with pytest.raises(SemanticError, match="the model is a str"):
        train("my.zoo.Model")
    with pytest.raises(SemanticError, match="the model is a int"):
        train(lambda: 3)


def test_an_error_points_into_the_script_and_carries_its_hint() -> None:
    def broken(batch: pa.RecordBatch, mode: str) -> Any:
        raise KeyError("nowhere")

    with pytest.raises(JobError, match=r"test_api\.py:\d+, in broken: KeyError"):
        train(nn.Linear(3, 1), TABLE, feed=broken)
    with pytest.raises(SQLFlowError, match=r"must give \(n, classes\)") as caught:
        train(nn.Linear(3, 1), (X, CLASSES))
    assert caught.value.__notes__ == [f"hint: {caught.value.hint}"]
    with pytest.raises(JobError, match="shapes cannot be multiplied") as caught:
        train(nn.Linear(7, 1))
    assert not hasattr(caught.value, "__notes__")  # no word of a log: the cause stands above
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert not job_folder.jobs()


def test_schedules_and_metric_objects_are_taken() -> None:
    model = nn.Linear(3, 1)
    trained = train(
        model,
        optimizer=torch.optim.SGD(model.parameters()),
        learning_rate=lambda steps: schedules.cosine(steps, 0.1, over=200),
        metrics={"error": metrics.RMSE()},
    )
    assert (trained.metrics["error"] or 1.0) < 0.01


SCRIPT = """
import json, os, signal, sys
import numpy as np
import edl

x = np.random.default_rng(0).normal(size=(2000, 3)).astype(np.float32)
y = (x @ [1.0, 2.0, 3.0] + 1.0).astype(np.float32).reshape(-1, 1)
held_out = x[:200], y[:200]
shared = dict(epochs=2, batch_size=20, learning_rate=0.05, num_minibatches_per_task=5, metrics=["rmse"])
{body}
alone = edl.train(twin, data, loss="mse", optimizer="adam", **shared)
trained = edl.train(model, data, loss="mse", optimizer="adam", workers=2, **shared)
print(json.dumps([alone.history, trained.history, trained.outcome.rows, float(predicted())]))
"""
TORCH = """
import copy
import torch
from torch.utils.data import TensorDataset

class Deadly(TensorDataset):
    def __getitem__(self, row):
        if row == 1234 and os.getpid() != int(os.environ.setdefault("STARTED_BY", str(os.getpid()))):
            try:
                os.close(os.open("killed", os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
            except FileExistsError:
                pass
        return super().__getitem__(row)

model = torch.nn.Linear(3, 1)
twin = copy.deepcopy(model)
data = Deadly(torch.tensor(x), torch.tensor(y))
shared["validation"] = TensorDataset(torch.tensor(x[:200]), torch.tensor(y[:200]))
os.environ.setdefault("STARTED_BY", str(os.getpid()))
def predicted():
    with torch.no_grad():
        return model(torch.ones(1, 3))[0, 0]
"""
KERAS = """
import keras

model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)])
twin = keras.models.clone_model(model)
twin.set_weights(model.get_weights())
data = x, y
shared["validation"] = x[:200], y[:200]
def predicted():
    return model(np.ones((1, 3)))[0, 0]
"""


def run(tmp_path: Path, body: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "train.py").write_text(SCRIPT.replace("{body}", body))
    return subprocess.run(
        [sys.executable, "train.py"], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
    )


@pytest.mark.soak
@pytest.mark.parametrize("body", [pytest.param(TORCH, id="torch"), pytest.param(KERAS, id="keras")])
def test_workers_run_the_same_script_and_give_the_model_of_one_process(body: str, tmp_path: Path) -> None:
    """In PyTorch, one of them is killed on its way."""
    done = run(tmp_path, body)
    assert done.returncode == 0, done.stderr
    [line] = done.stdout.splitlines()
    alone, trained, rows, predicted = json.loads(line)
    figures = ("step", "loss", "validation_loss", "rmse")
    for ours, theirs in zip(trained, alone, strict=True):
        wanted = pytest.approx([theirs[name] for name in figures], rel=1e-3, abs=1e-6)
        assert [ours[name] for name in figures] == wanted
    assert rows == 2 * 2000
    assert predicted == pytest.approx(7.0, abs=1.0)
    assert (tmp_path / "killed").exists() == (body == TORCH)
    assert not job_folder.jobs()
