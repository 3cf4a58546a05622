"""A script that a worker runs up to its call of `edl.train`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import numpy as np
import pytest

from edl.data.pinned import read_pinned
from edl.errors import JobError, SemanticError, SpecError, UserCodeError
from edl.jobs import job_folder
from edl.jobs.failure import Failed
from edl.jobs.outcome import Outcome
from edl.program import Program
from edl.scripting import script
from edl.spec import JobSpec, Rows
from tests.edl.models.conftest import SPEC

SCRIPT = """
import sys
import numpy as np
import edl
from torch import nn

x = np.arange(10, dtype="float32").reshape(-1, 1)
model = nn.Linear(1, 1)
done = []


def call(rows=10, **more):
    done.append(edl.train(model, (x[:rows], x[:rows]), loss="mse", optimizer="adam", verbose=False, **more))


if __name__ == "__main__":
"""


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a worker has for itself."""
    monkeypatch.setattr(script, "_inside", None)
    monkeypatch.setattr(script, "_done", [])
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(sys, "path", [*sys.path])
    folder = Path.cwd()
    yield
    os.chdir(folder)


def written(
    folder: Path, body: str, *done: Outcome | Failed, arguments: tuple[str, ...] = ()
) -> script.Script:
    path = folder / "training_script.py"
    path.write_text(SCRIPT + "".join(f"    {line}\n" for line in body.splitlines()))
    return script.Script(str(path), "", arguments, str(folder), (str(folder), *sys.path), done)


def run(called: script.Script, spec: JobSpec = SPEC) -> list[Program]:
    """The programs that the worker's work is given."""
    given: list[Program] = []
    script.run(called, spec, Path(called.folder), given.append)
    return given


def test_a_worker_goes_on_inside_of_the_call_with_the_program_that_it_is(tmp_path: Path) -> None:
    body = "call()\n__import__('pathlib').Path('after').touch()"
    [program] = run(written(tmp_path, body))
    assert program.file == tmp_path / "training_script.py"
    assert program.has("feed")
    assert not (tmp_path / "after").exists()


def test_the_script_cannot_hold_the_worker_back_and_cleans_up(tmp_path: Path) -> None:
    body = "try:\n    call()\nexcept Exception:\n    pass\nfinally:\n    __import__('pathlib').Path('clean').touch()"
    assert len(run(written(tmp_path, body))) == 1
    assert (tmp_path / "clean").exists()


def test_it_finds_arguments_folder_and_modules_as_they_were(tmp_path: Path) -> None:
    (tmp_path / "sibling_of_script.py").write_text("ROWS = 4\n")
    body = "import sibling_of_script\nassert sys.argv[1:] == ['--fast']\ncall(sibling_of_script.ROWS)"
    [program] = run(written(tmp_path, body, arguments=("--fast",)))
    batch = next(iter(_reader(program, rows=4).read(0, 4)))
    assert len(program.call("feed", batch, "train")[0]) == 4


def _reader(program: Program, rows: int) -> Any:
    x = np.arange(rows, dtype="float32").reshape(-1, 1)
    from edl.scripting.datasets import dataset

    job = job_folder.create("train")
    dataset((x, x), None, "torch", None, shuffle=True, seed=0).pin(job)
    return program.call("custom_data_reader", read_pinned(job.rows), job.rows)


def test_calls_before_the_jobs_call_end_as_they_did(tmp_path: Path) -> None:
    first = Outcome("train", rows=10, seconds=1.0, figures={"loss": 0.5}, epochs=3)
    body = (
        "call()\nassert done[0].metrics == {'loss': 0.5} and done[0].model is model\n"
        "try:\n    call()\nexcept edl.api.JobError as error:\n    assert error.message == 'diverged'\n"
        "else:\n    raise AssertionError\n"
        "call()"
    )
    assert len(run(written(tmp_path, body, first, Failed("runtime", "diverged")))) == 1


def test_what_the_work_raises_is_raised(tmp_path: Path) -> None:
    def work(program: Program) -> None:
        raise JobError("no room")

    with pytest.raises(JobError, match="no room"):
        script.run(written(tmp_path, "call()"), SPEC, tmp_path, work)


def test_an_error_of_the_script_is_named_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(UserCodeError, match=r"training_script\.py:\d+: ZeroDivisionError"):
        run(written(tmp_path, "1 / 0\ncall()"))


def test_a_script_that_does_not_come_to_the_call_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="ends in a worker before it reaches the call"):
        run(written(tmp_path, "pass"))


def test_a_module_is_run_as_one(tmp_path: Path) -> None:
    called = written(tmp_path, "assert __spec__.name == 'training_script'\ncall()")
    assert len(run(msgspec.structs.replace(called, module="training_script"))) == 1


def main_module(monkeypatch: pytest.MonkeyPatch, file: Path | None) -> None:
    main = ModuleType("__main__")
    if file is not None:
        main.__file__ = str(file)
    monkeypatch.setitem(sys.modules, "__main__", main)


def test_how_the_script_was_started_is_kept_for_workers_and_the_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").touch()
    main_module(monkeypatch, tmp_path / "train.py")
    monkeypatch.setattr(sys, "argv", ["train.py", "--token", "x"])
    script.record_end(Failed("runtime", "diverged"))
    found, job = script.current_script(), job_folder.create("train")
    assert (found.path, found.module) == (str(tmp_path / "train.py"), "")
    assert (found.arguments, found.folder) == (("--token", "x"), str(Path.cwd()))
    assert found.done == (Failed("runtime", "diverged"),)
    assert script.read_script(job) is None
    script.write(job, found)
    assert script.read_script(job) == found
    assert (job.path / "call.json").stat().st_mode & 0o077 == 0
    (job.path / "call.json").write_text("{}")
    with pytest.raises(SpecError, match=r"call\.json is damaged"):
        script.read_script(job)
    script.forget(job)
    assert script.read_script(job) is None


@pytest.mark.parametrize("name", [None, "ipykernel_1/123.py"])
def test_a_notebook_is_told_what_to_do(
    name: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    main_module(monkeypatch, name and tmp_path / name)  # type: ignore[arg-type]
    with pytest.raises(SemanticError, match="a notebook or a prompt has none") as caught:
        script.current_script()
    assert "workers=1" in str(caught.value.hint)


def test_rows_that_are_drawn_anew_in_each_process_are_no_rows_of_the_job(tmp_path: Path) -> None:
    [program] = run(written(tmp_path, "x[:] = np.random.default_rng().random((10, 1))\ncall()"))
    with pytest.raises(JobError, match="other rows in a worker"):
        _reader(program, rows=10)


def test_the_spec_is_the_jobs(tmp_path: Path) -> None:
    spec = msgspec.structs.replace(SPEC, rows=Rows(True, 99, 99))
    [program] = run(written(tmp_path, "call()"), spec)
    assert program.spec is spec
