"""Records of a job of `edl run`."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from edl.errors import JobError, SpecError
from edl.jobs import script_run
from edl.jobs.script_run import Attempt, NamedRows, ScriptRun, Workload

ROWS = NamedRows(rows=1000, batch_size=64, epochs=3)
WORKLOAD = Workload({"train": ROWS})


def test_workers_agree_on_the_first_workload(tmp_path: Path) -> None:
    script_run.agree(tmp_path, WORKLOAD)
    script_run.agree(tmp_path, WORKLOAD)
    assert script_run.read(tmp_path, Workload) == WORKLOAD
    for other, said in [
        (
            {"train": msgspec.structs.replace(ROWS, rows=999, shuffle=False)},
            (
                "of the dataset 'train' this worker has 999 rows in minibatches of 64, 3 epochs, in order, "
                "another one 1,000 rows in minibatches of 64, 3 epochs, shuffled by seed 0"
            ),
        ),
        (
            {"train": ROWS, "test": NamedRows(8, 4, trained=False)},
            "of the dataset 'test' this worker has 8 rows in minibatches of 4, evaluated, another one nothing",
        ),
    ]:
        with pytest.raises(JobError) as raised:
            script_run.agree(tmp_path, Workload(other))
        assert raised.value.message == said
    assert [path.name for path in tmp_path.iterdir()] == ["workload.json"]


def test_a_script_is_readable_by_its_user_alone_and_forgotten(tmp_path: Path) -> None:
    script = ScriptRun("train.py", "", ("--key", "secret"), "/", 2, 3)
    script_run.write(tmp_path, script)
    assert script_run.read(tmp_path, ScriptRun) == script
    assert (tmp_path / "script.json").stat().st_mode & 0o777 == 0o600
    script_run.forget(tmp_path)
    assert script_run.read(tmp_path, ScriptRun) is None


def test_a_damaged_record_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "attempt.json").write_text("{", encoding="utf-8")
    with pytest.raises(SpecError, match=r"attempt\.json is damaged"):
        script_run.read(tmp_path, Attempt)
