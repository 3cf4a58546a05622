"""The `edl` command on a program folder."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.cli.progress import ProgressNarrator
from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder, RunSpec
from edl.jobs.events import EpochEnd, JobEvent
from edl.jobs.outcome import JobCancelledError
from edl.models.archive import read_archive
from edl.models.pending import Intent, write_intent
from edl.program import read_spec
from edl.run import job_runner
from edl.spec import ClassLabel, Rows, Zoo, to_json
from tests.edl.master.test_resume import job_with_master
from tests.edl.programs import simple

READER = """
import numpy as np
import pyarrow as pa

from edl.data.pinned import pin_rows


def pin(folder, *, seed, shuffle):
    x = np.random.default_rng(0).normal(size=400)
    table = pa.table({"id": np.arange(400), "x": x, "y": np.where(x > 0, "up", "down")})
    return pin_rows(folder, table.to_reader(), source="duckdb:", select="", seed=seed, shuffled=shuffle)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    program = simple(
        tmp_path / "program",
        rows=Rows(False, 0, 0),
        label=ClassLabel("y", ("down", "up")),
        epochs=30,
        batch_size=20,
    )
    (program / "reader.py").write_text(READER)
    return program


def test_a_program_is_trained_evaluated_and_used_by_hand(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, predictions = tmp_path / "m.zip", tmp_path / "p.csv"
    assert (
        main(["train", "--program", str(folder), "--output", str(model), "--epochs", "12"]) == exit_codes.OK
    )
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["loss", "accuracy"]
    assert "400 rows" in err
    assert err.count("epoch ") == 12
    assert read_archive(model).spec.training.epochs == 12

    assert main(["evaluate", "--program", str(folder), "--weights", str(model)]) == exit_codes.OK
    measured = dict(line.split() for line in capsys.readouterr().out.splitlines())
    assert float(measured["accuracy"]) > 0.95

    command = ["predict", "--program", str(folder), "--weights", str(model)]
    assert main([*command, "--output", str(predictions)]) == exit_codes.OK
    header, first, *_ = predictions.read_text().splitlines()
    assert header == '"id","x","y","y_confidence","y_prob_down","y_prob_up"'
    assert first.startswith("0,")
    assert job_folder.jobs() == []


def test_held_out_rows_of_a_query_of_their_own_are_measured(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    held_out = READER.partition("def pin")[2].replace("(folder, *, seed, shuffle)", "_held_out(folder)")
    held_out = held_out.replace("seed=seed, shuffled=shuffle", "seed=0, shuffled=False").replace("400", "70")
    held_out = held_out.replace("default_rng(0)", "default_rng(1)")
    (folder / "reader.py").write_text(f"{READER}\n\ndef pin{held_out}")
    model = tmp_path / "m.zip"
    assert main(["train", "--program", str(folder), "--output", str(model)]) == exit_codes.OK
    assert "measured on the validation rows" in capsys.readouterr().err
    rows = read_archive(model).spec.rows
    assert (rows.total, rows.training, rows.validation) == (470, 400, 70)


def test_training_goes_on_from_given_weights(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = msgspec.structs.replace(read_spec(folder), trained_model="m@1")
    model, again = tmp_path / "m.zip", tmp_path / "again.zip"
    command = ["train", "--program", str(folder), "--output"]
    assert main([*command, str(model)]) == exit_codes.OK
    (folder / "job.json").write_bytes(to_json(spec))
    assert main([*command, str(again)]) == exit_codes.FAILED
    assert "starts from the weights of m@1, but none were given" in capsys.readouterr().err
    assert main([*command, str(again), "--weights", str(model), "--epochs", "1"]) == exit_codes.OK
    first, more = read_archive(model), read_archive(again)
    assert (more.curve[0]["loss"] or 9) < (first.curve[0]["loss"] or 0) / 2
    assert more.lineage.parent == "m@1"


def test_an_output_that_could_not_be_written_is_fetched_later(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "models" / "m.zip"
    output.parent.mkdir()
    gone = f"    pathlib.Path({str(output.parent)!r}).rmdir()\n"  # between the check and the end
    (folder / "reader.py").write_text("import pathlib\n" + READER.replace("    return", gone + "    return"))
    command = ["train", "--program", str(folder), "--epochs", "2", "--output", str(output)]
    assert main(command) == exit_codes.FAILED
    [job] = job_folder.jobs()
    err = capsys.readouterr().err
    assert f"error: cannot write {output}: No such file or directory\nhint: it is in {job.archive}" in err
    assert f"`edl fetch {job.id}`" in err
    assert main(["fetch", job.id]) == exit_codes.FAILED
    err = capsys.readouterr().err
    assert "there is no folder" in err
    assert f"`edl fetch {job.id} --output FILE` writes it elsewhere" in err
    output.parent.mkdir()
    assert main(["fetch", job.id]) == exit_codes.OK
    out, err = capsys.readouterr()
    assert [line.split()[0] for line in out.splitlines()] == ["loss", "accuracy"]
    assert f"wrote {output}" in err
    assert read_archive(output).spec.training.epochs == 2
    assert job_folder.jobs() == []


def test_others_can_read_how_far_a_training_in_one_process_is(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded: list[int] = []

    def observe(_: ProgressNarrator, event: JobEvent) -> None:
        [job] = job_folder.jobs()
        if isinstance(event, EpochEnd):
            recorded.append(ClusterFolder(job.path).events.read_text().count("\n"))

    monkeypatch.setattr(ProgressNarrator, "__call__", observe)
    output = str(folder.parent / "m.zip")
    assert main(["train", "--program", str(folder), "--epochs", "2", "--output", output]) == exit_codes.OK
    assert recorded == [1, 2]


def test_an_output_is_checked_before_the_rows_are_read(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "reader.py").write_text("def pin(folder, **_):\n    raise AssertionError\n")
    command = ["train", "--program", str(folder), "--output", str(tmp_path / "none" / "m.zip")]
    assert main(command) == exit_codes.FAILED
    assert "there is no folder" in capsys.readouterr().err


def test_an_error_of_the_program_is_two_lines(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "model.py").write_text((folder / "model.py").read_text() + "\n\n1 / 0\n")
    assert main(["train", "--program", str(folder)]) == exit_codes.FAILED
    first, second = capsys.readouterr().err.splitlines()[-2:]
    assert "ZeroDivisionError" in first
    assert second == "hint: 1 / 0"
    assert job_folder.jobs() == []


def test_a_reader_without_pin_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "reader.py").write_text("")
    assert main(["train", "--program", str(folder)]) == exit_codes.FAILED
    assert "reader.py defines no pin" in capsys.readouterr().err


def test_a_folder_without_a_program_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "--program", str(tmp_path)]) == exit_codes.FAILED
    assert "cannot read" in capsys.readouterr().err


def test_an_output_that_cannot_be_written_is_named_before_anything_runs(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["predict", "--program", str(folder), "--weights", "none.zip", "--output", "r.xlsx"]
    assert main(command) == exit_codes.FAILED
    err = capsys.readouterr().err
    assert "known suffixes" in err
    assert "rows" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["train", "--program", "x", "--epochs", "0"],
        ["train", "--program", "x", "--embedding_min_count", "256"],
        ["evaluate", "--program", "x"],
    ],
)
def test_wrong_arguments_exit_with_the_documented_code(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == exit_codes.USAGE


def test_a_job_that_was_cancelled_exits_as_one_that_was_interrupted(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def cancelled(*_: object, **__: object) -> None:
        raise JobCancelledError

    monkeypatch.setattr(job_runner, "run_job", cancelled)
    assert main(["train", "--program", str(folder)]) == exit_codes.INTERRUPTED
    assert capsys.readouterr().err.splitlines()[-1] == "error: the job was cancelled"


def test_help_shows_the_exit_codes_and_loads_nothing_heavy() -> None:
    code = (
        "import sys\nfrom edl.cli.main import main\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(sorted({'numpy', 'pyarrow', 'duckdb', 'keras', 'torch'} & set(sys.modules)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines()[-1] == "[]"
    assert exit_codes.HELP in run.stdout


def test_a_resumed_training_writes_where_the_first_was_to_write(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_with_master()
    ClusterFolder(job.path).write_run_spec(RunSpec("torch", folder=str(tmp_path)))
    output = tmp_path / "none" / "m.zip"
    write_intent(job.path, Intent("train", "", "", file=str(output)))
    job.end("died")
    assert main(["train", "--resume", job.id]) == exit_codes.FAILED
    assert f"there is no folder {output.parent}" in capsys.readouterr().err
    assert job.can_resume


def test_a_hand_written_module_is_not_exported_for_want_of_its_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    zoo = Zoo(str(Path("samples/zoo").absolute()), "iris.torch_dnn", "Net", "")
    program = simple(tmp_path / "program", rows=Rows(False, 0, 0))
    (program / "job.json").write_bytes(to_json(msgspec.structs.replace(read_spec(program), zoo=zoo)))
    command = [
        "export",
        "--program",
        str(program),
        "--weights",
        "m.zip",
        "--output",
        str(tmp_path / "m.pt2"),
    ]
    assert main(command) == exit_codes.FAILED
    assert "a hand-written module cannot be exported" in capsys.readouterr().err
