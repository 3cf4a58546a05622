"""What an archive says of the job that made it."""

from __future__ import annotations

from pathlib import Path

from edl.features import Features
from edl.jobs.events import EpochEnd
from edl.program import load
from edl.run.archive import curve_row, trained_spec
from edl.spec import ClassLabel, Log, Numeric, RegressionLabel, Rows, Standardize
from tests.edl.programs import simple

ROWS = Rows(True, 10, 8, 2, "digest")


def test_an_unedited_program_keeps_its_spec(tmp_path: Path) -> None:
    program = load(simple(tmp_path, rows=Rows(False, 10, 10)))
    spec = trained_spec(program, ROWS)
    assert spec.rows == ROWS
    assert not spec.edited
    assert spec.features == (Numeric("x"),)


def test_an_edited_program_is_described_by_its_own_features_and_label(tmp_path: Path) -> None:
    folder = simple(tmp_path, rows=ROWS)
    text = (folder / "model.py").read_text()
    text = text.replace("fc.numeric('x')", "fc.standardize('x', 1.0, 2.0)")
    text = text.replace("fc.label('y')", "fc.class_label('z', ['a', 'b'])")
    (folder / "model.py").write_text(text)
    program = load(folder)
    assert isinstance(program.module.FEATURES, Features)
    spec = trained_spec(program, ROWS)
    assert spec.edited
    assert spec.features == (Standardize("x", 1.0, 2.0),)
    assert spec.label == ClassLabel("z", ("a", "b"))


def test_an_edited_program_of_several_inputs_is_described_input_by_input(tmp_path: Path) -> None:
    folder = simple(tmp_path, rows=ROWS)
    text = (folder / "model.py").read_text()
    inputs = "FEATURES = fc.Inputs(wide=fc.Features(fc.numeric('x')), deep=fc.Features(fc.log('x', 1.0)))"
    (folder / "model.py").write_text(f"{text}\n\n{inputs}\n")
    spec = trained_spec(load(folder), ROWS)
    assert spec.inputs == {"wide": (Numeric("x"),), "deep": (Log("x", 1.0),)}


def test_an_edited_program_without_features_of_ours_keeps_the_specs_features(tmp_path: Path) -> None:
    folder = simple(tmp_path, rows=ROWS)
    (folder / "model.py").write_text((folder / "model.py").read_text() + "\n\nFEATURES = LABEL = None\n")
    spec = trained_spec(load(folder), ROWS)
    assert (spec.features, spec.label) == ((Numeric("x"),), RegressionLabel("y"))


def test_a_row_of_the_curve_tells_training_and_validation_loss_apart() -> None:
    row = curve_row(EpochEnd(2, 20, 0.5, {"loss": 0.75, "auc": None}, 3.0))
    assert row == {
        "epoch": 2, "step": 20, "seconds": 3.0, "loss": 0.5, "validation_loss": 0.75, "auc": None
    }  # fmt: skip
