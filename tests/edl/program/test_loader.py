"""Importing program folders."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from edl.errors import JobError, SpecError
from edl.program import UserCodeError, load, load_reader, unload
from edl.spec import JobSpec, Numeric, RegressionLabel, Rows
from tests.edl.programs import job_spec, write

CONTRACT = """
def custom_model(): return NAME
def loss(labels, predictions): return 0
def optimizer(lr=0.1): return None
def feed(batch, mode): return batch, mode
def eval_metrics_fn(): return {}
"""


def spec() -> JobSpec:
    return job_spec("keras", (Numeric("x"),), RegressionLabel("y"), Rows(False, 0, 0))


def test_two_programs_live_side_by_side(tmp_path: Path) -> None:
    one = load(write(tmp_path / "one", "NAME = 'one'" + CONTRACT, spec()))
    two = load(write(tmp_path / "two", "NAME = 'two'" + CONTRACT, spec()))
    assert (one.call("custom_model"), two.call("custom_model")) == ("one", "two")


def test_a_program_that_changed_is_imported_anew(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "NAME = 'old'" + CONTRACT, spec())
    assert load(folder).call("custom_model") == "old"
    (folder / "model.py").write_text("NAME = 'new'" + CONTRACT)
    program = load(folder)
    assert program.call("custom_model") == "new"
    assert program.edited


def test_importing_leaves_no_trace_in_path_and_folder(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "from . import helper\nNAME = 1" + CONTRACT, spec())
    (folder / "helper.py").write_text("")
    before, path = set(folder.iterdir()), list(sys.path)
    modules = set(sys.modules)
    program = load(folder)
    assert not program.edited
    assert set(folder.iterdir()) == before
    assert sys.path == path
    unload(program.module)
    assert set(sys.modules) == modules


def test_modules_and_data_beside_the_program_are_found_from_anywhere(tmp_path: Path) -> None:
    text = "from pathlib import Path\nfrom .helper import NAME\nDATA = (Path(__file__).parent / 'v.txt').read_text()\n"
    folder = write(tmp_path / "p", text + CONTRACT, spec())
    (folder / "helper.py").write_text("NAME = 'helped'")
    (folder / "v.txt").write_text("a, b")
    program = load(folder)
    assert program.call("custom_model") == "helped"
    assert program.module.DATA == "a, b"
    unload(program.module)
    assert not [name for name in sys.modules if name.endswith(".helper") and name.startswith("edl_program_")]


def test_an_error_while_importing_names_its_line_and_leaves_no_module(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "NAME = 1\nUNKNOWN.x\n" + CONTRACT, spec())
    modules = set(sys.modules)
    with pytest.raises(
        UserCodeError, match=r"model\.py:2: NameError: name 'UNKNOWN' is not defined"
    ) as caught:
        load(folder)
    assert caught.value.hint == "UNKNOWN.x"
    assert set(sys.modules) == modules


def test_an_error_while_called_names_its_line(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "NAME = 1" + CONTRACT.replace("return 0", "return labels.missing"), spec())
    with pytest.raises(UserCodeError, match=r"model\.py:3, in loss: AttributeError: 'int' object has no"):
        load(folder).call("loss", 1, 2)


def test_source_that_is_no_python_text_is_an_error_of_the_program(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "", spec())
    (folder / "model.py").write_bytes(b"x = '\xff'\n")
    with pytest.raises(UserCodeError):
        load(folder)


@pytest.mark.parametrize("missing", ["model.py", "job.json"])
def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    folder = write(tmp_path / "p", "NAME = 1" + CONTRACT, spec())
    (folder / missing).unlink()
    with pytest.raises(JobError, match=f"cannot read .*{missing}: No such file"):
        load(folder)


def test_a_job_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = write(tmp_path / "p", "NAME = 1" + CONTRACT, msgspec.structs.replace(spec(), version=99))
    with pytest.raises(SpecError, match="version 99"):
        load(folder)


def test_a_reader_is_imported_by_itself(tmp_path: Path) -> None:
    (tmp_path / "reader.py").write_text("def pin(folder, *, seed, shuffle): return folder, seed, shuffle\n")
    assert load_reader(tmp_path).pin("f", seed=1, shuffle=True) == ("f", 1, True)
