"""Adapters of ensembles, against the means of their members' scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from edl import frameworks
from edl.errors import JobError
from edl.frameworks import Minibatches
from edl.frameworks.ensemble import EnsembleAdapter
from edl.frameworks.export import check_target
from edl.metrics import MSE, LogLoss
from edl.program import read_spec
from edl.program.folders import MEMBERS
from edl.spec import (
    ENSEMBLE,
    ClassLabel,
    Codes,
    Component,
    HashBucket,
    Label,
    Member,
    RegressionLabel,
    Rows,
    extra_outputs,
)
from tests.edl.programs import loaded, rows_of, simple, trained, write

ROWS = 80
SHARES = (0.75, 0.25)  # of the members; the second one is the mean of two models
draw = np.random.default_rng(9)
TABLE = pa.table(
    {
        "x": draw.normal(size=ROWS),
        "z": draw.normal(size=ROWS),
        "y": draw.normal(size=ROWS),
        "kind": draw.integers(0, 3, ROWS),
    }
)
[BATCH] = TABLE.to_batches()
NUMBER, KIND = RegressionLabel("y", std=2.0), ClassLabel("kind", (0, 1, 2))
WEIGHTS = draw.uniform(0.5, 2, ROWS).astype(np.float32)
MODEL = """\
from pathlib import Path

from edl.ensemble import Ensemble

ENSEMBLE = Ensemble(Path(__file__).parent)


def custom_model():
    return ENSEMBLE


def feed(batch, mode):
    return ENSEMBLE.transform(batch), None


def scores(outputs):
    return outputs


def eval_metrics_fn():
    return {}
"""


@dataclass(frozen=True)
class Made:
    """An ensemble without weights; weights: of its models, as in an archive. scores: of each member."""

    adapter: EnsembleAdapter
    weights: Mapping[str, np.ndarray]
    scores: tuple[np.ndarray, ...]

    @property
    def features(self) -> Any:
        return self.adapter.model.transform(BATCH)

    @property
    def mean(self) -> np.ndarray:
        return sum(share * scores for share, scores in zip(SHARES, self.scores, strict=True))


def made(folder: Path, label: Label) -> Made:
    members, weights, found = [], {}, []
    for number, (column, share) in enumerate(zip("xz", SHARES, strict=True)):
        path = simple(
            folder / MEMBERS / f"{number}", "lightgbm", rows=Rows(True, ROWS, ROWS), features=(column,), label=label
        )  # fmt: skip
        scores = []
        for fold in range(number + 1):
            program = loaded(path)
            rows = TABLE.slice(20 * fold, 60)
            _, adapter = trained(program, rows_of(folder / f"rows{number}{fold}", rows))
            weights |= {f"{number}.{fold}.{name}": value for name, value in adapter.get_weights().items()}
            features = program.call("feed", BATCH, "predict")[0]
            scores.append(program.call("scores", adapter.predict(features)))
        members.append(Member(share, read_spec(path), number + 1))
        found.append(np.mean(scores, axis=0))
    spec = msgspec.structs.replace(
        members[0].spec, framework=ENSEMBLE, model=Component("Ensemble"), inputs={}, members=tuple(members)
    )
    program = loaded(write(folder, MODEL, spec))
    features = program.call("feed", BATCH.slice(0, 2), "predict")[0]
    adapter = frameworks.create(program, features, None, seed=0)
    assert isinstance(adapter, EnsembleAdapter)
    return Made(adapter, weights, tuple(found))


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Of numbers, with its weights."""
    found = made(tmp_path_factory.mktemp("numbers"), NUMBER)
    found.adapter.set_weights(found.weights)
    return found


def test_it_predicts_the_weighted_mean_of_its_members(numbers: Made) -> None:
    scores = numbers.adapter.predict(numbers.features)
    assert scores.shape == (ROWS, 1)
    np.testing.assert_allclose(scores, numbers.mean, rtol=1e-6)
    assert not np.allclose(scores, numbers.scores[0])


def test_the_scores_of_its_members_are_an_extra_output(numbers: Made) -> None:
    scores, extra = numbers.adapter.predict_with(numbers.features, [extra_outputs.MEMBERS])
    np.testing.assert_allclose(extra["members"], np.stack(numbers.scores, axis=1), rtol=1e-6)
    assert np.array_equal(scores, numbers.adapter.predict(numbers.features))


def test_it_predicts_mean_probabilities_of_classes_and_its_loss_is_their_log_loss(tmp_path: Path) -> None:
    found = made(tmp_path, KIND)
    found.adapter.set_weights(found.weights)
    labels = TABLE["kind"].to_numpy()
    evaluated = found.adapter.evaluate(found.features, labels)
    np.testing.assert_allclose(evaluated.outputs, found.mean, rtol=1e-6)
    np.testing.assert_allclose(evaluated.outputs.sum(axis=1), 1, rtol=1e-6)
    log_loss = LogLoss()
    wanted = log_loss.result(log_loss.update((), labels, found.mean))
    assert evaluated.loss == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_its_loss_of_numbers_is_the_squared_error_in_units_of_the_label(
    numbers: Made, weights: np.ndarray | None
) -> None:
    labels = TABLE["y"].to_numpy().reshape(-1, 1)
    evaluated = numbers.adapter.evaluate(numbers.features, labels, weights)
    mse = MSE()
    wanted = mse.result(mse.update((), labels, numbers.mean, weights)) / NUMBER.std**2
    factor = 1.0 if weights is None else float(weights.mean())  # as of a mean over rows of weighted losses
    assert evaluated.loss == pytest.approx(wanted * factor, rel=1e-6)


def test_the_weights_of_its_models_are_numbered_and_come_back(numbers: Made, tmp_path: Path) -> None:
    given = numbers.adapter.get_weights()
    assert {name.rsplit(".", 1)[0] for name in given} == {"0.0", "1.0", "1.1"}
    assert given.keys() == numbers.weights.keys()
    for name, values in numbers.weights.items():
        np.testing.assert_allclose(given[name], values, rtol=1e-5)
    assert numbers.adapter.keep().keys() == given.keys()


@pytest.mark.parametrize("name", ["2.0.booster", "0.1.booster", "booster", "x.0.booster", "-1.0.booster"])
def test_weights_of_a_model_that_it_lacks_are_refused(numbers: Made, name: str) -> None:
    with pytest.raises(JobError, match=f"the ensemble has no model for the weights {name}") as caught:
        numbers.adapter.set_weights({**numbers.weights, name: np.zeros(1)})
    assert caught.value.hint == "they were trained with another program"


def test_it_is_not_trained_as_a_whole(numbers: Made) -> None:
    rows = Minibatches(numbers.features, TABLE["y"].to_numpy().reshape(-1, 1), ROWS, None)
    with pytest.raises(JobError, match="an ensemble cannot be trained as a whole") as caught:
        numbers.adapter.train(rows)
    assert "SHOW TRIALS" in str(caught.value.hint)


def test_its_onnx_model_predicts_the_same(numbers: Made) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(numbers.adapter.standalone().of_onnx())
    given = {name: np.asarray(BATCH[name], dtype=np.float64) for name in ("x", "z")}
    np.testing.assert_allclose(session.run(None, given)[0], numbers.mean, rtol=1e-6)


def test_a_member_without_a_graph_is_named(numbers: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    program = next(iter(numbers.adapter.model.programs.values()))
    monkeypatch.setitem(program.spec.inputs, "features", (Codes(HashBucket("x", 9)),))
    with pytest.raises(JobError, match="the ensemble cannot be written as one ONNX model: of its") as caught:
        numbers.adapter.standalone()
    assert "SHOW TRIALS" in str(caught.value.hint)


@pytest.mark.parametrize("path", ["m.keras", "m.txt", "m"])
def test_only_onnx_holds_it(path: str) -> None:
    with pytest.raises(JobError, match="an ensemble cannot be written") as caught:
        check_target(ENSEMBLE, Path(path))
    assert "an ONNX model" in str(caught.value.hint)
