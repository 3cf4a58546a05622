"""Training jobs in one process, with PyTorch; what both frameworks owe stands in tests/edl/nn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from edl.checkpoints import GoneError
from edl.checkpoints.folder import SharedFolder
from edl.checkpoints.trainer import TrainerCheckpoint, TrainerPosition, complete, read_checkpoint
from edl.errors import JobError, SemanticError
from edl.frameworks import Adapter, Minibatches
from edl.frameworks.adapter import Floats
from edl.jobs.events import EpochEnd, Progress
from edl.jobs.outcome import JobCancelledError
from edl.program import UserCodeError
from edl.spec import Calibration, Checkpoints, ClassLabel, Residuals, Rows
from edl.spec.calibration import THRESHOLD_METRICS
from edl.tasks.curve import Standing
from edl.tasks.local import LocalTasks
from edl.tasks.task import Report, Round, Summary
from edl.worker.checkpointing import Checkpointer
from edl.worker.learning_rate import Rates
from edl.worker.strategies.base import Local, Strategy
from edl.worker.trainer import Trainer, plan, split, train
from tests.edl.programs import Events, loaded, rows_of, simple, trained


def table(rows: int, seed: int = 0) -> pa.Table:
    x = np.random.default_rng(seed).normal(size=rows)
    return pa.table({"x": x, "y": 3 * x + 1, "unused": ["text"] * rows})


def run(
    folder: Path, data: pa.Table, *, validation: int = 0, events: Events | None = None, **options: Any
) -> tuple[Any, dict[str, Any]]:
    rows = Rows(True, data.num_rows, data.num_rows - validation, validation)
    program = loaded(simple(folder / "program", rows=rows, **options))
    outcome, adapter = trained(program, rows_of(folder / "rows", data), events)
    return outcome, adapter.get_weights()


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.soak
def test_a_line_is_learned(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, table(1000), validation=200, epochs=40, batch_size=32)
    assert outcome.measured_on == "validation"
    assert outcome.figures["rmse"] < 0.2
    assert outcome.figures["loss"] == pytest.approx(outcome.figures["rmse"] ** 2, rel=1e-4)
    assert (outcome.epochs, outcome.steps, outcome.rows) == (40, 40 * 25, 40 * 800)


@pytest.mark.soak
def test_the_same_seed_gives_the_same_weights_bit_for_bit(tmp_path: Path) -> None:
    data = table(20_000)
    weights = [run(tmp_path / str(n), data, epochs=2, seed=seed)[1] for n, seed in enumerate((1, 1, 2))]
    assert same(weights[0], weights[1])
    assert not same(weights[0], weights[2])


@pytest.mark.parametrize(("rows", "batch_size"), [(1, 1), (1, 512), (7, 3), (100, 1000), (8193, 512)])
def test_tables_of_any_size_and_minibatches_of_any_size_train(
    tmp_path: Path, rows: int, batch_size: int
) -> None:
    outcome, _ = run(tmp_path, table(rows), epochs=2, batch_size=batch_size)
    assert outcome.rows == 2 * rows
    assert outcome.figures["rmse"] is not None
    assert outcome.measured_on == "training"


def test_no_rows_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="there are no rows to train on"):
        run(tmp_path, table(0))


def test_the_learning_curve_has_a_row_per_epoch(tmp_path: Path) -> None:
    events = Events()
    outcome, _ = run(tmp_path, table(500), validation=100, epochs=3, batch_size=100, events=events)
    assert [(row.epoch, row.step) for row in outcome.curve] == [(1, 4), (2, 8), (3, 12)]
    assert [event for event in events if isinstance(event, EpochEnd)] == list(outcome.curve)
    assert outcome.curve[-1].metrics == outcome.figures
    assert outcome.loss == outcome.curve[-1].loss
    last = [event for event in events if isinstance(event, Progress)][-1]
    assert (last.phase, last.rows, last.total, last.step) == ("training", 1200, 1200, 12)


def test_the_loss_of_an_epoch_is_the_mean_over_its_rows(tmp_path: Path) -> None:
    """With a rate of 0 the model stays, so the epoch's loss equals the final measurement's on the same rows."""
    outcome, _ = run(tmp_path, table(10_000), batch_size=300, replace={"lr=0.01": "lr=0.0"})
    assert outcome.curve[0].loss == pytest.approx(outcome.figures["loss"], rel=1e-5)
    assert outcome.curve[0].metrics == {}


def test_max_steps_ends_training_in_the_middle_of_an_epoch(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, table(20_000), validation=1000, epochs=9, batch_size=512, max_steps=40)
    assert outcome.steps == 40
    assert [row.step for row in outcome.curve] == [38, 40]
    assert outcome.figures["rmse"] is not None


def test_shuffling_is_seeded_and_can_be_left_out(tmp_path: Path) -> None:
    data = table(3000)
    weights = [
        run(tmp_path / str(n), data, shuffle=shuffle, seed=1, batch_size=100)[1]
        for n, shuffle in enumerate((True, False))
    ]
    assert not same(*weights)


def test_a_loss_that_is_no_number_stops_with_its_step(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"the loss became (nan|inf) at step \d+, in epoch 1") as caught:
        run(
            tmp_path,
            table(1000),
            batch_size=10,
            epochs=50,
            replace={"torch.optim.Adam(parameters, lr, fused=True)": "torch.optim.SGD(parameters, 1e9)"},
        )
    assert "learning rate" in str(caught.value.hint)


def test_a_cancelled_job_stops_and_leaves_no_thread(tmp_path: Path) -> None:
    data = table(50_000)
    program = loaded(simple(tmp_path / "p", rows=Rows(True, 50_000, 50_000), epochs=1000))
    cancelled = threading.Event()

    class CancelAtFirst(Events):
        def __call__(self, event: Any) -> None:
            super().__call__(event)
            cancelled.set()

    events = CancelAtFirst()
    with pytest.raises(JobCancelledError):
        train(program, rows_of(tmp_path / "r", data), program.spec.rows, observer=events, cancelled=cancelled)
    assert len(events) <= 2  # the end of its epoch may follow the event that cancelled
    assert not [thread for thread in threading.enumerate() if thread.name == "edl-prefetch"]


def test_an_error_in_feed_names_the_line(tmp_path: Path) -> None:
    text = "\n\ndef feed(batch, mode):\n    return batch.column('nothing'), None\n"
    with pytest.raises(UserCodeError, match=r"model\.py:\d+, in feed: KeyError"):
        run(tmp_path, table(10), append=text)


def test_an_error_in_the_middle_of_the_rows_ends_the_job(tmp_path: Path) -> None:
    data = table(30_000).set_column(1, "y", pa.array([None if i == 25_000 else 1.0 for i in range(30_000)]))
    with pytest.raises(SemanticError, match="label y is NULL in some rows"):
        run(tmp_path, data, shuffle=False)


def test_feed_must_give_a_pair(tmp_path: Path) -> None:
    with pytest.raises(
        JobError, match=r"feed in .*model\.py gives a dict; it must return \(features, labels\) or"
    ):
        run(tmp_path, table(10), append="\n\ndef feed(batch, mode):\n    return FEATURES.transform(batch)\n")


def test_a_reader_that_gives_too_few_rows_is_named(tmp_path: Path) -> None:
    class Short:
        rows = 100
        schema = table(0).schema

        def read(self, start: int, end: int, columns: Any = None) -> Iterator[pa.RecordBatch]:
            yield table(end - start - 1 if start else end - start).to_batches()[0]

    program = loaded(simple(tmp_path, rows=Rows(True, 100, 50, 50)))
    with pytest.raises(JobError, match=r"the reader gave 49 rows for the range \[50, 100\)"):
        train(program, Short(), program.spec.rows, observer=Events(), cancelled=threading.Event())


CALLBACK = """

import edl

HEARD = []


class Heard(edl.Callback):
    def on_train_begin(self, control):
        HEARD.append("begin")

    def on_epoch_end(self, epoch, metrics, control):
        HEARD.append((epoch, sorted(metrics)))
        {action}

    def on_train_end(self, metrics):
        HEARD.append(sorted(metrics))


def callbacks():
    return [Heard()]
"""


def test_callbacks_hear_of_epochs_and_can_stop(tmp_path: Path) -> None:
    text = CALLBACK.format(action='if epoch == 2: control.stop_training("enough")')
    rows = Rows(True, 400, 300, 100)
    program = loaded(simple(tmp_path / "p", rows=rows, epochs=9, append=text))
    outcome, _ = trained(program, rows_of(tmp_path / "r", table(400)))
    known = ["loss", "rmse", "validation_loss"]
    assert ["begin", (1, known), (2, known), ["loss", "rmse"]] == program.module.HEARD
    assert (outcome.epochs, outcome.stopped) == (2, "enough")


def test_a_callback_can_set_the_learning_rate(tmp_path: Path) -> None:
    data = table(400)
    text = CALLBACK.format(action="control.set_learning_rate(0.0)")
    _, frozen = run(tmp_path / "a", data, epochs=3, append=text)
    _, once = run(tmp_path / "b", data, epochs=1)
    assert same(frozen, once)


def test_an_error_in_a_callback_names_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"in on_epoch_end: ZeroDivisionError"):
        run(tmp_path, table(10), append=CALLBACK.format(action="1 / 0"))


def test_a_callback_of_another_kind_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"callbacks in .* gives a str, which is not an edl\.Callback"):
        run(tmp_path, table(10), append="\n\ndef callbacks():\n    return ['stop']\n")


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ("[]", r"must return a dict"),
        ('{"rmse": "rmse"}', r"the metric rmse .* is a str"),
        ('{"loss": metrics.RMSE()}', "is called loss"),
    ],
)
def test_metrics_are_checked_before_training(tmp_path: Path, metrics: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        run(tmp_path, table(10), append=f"\n\ndef eval_metrics_fn():\n    return {metrics}\n")


def test_only_the_columns_of_the_program_are_read_unless_it_was_edited(tmp_path: Path) -> None:
    text = """

SEEN = set()
_FEED = feed


def feed(batch, mode):
    SEEN.add(tuple(batch.schema.names))
    return _FEED(batch, mode)
"""
    for edited, names in ((False, ("x", "y")), (True, ("x", "y", "unused"))):
        folder = simple(tmp_path / str(edited), rows=Rows(True, 10, 10), append=text)
        if edited:
            (folder / "model.py.sha256").unlink()
        program = loaded(folder)
        trained(program, rows_of(tmp_path / f"rows{edited}", table(10)))
        assert {names} == program.module.SEEN


def test_two_classes_are_measured_as_probabilities(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=2000)
    data = pa.table({"x": x, "y": np.where(x > 0, "up", "down")})
    outcome, _ = run(
        tmp_path, data, label=ClassLabel("y", ("down", "up")), validation=500, epochs=20, batch_size=50
    )
    assert outcome.figures["accuracy"] > 0.97


def test_rows_are_split_as_the_spec_says_when_it_knows_them() -> None:
    rows = Rows(True, 10, 7, 3, "digest")
    assert split(rows, 10, 0.5) == rows
    again = split(rows, 20, 0.25)
    assert (again.total, again.training, again.validation) == (20, 15, 5)
    looked = split(Rows(False, 10, 10), 10, 0.2)
    assert (looked.training, looked.validation) == (8, 2)


def overfitting(rows: int = 60) -> pa.Table:
    """Noise to learn by heart: the validation loss soon rises."""
    draw = np.random.default_rng(3)
    return pa.table({"x": draw.normal(size=rows), "y": draw.normal(size=rows)})


def test_the_weights_of_the_best_epoch_are_kept_with_their_figures(tmp_path: Path) -> None:
    options = {"validation": 20, "epochs": 30, "batch_size": 8}
    last, weights = run(tmp_path / "last", overfitting(), **options)
    best, kept = run(tmp_path / "best", overfitting(), keep="best", **options)
    losses = [row.metrics["loss"] for row in last.curve]
    lowest = losses.index(min(losses)) + 1
    assert lowest < 30, "the table is no test of it"
    assert (last.kept_epoch, best.kept_epoch) == (0, lowest)
    assert best.figures == last.curve[lowest - 1].metrics
    assert best.ending == f"epoch {lowest} is kept"
    _, until_then = run(tmp_path / "then", overfitting(), **{**options, "epochs": lowest})
    assert same(kept, until_then)
    assert not same(kept, weights)


@pytest.mark.soak
@pytest.mark.parametrize("keep", ["best", "last"])
def test_the_errors_of_the_kept_weights_on_the_validation_rows_are_the_outcome_s(
    tmp_path: Path, keep: str
) -> None:
    found, _ = run(tmp_path, overfitting(), keep=keep, validation=20, epochs=30, batch_size=8)
    assert isinstance(found.uncertainty, Residuals)
    assert found.uncertainty.rows == 20
    assert np.sqrt(np.mean(np.square(found.uncertainty.quantiles))) == pytest.approx(found.figures["rmse"])


def test_a_model_without_validation_rows_has_no_errors(tmp_path: Path) -> None:
    assert run(tmp_path / "all", overfitting(), epochs=1)[0].uncertainty is None


def test_a_model_of_two_classes_has_the_thresholds_of_its_validation_rows(tmp_path: Path) -> None:
    data = pa.table({"x": np.arange(40.0), "y": ["a", "b"] * 20})
    found = run(tmp_path, data, label=ClassLabel("y", ("a", "b")), validation=20)[0].uncertainty
    assert isinstance(found, Calibration)
    assert set(found.thresholds) == set(THRESHOLD_METRICS)
    assert (found.temperature, found.log_loss) == (1.0, ())


@pytest.mark.soak
def test_where_the_best_weights_are_lost_the_model_has_the_last_ones_and_the_end_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"validation": 20, "epochs": 30, "batch_size": 8}
    best, _ = run(tmp_path / "best", overfitting(), keep="best", **options)
    last, expected = run(tmp_path / "last", overfitting(), **options)
    weights = Local.weights

    def lost(self: Local, epoch: int) -> Any:
        if epoch:
            raise GoneError(f"the weights of epoch {epoch} are gone")
        return weights(self, epoch)

    monkeypatch.setattr(Local, "weights", lost)
    found, kept = run(tmp_path / "lost", overfitting(), keep="best", **options)
    assert (found.kept_epoch, found.lost_epoch) == (0, best.kept_epoch)
    assert found.figures == last.figures
    assert (
        found.ending == f"the weights of epoch {best.kept_epoch}, the best, are lost: the last ones are kept"
    )
    assert same(kept, expected)


def test_early_stopping_ends_the_training(tmp_path: Path) -> None:
    outcome, _ = run(
        tmp_path, overfitting(), validation=20, epochs=200, batch_size=8, early_stopping=3, keep="best"
    )
    assert outcome.epochs == outcome.kept_epoch + 3 < 200
    stopped = f"stopped after epoch {outcome.epochs}: no lower validation loss in 3 epochs"
    assert outcome.ending == f"{stopped}; epoch {outcome.kept_epoch} is kept"


def test_the_ending_of_trees_counts_rounds(tmp_path: Path) -> None:
    options = {"validation": 20, "epochs": 200, "early_stopping": 3, "keep": "best", "framework": "lightgbm"}
    outcome, _ = run(tmp_path, overfitting(), **options)
    stopped = f"stopped after round {outcome.epochs}: no lower validation loss in 3 rounds"
    assert outcome.ending == f"{stopped}; round {outcome.kept_epoch} is kept"


def test_without_held_out_rows_the_last_step_decides(tmp_path: Path) -> None:
    outcome, _ = run(tmp_path, overfitting(), epochs=5, early_stopping=1, keep="best")
    assert (outcome.epochs, outcome.kept_epoch, outcome.ending) == (5, 0, "")


FEED = """

def feed(batch, mode):
    return FEATURES.transform(batch), LABEL.transform(batch, mode), {}
"""


def test_a_weighted_row_counts_as_so_many_rows(tmp_path: Path) -> None:
    """With a rate of 0 the model stays, so all figures are as if each row were there as often as it weighs."""
    x = np.random.default_rng(0).normal(size=200)
    times = np.arange(200) % 3
    x[times == 0] *= 100  # which must not matter
    data = pa.table({"x": x, "y": 3 * x + 1})
    repeated = pa.table({"x": np.repeat(x, times), "y": np.repeat(3 * x + 1, times)})
    weights = "(abs(batch.column('x').to_numpy().round(9))[:, None] == KNOWN).argmax(1) % 3"
    known = f"\n\nimport numpy as np\n\nKNOWN = np.array({abs(x).round(9).tolist()})\n"
    still = {"lr=0.01": "lr=0.0"}
    weighted, _ = run(
        tmp_path / "w", data, append=known + FEED.format(weights), replace=still, batch_size=32, shuffle=False
    )
    plain, _ = run(tmp_path / "p", repeated, replace=still, batch_size=32, shuffle=False)
    assert weighted.figures == pytest.approx(plain.figures, rel=1e-4)
    assert weighted.loss == pytest.approx(plain.loss, rel=1e-4)


@pytest.mark.soak
def test_rows_that_weigh_nothing_are_not_learned_from(tmp_path: Path) -> None:
    x = np.random.default_rng(0).normal(size=600)
    data = pa.table({"x": x, "y": np.where(x > 1, -50, 3 * x + 1)})
    outcome, _ = run(
        tmp_path,
        data,
        validation=100,
        append=FEED.format('batch.column("x").to_numpy() <= 1'),
        epochs=40,
        batch_size=16,
    )
    assert outcome.figures["rmse"] < 0.3


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("[1.0] * batch.num_rows", "feed gives a list as weights"),
        (
            "LABEL.transform(batch, mode)",
            r"feed gives weights of shape \(2, 1\); they must be one number per row",
        ),
        ("LABEL.transform(batch, mode)[:0, 0]", "feed gives 0 rows as weights for a batch of 2"),
        ("LABEL.transform(batch, mode)[:, 0] * 0 - 1", "feed gives weights that are negative or not finite"),
    ],
)
def test_what_is_no_weight_is_named(tmp_path: Path, weights: str, message: str) -> None:
    with pytest.raises(JobError, match=message):
        run(tmp_path, table(10), append=FEED.format(weights))


def test_whoever_concludes_an_epoch_rebuilds_what_went_before_from_the_curve(tmp_path: Path) -> None:
    """Best epoch, early stopping and callbacks, though another worker concluded the first epochs."""
    trainer, told = listened(tmp_path, early_stopping=2)
    curve = tuple(EpochEnd(epoch, epoch, 0.5, {"loss": loss}, 1.0) for epoch, loss in ((1, 0.2), (2, 0.3)))
    trained = Summary(50, 1, 25.0, 50.0)
    found = Round(
        3,
        3,
        True,
        3,
        trained,
        Summary(10, 0, 4.0, 10.0, [_no_states(trainer)]),
        "validation",
        curve=curve,
        standing=Standing(1, 0.2, {"loss": 0.2}, 0.2, 1),
    )
    conclusion = trainer.conclude(found)
    assert conclusion.stop == "no lower validation loss in 2 epochs"
    assert told == [(1, 0.5, 0.2), (2, 0.5, 0.3), (3, 0.5, 0.4)]


class GoesBack(Local):
    """Takes the parameters of a cut, as a group's first member does: when it is about to train."""

    trainer: Trainer
    cut: TrainerCheckpoint

    def train(self, rows: Minibatches, done: Report, rates: Rates | None) -> Floats:
        if not self.step:
            self.trainer.resume(self.cut)
            self.trainer.resume(self.cut)  # the group that was to begin with it came to nothing
        return super().train(rows, done, rates)


def test_callbacks_hear_of_the_epochs_before_a_checkpoint_once_also_when_training_has_begun(
    tmp_path: Path,
) -> None:
    trainer, told = listened(tmp_path, GoesBack, max_steps=1)
    strategy = trainer.worker.strategy
    assert isinstance(strategy, GoesBack)
    figures = {"loss": 0.5, "validation_loss": 0.2}
    position = TrainerPosition(7, tuple((epoch, figures) for epoch in (1, 2)))
    strategy.trainer = trainer
    strategy.cut = TrainerCheckpoint(position, trainer.adapter.get_weights(), trainer.adapter.get_state())
    trainer.run()
    *before, _ = told  # and the epoch that is trained here
    assert before == [(1, 0.5, 0.2), (2, 0.5, 0.2)]


def test_a_checkpoint_between_the_end_of_an_epoch_and_its_conclusion_keeps_the_best_of_those_before(
    tmp_path: Path,
) -> None:
    """The cut has the weights of the epoch that ended."""
    trainer, _ = listened(tmp_path / "one")
    strategy = trainer.worker.strategy
    assert isinstance(strategy, Local)
    now = trainer.adapter.get_weights()
    earlier = {name: value + 1 for name, value in now.items()}
    strategy.step, strategy.kept = 7, {1: earlier, 2: now}
    store = SharedFolder(tmp_path / "cuts")
    checkpointer = Checkpointer(
        store,
        Checkpoints(),
        writer="worker-0-0",
        begin=lambda name, done: None,
        on_written=lambda name: None,
    )
    trainer.write_checkpoints(checkpointer, unconcluded=lambda: 2)
    trainer.worker.draining.set()
    trainer.run()
    [name] = complete(store)
    cut = read_checkpoint(store.fetch(name))
    assert (cut.position.step, cut.position.best, cut.position.unconcluded) == (7, 1, 2)
    assert cut.best is not None
    assert same(dict(cut.best), earlier)
    assert same(dict(cut.weights), now)


LISTENING = """

class Heard(edl.Callback):
    told = []

    def on_epoch_end(self, epoch, metrics, control):
        self.told.append((epoch, metrics["loss"], metrics["validation_loss"]))


def callbacks():
    return [Heard()]
"""


def listened(
    folder: Path, strategy: Callable[[Adapter], Strategy] = Local, **training: Any
) -> tuple[Trainer, list[tuple[int, float, float]]]:
    """A trainer of 50 rows, with 10 held out, and what its callback hears of each epoch: the losses."""
    rows = Rows(True, 60, 50, 10)
    program = loaded(
        simple(folder / "p", rows=rows, append="import edl" + LISTENING, epochs=9, keep="best", **training)
    )
    trainer = Trainer(
        program,
        rows_of(folder / "r", table(60)),
        rows,
        LocalTasks(plan(program.spec, rows)),
        Events(),
        lambda outcome, weights: outcome,
        cancelled=threading.Event(),
        strategy=strategy,
    )
    return trainer, program.module.Heard.told


def _no_states(trainer: Trainer) -> dict[str, Any]:
    return {name: metric.zero() for name, metric in trainer.worker.metrics.items()}
