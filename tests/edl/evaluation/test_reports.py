"""What EVALUATE answers: figures, a confusion matrix, a curve. Numbers equal scikit-learn's."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from sklearn import metrics as sk

from edl import frameworks
from edl.data.results import ResultFolder
from edl.evaluation.reports import MOST_THRESHOLDS
from edl.jobs.outcome import Outcome
from edl.program import load
from edl.spec import ClassLabel, Rows
from edl.spec.job import Report
from edl.worker.inference import evaluate
from tests.edl.programs import Events, rows_of, simple

MODEL = """

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Concatenated(FEATURES)
        self.one = nn.Parameter(torch.ones(1))

    def forward(self, features):
        return self.one * self.features(features) * torch.tensor({factors})
"""


def table(classes: tuple[str, ...], rows: int = 300) -> pa.Table:
    rng = np.random.default_rng(1)
    return pa.table(
        {
            "x": rng.normal(size=rows).round(1),
            "y": rng.choice(classes, rows),
            "w": rng.integers(1, 4, rows).astype(float),
        }
    )


def reported(
    folder: Path, kind: Report, rows: pa.Table, classes: tuple[str, ...]
) -> tuple[Outcome, pa.Table]:
    label = ClassLabel("y", classes)
    model = MODEL.format(factors=[1.0] if label.is_binary else [float(k) for k in range(len(classes))])
    made = simple(folder / "program", rows=Rows(True, 9, 9), label=label, units=1, append=model)
    frameworks.prepare("torch", 1)
    spec = msgspec.structs.replace(load(made).spec, kind="evaluate", report=kind, batch_size=64)
    outcome = evaluate(
        load(made, spec),
        rows_of(folder / "rows", rows),
        {"one": np.ones(1, np.float32)},
        ResultFolder(folder / "results"),
        observer=Events(),
        cancelled=threading.Event(),
    )
    return outcome, ResultFolder(folder / "results").read(outcome.tasks).read_all()


def odds(rows: pa.Table, classes: int) -> npt.NDArray[np.float64]:
    """The model's logits."""
    return rows["x"].to_numpy()[:, np.newaxis] * np.arange(classes)


@pytest.mark.parametrize("classes", [("no", "yes"), ("a", "b", "c"), tuple(f"c{i:02}" for i in range(30))])
def test_a_confusion_matrix_has_a_row_for_each_pair_of_classes(
    tmp_path: Path, classes: tuple[str, ...]
) -> None:
    rows = table(classes)
    outcome, found = reported(tmp_path, "confusion_matrix", rows, classes)
    predicted = np.array(classes)[odds(rows, len(classes)).argmax(axis=1)]
    expected = sk.confusion_matrix(rows["y"].to_numpy(zero_copy_only=False), predicted, labels=classes)
    assert found.schema.names == ["y", "predicted", "row_count", "share"]
    assert found.schema.field("row_count").type == pa.int64()
    cells = {
        (true, guess): number for true, guess, number, _ in zip(*found.to_pydict().values(), strict=True)
    }
    pairs = {
        (true, guess): expected[i, k]
        for i, true in enumerate(classes)
        for k, guess in enumerate(classes)
        if expected[i, k] or len(classes) <= 20
    }
    assert cells == pairs
    assert list(cells) == list(pairs)
    shares = found.group_by("y").aggregate([("share", "sum")])["share_sum"].to_pylist()
    assert shares == pytest.approx([1.0] * len(classes))
    assert outcome.made == found.num_rows
    assert outcome.figures["accuracy"] == pytest.approx(np.trace(expected) / len(rows))


def test_a_class_that_does_not_occur_has_no_shares(tmp_path: Path) -> None:
    _, found = reported(tmp_path, "confusion_matrix", table(("no",)), ("no", "yes"))
    assert found["share"].to_pylist()[2:] == [None, None]
    assert found["row_count"].to_pylist()[2:] == [0, 0]


@pytest.mark.soak
def test_a_curve_tells_what_each_threshold_makes_right_and_wrong(tmp_path: Path) -> None:
    rows = table(("no", "yes"))
    outcome, found = reported(tmp_path, "roc_curve", rows, ("no", "yes"))
    truth = (rows["y"].to_numpy(zero_copy_only=False) == "yes").astype(int)
    score = 1 / (1 + np.exp(-rows["x"].to_numpy()))
    assert outcome.made == found.num_rows <= MOST_THRESHOLDS
    thresholds = found["threshold"].to_numpy()
    assert (np.diff(thresholds) < 0).all()
    for row in found.to_pylist():
        guess = score >= row["threshold"] - 1e-6
        right, wrong, missed, rejected = (
            (guess & (truth == 1)).sum(),
            (guess & (truth == 0)).sum(),
            (~guess & (truth == 1)).sum(),
            (~guess & (truth == 0)).sum(),
        )
        counts = [row[f"{kind}s"] for kind in ("true_positive", "false_positive", "false_negative")]
        assert [*counts, row["true_negatives"]] == [right, wrong, missed, rejected]
        assert row["recall"] == pytest.approx(sk.recall_score(truth, guess))
        assert row["precision"] == pytest.approx(sk.precision_score(truth, guess))
        assert row["f1"] == pytest.approx(sk.f1_score(truth, guess))
        assert row["false_positive_rate"] == pytest.approx(wrong / (truth == 0).sum())
    assert (found["recall"][-1].as_py(), found["false_positive_rate"][-1].as_py()) == (1.0, 1.0)


def test_a_long_curve_is_thinned(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    rows = pa.table({"x": rng.normal(size=5_000), "y": rng.choice(["no", "yes"], 5_000)})
    _, found = reported(tmp_path, "roc_curve", rows, ("no", "yes"))
    assert found.num_rows == MOST_THRESHOLDS
    assert found["recall"][-1].as_py() == 1.0


def test_without_rows_of_one_class_its_rates_are_unknown(tmp_path: Path) -> None:
    _, found = reported(tmp_path, "roc_curve", table(("no",)), ("no", "yes"))
    assert set(found["recall"].to_pylist()) == {None}
    assert found["false_positive_rate"][-1].as_py() == 1.0
