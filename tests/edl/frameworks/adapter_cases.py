"""What both adapters owe, as functions that each framework's test module runs on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.exchange import Slice
from edl.program import Program, UserCodeError
from edl.spec import ClassLabel, Rows
from edl.spec.extra_outputs import EMBEDDING
from tests.edl.frameworks.exchanging import OwnParameters, gradients
from tests.edl.frameworks.reducing import NO_ROWS, compute_part, take_step
from tests.edl.frameworks.reused import Reused
from tests.edl.programs import loaded, simple

ROWS = Rows(False, 64, 64)
CLIPPING = pytest.mark.parametrize(
    "option",
    [
        "global_clipnorm=0.03",
        *(pytest.param(option, marks=pytest.mark.soak) for option in ("clipnorm=0.02", "clipvalue=0.002")),
    ],
)
rng = np.random.default_rng(5)
FEATURES = {"dense": rng.normal(size=(64, 1)).astype(np.float32)}
LABELS = (3 * FEATURES["dense"] + 1).astype(np.float32)


def program(folder: Path, framework: str, **options: Any) -> Program:
    return loaded(simple(folder, framework, rows=ROWS, **options))


def create(subject: Program, *, seed: int = 1, labels: Any = LABELS) -> frameworks.Adapter:
    return frameworks.create(subject, *first_rows(labels), seed=seed)


def first_rows(labels: Any = LABELS) -> tuple[dict[str, Any], Any]:
    return {"dense": FEATURES["dense"][:2]}, None if labels is None else labels[:2]


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[name], other[name]) for name in one)


class AdapterCases(Reused):
    """Derived once per framework."""

    framework: str
    bad_output: tuple[str, str]  # an edit that drops the column of outputs
    scalar_loss: tuple[str, str]
    normalised: tuple[str, str]  # an edit that adds BatchNorm and dropout
    sgd: str  # an optimizer of rate 1 that clips by OPTION
    not_elsewhere: tuple[tuple[tuple[str, str], str], ...]  # edits that servers cannot follow, and why

    def create(self, subject: Program, *, seed: int = 1, labels: Any = LABELS) -> frameworks.Adapter:
        return self.created(subject, *first_rows(labels), seed)

    def sgd_with(self, option: str) -> str:
        return self.sgd.replace("OPTION", option)

    def test_the_same_seed_gives_the_same_weights_bit_for_bit(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        weights = []
        for seed in (1, 1, 2):
            adapter = create(subject, seed=seed)
            adapter.train(Minibatches(FEATURES, LABELS, 10))
            weights.append(adapter.get_weights())
        assert same(weights[0], weights[1])
        assert not same(weights[0], weights[2])

    def test_steps_in_one_call_equal_steps_in_several(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        whole = self.create(subject)
        losses = whole.train(Minibatches(FEATURES, LABELS, 16))
        parts = self.create(subject)
        single = [
            parts.train(Minibatches({"dense": FEATURES["dense"][i : i + 16]}, LABELS[i : i + 16], 16))
            for i in range(0, 64, 16)
        ]
        assert np.array_equal(losses, np.concatenate(single))
        assert same(whole.get_weights(), parts.get_weights())

    def test_gradients_applied_equal_a_step(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        stepped = self.create(subject)
        [loss] = stepped.train(Minibatches(FEATURES, LABELS, 64))
        expected = stepped.get_weights()
        adapter = self.create(subject)
        twice = Minibatches({"dense": np.tile(FEATURES["dense"], (2, 1))}, np.tile(LABELS, (2, 1)), 64)
        exchange = OwnParameters(adapter, twice, moves=True)  # a step follows the first one only
        adapter.exchange_steps(twice, exchange)
        assert exchange.found[0].loss == pytest.approx(float(loss), rel=1e-6)
        for name, value in adapter.get_weights().items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7)

    @CLIPPING
    def test_shares_that_are_added_up_are_a_step(self, tmp_path: Path, option: str) -> None:
        """Clipped once they are together; of three members, one has no rows."""
        subject = program(tmp_path, self.framework, append=self.sgd_with(option))
        weights = rng.random(64).astype(np.float32)
        rates = np.array([0.5], np.float32)
        local, adapter = self.create(subject), self.create(subject)
        rows = Minibatches(FEATURES, LABELS, 64, weights)
        [loss] = local.train(rows._replace(rates=rates))
        found = take_step(adapter, rows, (0, 40, 40, 64), 0.5)
        assert found == pytest.approx(float(loss), rel=1e-5)
        expected = local.get_trainable()
        for name, value in adapter.get_trainable().items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7)

    def test_a_share_moves_no_normalisation_and_the_step_takes_its_mean_by_rows(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework, replace=dict([self.normalised]))
        rows = Minibatches(FEATURES, LABELS, 64)
        apart = []
        for some in (slice(0, 16), slice(16, 64)):
            alone = self.create(subject)
            gradients(alone, {"dense": FEATURES["dense"][some]}, LABELS[some])
            apart.append(alone.get_buffers())
        adapter = self.create(subject)
        before = adapter.get_buffers()
        compute_part(adapter, rows, Slice(0, 16, 0.25, NO_ROWS))
        assert same(adapter.get_buffers(), before)
        take_step(adapter, rows, (0, 16, 64))
        for name, value in adapter.get_buffers().items():
            mean = (apart[0][name] + 3 * apart[1][name]) / 4
            np.testing.assert_allclose(value, mean, rtol=1e-5, atol=1e-6)

    def test_random_numbers_diverge_by_the_seed(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework, replace=dict([self.normalised])))
        found = {adapter.get_random()}
        for seed in (1, 2, 1):
            adapter.diverge(seed)
            found.add(adapter.get_random())
        assert len(found) == 3

    def test_weighted_rows_count_as_often_as_their_weight(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        weights = rng.integers(0, 4, 64).astype(np.float32)
        times = np.repeat(np.arange(64), weights.astype(int))
        share = len(times) / 64  # a loss is a sum over the rows there are
        weighted = gradients(self.create(subject), FEATURES, LABELS, weights)
        repeated = gradients(self.create(subject), {"dense": FEATURES["dense"][times]}, LABELS[times])
        assert weighted.loss == pytest.approx(repeated.loss * share, rel=1e-5)
        for name, value in repeated.values.items():
            np.testing.assert_allclose(weighted.values[name], value * share, rtol=1e-4, atol=1e-6)

    def test_a_row_pulls_with_its_weight_in_a_minibatch_of_its_own(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        one, half = {"dense": FEATURES["dense"][:1]}, np.full(1, 0.5, np.float32)
        whole = gradients(self.create(subject), one, LABELS[:1])
        weighted = gradients(self.create(subject), one, LABELS[:1], half)
        for name, value in whole.values.items():
            np.testing.assert_allclose(weighted.values[name], 0.5 * np.asarray(value), rtol=1e-5)

    def test_a_weighted_evaluation_is_the_mean_of_the_weighted_losses(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        weights = rng.random(64).astype(np.float32)
        found = adapter.evaluate(FEATURES, LABELS, weights)
        expected = np.mean((found.outputs - LABELS)[:, 0] ** 2 * weights)
        assert found.loss == pytest.approx(float(expected), rel=1e-5)

    def test_each_step_has_the_rate_it_is_given(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        rates = np.array([0.01, 0.0, 0.003, 0.02], np.float32)
        together = self.create(subject)
        losses = together.train(Minibatches(FEATURES, LABELS, 16, rates=rates))
        apart = self.create(subject)
        single = []
        for i, rate in enumerate(rates):
            apart.set_learning_rate(float(rate))
            rows = slice(16 * i, 16 * i + 16)
            single.append(apart.train(Minibatches({"dense": FEATURES["dense"][rows]}, LABELS[rows], 16)))
        assert np.array_equal(losses, np.concatenate(single))
        assert same(together.get_weights(), apart.get_weights())
        constant = self.create(subject)
        constant.train(Minibatches(FEATURES, LABELS, 16))
        assert not same(together.get_weights(), constant.get_weights())

    def test_a_weighted_step_is_taken(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        weighted = self.create(subject).train(Minibatches(FEATURES, LABELS, 10, np.ones(64, np.float32)))
        none = self.create(subject).train(Minibatches(FEATURES, LABELS, 10))
        np.testing.assert_allclose(weighted, none, rtol=1e-5)

    def test_the_loss_of_the_last_smaller_minibatch_is_the_mean_of_its_rows(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        last = {"dense": FEATURES["dense"][60:]}
        before = adapter.evaluate(last, LABELS[60:])
        adapter.set_learning_rate(0.0)
        losses = adapter.train(Minibatches(FEATURES, LABELS, 20))
        assert len(losses) == 4
        assert losses[3] == pytest.approx(before.loss, rel=1e-5)

    def test_predictions_are_the_outputs_of_evaluation(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        evaluated = adapter.evaluate(FEATURES, LABELS)
        assert evaluated.outputs.shape == (64, 1)
        assert np.array_equal(adapter.predict(FEATURES), evaluated.outputs)
        assert evaluated.loss == pytest.approx(float(np.mean((evaluated.outputs - LABELS) ** 2)), rel=1e-5)

    def test_the_embedding_times_the_last_weights_is_the_output(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        outputs, extra = adapter.predict_with(FEATURES, [EMBEDDING])
        assert np.array_equal(outputs, adapter.predict(FEATURES))
        *_, kernel, bias = adapter.get_weights().values()
        kernel = kernel if len(kernel) > 1 else kernel.T  # (outputs, width) in PyTorch
        assert extra[EMBEDDING] @ kernel + bias == pytest.approx(outputs, abs=1e-5)

    def test_weights_go_from_model_to_model_and_are_copies(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework)
        first = self.create(subject, seed=1)
        weights = first.get_weights()
        expected = first.predict(FEATURES)
        first.train(Minibatches(FEATURES, LABELS, 16))
        second = self.create(subject, seed=2, labels=None)
        second.set_weights(weights)
        np.testing.assert_array_equal(second.predict(FEATURES), expected)

    def test_training_goes_on_from_weights_and_state_as_if_nothing_had_been(self, tmp_path: Path) -> None:
        """Optimizer's slots, normalisation, and the random numbers of dropout."""
        subject = program(tmp_path, self.framework, replace=dict([self.normalised]))
        rows = Minibatches(FEATURES, LABELS, 16)
        first = self.create(subject)
        first.train(rows)
        weights, state = first.get_weights(), first.get_state()
        first.train(rows)
        second = self.create(subject, seed=9)
        second.train(rows)
        second.set_weights(weights)
        second.set_state(state)
        second.train(rows)
        assert same(second.get_weights(), first.get_weights())
        assert same(second.get_state(), first.get_state())

    def test_parameters_buffers_and_random_numbers_are_all_that_a_gradient_depends_on(
        self, tmp_path: Path
    ) -> None:
        subject = program(tmp_path, self.framework, replace=dict([self.normalised]))
        first, second = self.create(subject), self.create(subject, seed=9)
        first.train(Minibatches(FEATURES, LABELS, 16))
        parameters, buffers, random = first.get_trainable(), first.get_buffers(), first.get_random()
        expected = gradients(first, FEATURES, LABELS)
        second.set_trainable(parameters)
        second.set_buffers(buffers)
        second.set_random(random)
        found = gradients(second, FEATURES, LABELS)
        assert found.loss == expected.loss
        assert same(*({name: np.asarray(v) for name, v in g.values.items()} for g in (found, expected)))
        assert same(second.get_buffers(), first.get_buffers())
        assert not same(second.get_buffers(), buffers)
        assert same(second.get_trainable(), parameters)
        with pytest.raises(JobError, match="random numbers is that of another model"):
            second.set_random(random[1:])

    def test_parameters_that_are_handed_out_are_copies(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework, replace=dict([self.normalised])))
        given, buffers = adapter.get_trainable(), adapter.get_buffers()
        kept = {name: value.copy() for name, value in (given | buffers).items()}
        adapter.train(Minibatches(FEATURES, LABELS, 16))
        assert same(given | buffers, kept)
        assert {value.dtype.name for value in kept.values()} == {"float32"}
        trained = adapter.get_weights()
        assert kept.keys() <= trained.keys()

    @CLIPPING
    def test_gradients_are_clipped_as_the_optimizer_clips_them(self, tmp_path: Path, option: str) -> None:
        subject = program(tmp_path, self.framework, append=self.sgd_with(option))
        adapter = self.create(subject)
        before = adapter.get_trainable()
        found = gradients(adapter, FEATURES, LABELS).values
        adapter.train(Minibatches(FEATURES, LABELS, 64))
        for name, value in adapter.get_trainable().items():
            moved = before[name] - found[name]
            np.testing.assert_allclose(value, moved, rtol=1e-5, atol=1e-7)

    def test_the_optimizer_is_described_for_servers(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework, append=self.sgd_with("clipvalue=1.0")))
        found = adapter.optimizer_elsewhere()
        assert (found.framework, found.name, found.params["momentum"]) == (self.framework, "sgd", 0.0)
        assert adapter.learning_rate(7) == 1.0

    def test_parameters_that_servers_cannot_hold_are_named(self, tmp_path: Path) -> None:
        for number, (edit, message) in enumerate(self.not_elsewhere):
            adapter = self.create(program(tmp_path / str(number), self.framework, replace=dict([edit])))
            with pytest.raises(JobError, match=message):
                adapter.optimizer_elsewhere()

    def test_weights_of_another_model_change_nothing(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        before = adapter.get_weights()
        other = {name: value * 0 for name, value in before.items()}
        other.pop(next(iter(other)))
        with pytest.raises(JobError, match="the weights do not fit the model: lacking"):
            adapter.set_weights(other)
        assert same(adapter.get_weights(), before)

    def test_a_rate_of_zero_moves_nothing(self, tmp_path: Path) -> None:
        adapter = self.create(program(tmp_path, self.framework))
        adapter.train(Minibatches(FEATURES, LABELS, 64))
        before = adapter.get_weights()
        adapter.set_learning_rate(0.0)
        adapter.train(Minibatches(FEATURES, LABELS, 64))
        assert same(adapter.get_weights(), before)

    def test_outputs_that_would_broadcast_against_labels_are_refused(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework, replace=dict([self.bad_output]))
        with pytest.raises(JobError, match=r"the model gives \(n,\) for labels of shape \(n, 1\)"):
            self.create(subject)

    def test_class_labels_take_a_logit_each(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework, label=ClassLabel("y", (1, 2, 3)))
        labels = np.arange(64) % 3
        adapter = self.create(subject, labels=labels)
        assert adapter.evaluate(FEATURES, labels).outputs.shape == (64, 3)
        with pytest.raises(JobError, match=r"\(n, 3\)"):
            self.create(subject, labels=LABELS)

    def test_a_scalar_loss_trains_as_its_mean_and_takes_no_weights(self, tmp_path: Path) -> None:
        rows, scalar = (
            program(tmp_path / name, self.framework, replace=dict(edits))
            for name, edits in (("rows", []), ("scalar", [self.scalar_loss]))
        )
        expected = self.create(rows).train(Minibatches(FEATURES, LABELS, 20))
        adapter = self.create(scalar)
        np.testing.assert_allclose(adapter.train(Minibatches(FEATURES, LABELS, 20)), expected, rtol=1e-5)
        with pytest.raises(JobError, match="rows cannot be weighted"):
            gradients(adapter, FEATURES, LABELS, np.ones(64, np.float32))

    def test_an_error_in_the_loss_names_its_line(self, tmp_path: Path) -> None:
        text = "\n\ndef loss(labels, predictions):\n    return labels.no_such_thing\n"
        adapter = self.create(program(tmp_path, self.framework, append=text))
        with pytest.raises(UserCodeError, match=r"model\.py:\d+, in loss: AttributeError"):
            adapter.train(Minibatches(FEATURES, LABELS, 64))

    def test_a_model_of_something_else_is_named(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework, append="\n\ndef custom_model():\n    return 3\n")
        with pytest.raises(JobError, match=r"custom_model in .* returns a int, not a"):
            self.create(subject)

    def test_an_optimizer_of_something_else_is_named(self, tmp_path: Path) -> None:
        subject = program(
            tmp_path, self.framework, append="\n\ndef optimizer(parameters=None):\n    return 'adam'\n"
        )
        with pytest.raises(JobError, match=r"optimizer in .* returns a str, not a"):
            self.create(subject)

    def test_normalisation_state_is_among_the_weights_and_one_row_is_a_minibatch(
        self, tmp_path: Path
    ) -> None:
        subject = program(tmp_path, self.framework, replace=dict([self.normalised]))
        adapter = self.create(subject)
        before = adapter.get_weights()
        losses = adapter.train(Minibatches(FEATURES, LABELS, 63))
        assert np.isfinite(losses).all()
        moved = [
            name for name, value in adapter.get_weights().items() if not np.array_equal(value, before[name])
        ]
        assert any("mean" in name for name in moved)
        other = self.create(subject, seed=9)
        other.set_weights(adapter.get_weights())
        np.testing.assert_array_equal(other.predict(FEATURES), adapter.predict(FEATURES))
