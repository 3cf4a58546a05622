"""What both adapters owe a model that reads row tables; each framework's test module runs these on its own."""

from __future__ import annotations

import dataclasses
import itertools
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import edl
from edl import frameworks
from edl.embeddings import Initial, RowTable, TableSpec, placement
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.program import Program
from tests.edl.frameworks.adapter_cases import program, same
from tests.edl.frameworks.exchanging import OwnParameters, gradients
from tests.edl.frameworks.reused import Reused

N = 96
rng = np.random.default_rng(7)
FEATURES: dict[str, Any] = {
    "x": rng.normal(size=(N, 1)).astype(np.float32),
    "f0": rng.integers(0, 30, N),
    "f1": rng.integers(0, 30, N),
    "many": rng.integers(0, 12, (N, 3)),
}
LABELS = rng.normal(size=(N, 1)).astype(np.float32)

# Two arrays of one table, one of them read again by another layer; a list of ids per row, combined.
KERAS = """

from edl.keras import Embedding


def custom_model():
    shapes = {"x": (1,), "f0": (), "f1": (), "many": (3,)}
    inputs = {
        name: keras.Input(shape, dtype="int64" if name != "x" else "float32", name=name)
        for name, shape in shapes.items()
    }
    both = Embedding("both", 3, num_ids=30)([inputs["f0"], inputs["f1"]])
    again = Embedding("both", 3, num_ids=30)(inputs["f1"])
    bag = Embedding("bag", 2, "mean", initial="normal", num_ids=12)(inputs["many"])
    hidden = keras.layers.Concatenate()([inputs["x"], keras.layers.Flatten()(both), again, bag])
    return keras.Model(inputs, keras.layers.Dense(1)(hidden))
"""
TORCH = """

from edl.torch import Embedding


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.both = Embedding("both", 3, num_ids=30)
        self.again = Embedding("both", 3, num_ids=30)
        self.bag = Embedding("bag", 2, "mean", initial="normal", num_ids=12)
        self.output = nn.Linear(12, 1)

    def forward(self, features):
        both = self.both(features["f0"], features["f1"])
        again, bag = self.again(features["f1"]), self.bag(features["many"])
        return self.output(torch.cat([features["x"], both.flatten(1), again, bag], dim=1))
"""


def part(rows: slice) -> dict[str, Any]:
    return {name: array[rows] for name, array in FEATURES.items()}


def create(subject: Program, *, seed: int = 1, labels: bool = True) -> Any:
    return frameworks.create(subject, part(slice(2)), LABELS[:2] if labels else None, seed=seed)


def table_of(weights: dict[str, Any], name: str, dim: int, initial: Initial = "uniform") -> np.ndarray:
    """The first 62 rows of a table, trained or not."""
    rows = RowTable(TableSpec(name, dim, initial), int(weights[f"{name}:seed"][0])).read(np.arange(62))
    rows[weights[f"{name}:ids"]] = weights[f"{name}:rows"]
    return rows


def by_hand(weights: dict[str, Any], kernel: Any, bias: Any) -> np.ndarray:
    """The model's outputs in NumPy."""
    both, bag = table_of(weights, "both", 3), table_of(weights, "bag", 2, "normal")
    vectors = [both[FEATURES[name]] for name in ("f0", "f1", "f1")]
    hidden = np.concatenate([FEATURES["x"], *vectors, bag[FEATURES["many"]].mean(axis=1)], axis=1)
    outputs: np.ndarray = hidden @ kernel + bias
    return outputs


LISTS = edl.Ragged(
    rng.integers(0, 20, 3 * N),
    np.sort(np.concatenate([[0, 3 * N], rng.integers(0, 3 * N, N - 1)])),
    rng.random(3 * N),
)


def of_lists(rows: np.ndarray, combiner: str) -> np.ndarray:
    """The lists' vectors, row by row."""
    assert LISTS.weights is not None
    found = []
    for first, last in itertools.pairwise(LISTS.offsets):
        weights = LISTS.weights[first:last]
        norms = {"sum": 1.0, "mean": weights.sum(), "sqrtn": np.sqrt((weights**2).sum())}
        found.append(weights @ rows[LISTS.values[first:last]] / (norms[combiner] if last > first else 1.0))
    return np.array(found)


class RowCases(Reused):
    """Derived once per framework."""

    framework: str
    model: str
    computed: tuple[str, str]  # an edit by which the model computes ids
    other_dim: tuple[str, str]
    own_optimizer: str
    bag: str  # a model of one table over lists of ids, with COMBINER and the inputs' SHAPE
    helpers: str  # a model of the helpers, over a CATEGORY of each of NAMES in a TABLE, with SGD and OPTIONS

    def create(self, subject: Program, *, seed: int = 1, labels: bool = True) -> Any:
        return self.created(subject, part(slice(2)), LABELS[:2] if labels else None, seed)

    def program(self, folder: Path, append: str = "", edit: tuple[str, str] = ("", "")) -> Program:
        assert edit[0] in self.model
        return program(folder, self.framework, append=self.model.replace(*edit) + append)

    def helped(
        self, names: str, table: int, category: str = "fc.category_id(name, 30)", options: str = ""
    ) -> str:
        given = {"OPTIONS": options, "NAMES": repr(names), "TABLE": str(table), "CATEGORY": category}
        page = self.helpers
        for word, text in given.items():
            page = page.replace(word, text)
        return page

    def bag_of(self, combiner: str, shape: str = "()") -> str:
        return self.bag.replace("COMBINER", combiner).replace("SHAPE", shape)

    def dense(self, weights: dict[str, Any]) -> tuple[Any, Any]:
        """The kernel (12, 1) and bias among the weights."""
        raise NotImplementedError

    def outputs(self, model: Any, features: Any = FEATURES) -> np.ndarray:
        """Of a model that runs by itself."""
        raise NotImplementedError

    def test_training_goes_on_from_weights_and_the_slots_of_rows(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        rows = Minibatches(FEATURES, LABELS, 16)
        first = self.create(subject)
        first.train(Minibatches(part(slice(48)), LABELS[:48], 16))
        weights, state = first.get_weights(), first.get_state()
        first.train(rows)
        second = self.create(subject, seed=9)
        second.set_weights(weights)
        second.set_state(state)
        second.train(rows)
        assert same(second.get_weights(), first.get_weights())

    def test_outputs_are_what_rows_and_weights_give(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path))
        for _ in range(2):
            weights = adapter.get_weights()
            expected = by_hand(weights, *self.dense(weights))
            np.testing.assert_allclose(adapter.predict(FEATURES), expected, rtol=1e-4, atol=1e-6)
            adapter.train(Minibatches(part(slice(40)), LABELS[:40], 16))
        trained = set(FEATURES["f0"][:40]) | set(FEATURES["f1"][:40])
        assert adapter.get_weights()["both:ids"].tolist() == sorted(trained)

    def test_the_same_seed_gives_the_same_rows_bit_for_bit(self, tmp_path: Path) -> None:
        subject, weights = self.program(tmp_path), []
        for seed in (1, 1, 2):
            adapter = create(subject, seed=seed)
            adapter.train(Minibatches(FEATURES, LABELS, 10))
            weights.append(adapter.get_weights())
        assert same(weights[0], weights[1])
        assert not np.array_equal(weights[0]["both:rows"], weights[2]["both:rows"])

    def test_steps_in_one_call_equal_steps_in_several(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        whole, parts = self.create(subject), self.create(subject)
        losses = whole.train(Minibatches(FEATURES, LABELS, 20))
        single = [
            parts.train(Minibatches(part(slice(i, i + 20)), LABELS[i : i + 20], 20)) for i in range(0, N, 20)
        ]
        assert np.array_equal(losses, np.concatenate(single))
        assert same(whole.get_weights(), parts.get_weights())

    def test_gradients_applied_equal_a_step(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        stepped, adapter = self.create(subject), self.create(subject)
        stepped.train(Minibatches(FEATURES, LABELS, N))
        twice = {name: np.concatenate([array, array]) for name, array in FEATURES.items()}
        rows = Minibatches(twice, np.concatenate([LABELS, LABELS]), N)
        exchange = OwnParameters(adapter, rows, moves=True)
        adapter.exchange_steps(rows, exchange)
        found = exchange.found[0].values["both"].ids
        assert sorted(found) == sorted(set(FEATURES["f0"]) | set(FEATURES["f1"]))
        expected = stepped.get_weights()
        for name, value in adapter.get_weights().items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-5, atol=1e-7)

    def test_rows_may_be_handed_in_and_are_read_from_any_source(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        trained, other = self.create(subject), create(subject, seed=9)  # its rows come from elsewhere then
        trained.train(Minibatches(FEATURES, LABELS, 16))
        other.set_trainable(trained.get_trainable())
        tables = trained.tables
        need = tables.need(tables.keys(FEATURES), 0, N)
        expected = gradients(trained, FEATURES, LABELS)
        found = gradients(other, FEATURES, LABELS, fetched=tables.fetch(need, train=False))
        assert found.loss == expected.loss
        np.testing.assert_array_equal(found.values["both"].ids, expected.values["both"].ids)
        np.testing.assert_array_equal(found.values["both"].values, expected.values["both"].values)
        other.tables.source = tables
        np.testing.assert_array_equal(other.predict(FEATURES), trained.predict(FEATURES))
        assert not other.get_weights()["both:ids"].size

    def test_limits_of_the_job_hold_for_its_tables_and_are_part_of_its_state(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        training = msgspec.structs.replace(
            subject.spec.training, embedding_min_count=2, embedding_max_rows=20, embedding_ttl_steps=3
        )
        limited = dataclasses.replace(subject, spec=msgspec.structs.replace(subject.spec, training=training))
        whole, first, second = self.create(limited), self.create(limited), self.create(limited)
        whole.train(Minibatches(FEATURES, LABELS, 16))
        first.train(Minibatches(part(slice(64)), LABELS[:64], 16))
        second.set_weights(first.get_weights())
        second.set_state(first.get_state())
        for adapter in (first, second):
            adapter.train(Minibatches(part(slice(64, N)), LABELS[64:], 16))
            assert same(adapter.get_weights(), whole.get_weights())
            assert same(adapter.get_state(), whole.get_state())
        table = whole.tables.tables["both"]
        assert 0 < len(table) <= 20 and table.evicted and table.refused
        assert whole.get_state()["both:counts"].any()
        assert not {name for name in self.create(subject).get_state() if name.endswith((":used", ":counts"))}

    def test_each_step_has_the_rate_it_is_given(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        together, apart = self.create(subject), self.create(subject)
        rates = np.array([0.01, 0.0, 0.02], np.float32)
        together.train(Minibatches(FEATURES, LABELS, 32, rates=rates))
        for i, rate in enumerate(rates):
            apart.set_learning_rate(float(rate))
            rows = slice(32 * i, 32 * i + 32)
            apart.train(Minibatches(part(rows), LABELS[rows], 32))
        assert same(together.get_weights(), apart.get_weights())

    def test_weights_carry_the_first_values_of_rows_that_were_never_trained(self, tmp_path: Path) -> None:
        subject = self.program(tmp_path)
        first = self.create(subject, seed=1)
        first.train(Minibatches(part(slice(16)), LABELS[:16], 16))
        second = self.create(subject, seed=2, labels=False)
        second.set_weights(first.get_weights())
        np.testing.assert_array_equal(second.predict(FEATURES), first.predict(FEATURES))
        assert same(first.get_weights(), second.get_weights())

    def test_rows_that_do_not_fit_change_nothing(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path))
        adapter.train(Minibatches(FEATURES, LABELS, 32))
        before = adapter.get_weights()
        damaged = {"both:rows": before["both:rows"][:, :2], "bag:ids": before["bag:ids"][::-1]}
        for name, value in damaged.items():
            with pytest.raises(JobError):
                adapter.set_weights({**{key: array * 2 for key, array in before.items()}, name: value})
            assert same(adapter.get_weights(), before)

    def test_evaluation_and_prediction_make_no_row(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path))
        evaluated = adapter.evaluate(FEATURES, LABELS)
        np.testing.assert_array_equal(adapter.predict(FEATURES), evaluated.outputs)
        assert evaluated.loss == pytest.approx(float(np.mean((evaluated.outputs - LABELS) ** 2)), rel=1e-5)
        assert not adapter.get_weights()["both:ids"].size

    def test_a_standalone_model_holds_the_rows(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path))
        adapter.train(Minibatches(part(slice(40)), LABELS[:40], 16))
        expected = adapter.predict(FEATURES)
        np.testing.assert_allclose(self.outputs(adapter.standalone()), expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(adapter.predict(FEATURES), expected)

    def test_a_table_of_any_ids_has_no_standalone_model(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path, edit=(", num_ids=12", "")))
        with pytest.raises(JobError, match="the table bag takes any id") as caught:
            adapter.standalone()
        assert "num_ids" in str(caught.value.hint)

    def test_ids_that_the_model_computes_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="the table both is read with ids that the model computes"):
            self.create(self.program(tmp_path, edit=self.computed))

    def test_layers_that_differ_in_their_table_are_refused(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="two layers of the model have a table both"):
            self.create(self.program(tmp_path, edit=self.other_dim))

    def test_numbers_are_no_ids(self, tmp_path: Path) -> None:
        features = {**part(slice(2)), "f0": np.zeros(2, np.float32)}
        edit = ('"int64" if name != "x"', '"int64" if name not in ("x", "f0")')
        subject = self.program(tmp_path, edit=edit if self.framework == "keras" else ("", ""))
        with pytest.raises(JobError, match=r"the table both is read with features\['f0'\], which is float32"):
            frameworks.create(subject, features, LABELS[:2], seed=1)

    def test_a_model_with_tables_does_not_run_outside_of_a_job(self, tmp_path: Path) -> None:
        adapter = self.create(self.program(tmp_path))
        with pytest.raises(JobError, match="was called outside of a job"):
            self.outputs(adapter.model)

    def test_an_optimizer_that_rows_cannot_follow_is_named(self, tmp_path: Path) -> None:
        with pytest.raises(JobError, match="rows of a table cannot follow the optimizer Own"):
            self.create(self.program(tmp_path, append=self.own_optimizer))

    @pytest.mark.parametrize(
        "combiner", ["sqrtn", *(pytest.param(each, marks=pytest.mark.soak) for each in ("sum", "mean"))]
    )
    def test_lists_are_combined_by_their_weights(self, tmp_path: Path, combiner: str) -> None:
        assert 0 in LISTS.counts
        subject = program(tmp_path, self.framework, append=self.bag_of(f"'{combiner}'"))
        features = {"tags": LISTS}
        adapter = frameworks.create(subject, {"tags": LISTS[:2]}, LABELS[:2], seed=1)
        before = adapter.evaluate(features, LABELS)
        expected = of_lists(RowTable(TableSpec("tags", 1), 1).read(np.arange(20)), combiner)
        np.testing.assert_allclose(before.outputs, expected, rtol=1e-4, atol=1e-7)
        adapter.train(Minibatches(features, LABELS, 20))
        weights = adapter.get_weights()
        assert weights["tags:ids"].tolist() == list(range(20))
        rows = table_of(weights, "tags", 1)
        np.testing.assert_allclose(adapter.predict(features), of_lists(rows, combiner), rtol=1e-4, atol=1e-6)
        assert adapter.evaluate(features, LABELS).loss < before.loss
        alone = self.outputs(adapter.standalone(), {"tags": LISTS.pad()})
        np.testing.assert_allclose(alone, of_lists(rows, combiner), rtol=1e-4, atol=1e-6)

    def test_lists_of_one_length_train_as_an_array_does(self, tmp_path: Path) -> None:
        many = FEATURES["many"]
        kinds = {"lists": edl.Ragged(many.ravel(), 3 * np.arange(N + 1)), "array": many}
        outputs = []
        for kind, tags in kinds.items():
            page = self.bag_of("'mean'", "()" if kind == "lists" else "(3,)")
            subject = program(tmp_path / kind, self.framework, append=page)
            adapter = frameworks.create(subject, {"tags": tags[:2]}, LABELS[:2], seed=1)
            adapter.train(Minibatches({"tags": tags}, LABELS, 20))
            outputs.append(adapter.predict({"tags": tags}))
        np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-5, atol=1e-7)

    def test_lists_need_a_combiner(self, tmp_path: Path) -> None:
        subject = program(tmp_path, self.framework, append=self.bag_of("None"))
        with pytest.raises(JobError, match="nothing says how they become one vector"):
            frameworks.create(subject, {"tags": LISTS[:2]}, LABELS[:2], seed=1)

    # With clipnorm, categories that share a table are clipped as the one parameter that they are.
    @pytest.mark.parametrize(
        ("options", "names", "table"),
        [
            pytest.param("", "ab", 0, marks=pytest.mark.soak),
            pytest.param("clipnorm=0.02", "a", 0, marks=pytest.mark.soak),
            ("global_clipnorm=0.03", "ab", 0),
            pytest.param("clipvalue=0.002", "ab", 0, marks=pytest.mark.soak),
            ("clipnorm=0.02", "ab", 1),  # one shared table is one parameter in the graph too
        ],
    )
    def test_sgd_moves_rows_as_it_moves_embeddings_in_the_graph(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: str, names: str, table: int
    ) -> None:
        page = self.helped(names, table, options=options)
        subject = program(tmp_path, self.framework, append=page)
        features = {name: FEATURES[name] for name in ("f0", "f1")[: len(names)]}
        adapters = []
        for largest in (0, 1 << 40):
            monkeypatch.setattr(placement, "LARGEST_IN_GRAPH", largest)
            example = {name: array[:2] for name, array in features.items()}
            adapters.append(frameworks.create(subject, example, LABELS[:2], seed=1))
        outside, inside = adapters
        inside.set_weights(in_graph(inside.get_weights(), outside.get_weights()))
        for _ in range(2):
            one, other = (adapter.predict(features) for adapter in adapters)
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
            one, other = (adapter.train(Minibatches(features, LABELS, 20)) for adapter in adapters)
            np.testing.assert_allclose(one, other, rtol=1e-4)

    def test_lists_of_two_columns_share_one_table(self, tmp_path: Path) -> None:
        page = self.helped("ab", 1, "fc.list_of(fc.category_id(name, 30))")
        lists = edl.Ragged(LISTS.values, LISTS.offsets)
        features = {"f0": lists, "f1": edl.Ragged(LISTS.values[::-1] + 8, LISTS.offsets)}
        subject = program(tmp_path, self.framework, append=page)
        adapter = frameworks.create(
            subject, {name: array[:2] for name, array in features.items()}, LABELS[:2], seed=1
        )
        adapter.train(Minibatches(features, LABELS, 20))
        weights = adapter.get_weights()
        tables = {name: array for name, array in weights.items() if name.endswith(":ids")}
        assert set(tables) == {"f0_embedding:ids", "f0_weights:ids"}
        assert tables["f0_embedding:ids"].tolist() == list(
            range(28)
        )  # 0 to 19 of one column, 8 to 27 of the other
        padded = {name: array.pad() for name, array in features.items()}
        alone = self.outputs(adapter.standalone(), padded)
        np.testing.assert_allclose(alone, adapter.predict(features), rtol=1e-4, atol=1e-6)


def in_graph(own: dict[str, Any], start: dict[str, Any]) -> dict[str, Any]:
    """The weights of the helpers' model without tables that begins as the one with tables does."""
    rows = table_of(start, "f0_embedding", 4)
    vectors = iter((rows[:31], rows[31:]))
    dense = iter(value for name, value in start.items() if ":" not in name)
    return {
        name: next(vectors)
        if value.shape == (31, 4)
        else np.zeros_like(value)
        if value.shape[0] in (31, 62)
        else next(dense)
        for name, value in own.items()
    }
