"""`edl quota`, and how a job names its quota and its priority."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.cli.progress import ProgressNarrator
from edl.cluster.quota.quota import Quota
from edl.jobs.events import Tally
from edl.jobs.slots import SlotRequest


def test_a_quota_is_made_resized_and_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "quota"
    assert main(["quota", str(folder), "--slots", "4"]) == exit_codes.OK
    assert capsys.readouterr() == ("", "0 of 4 slots are in use; waiting jobs: 0\n")
    jobs = [
        Quota(folder).join(name, SlotRequest(1, 4, priority))
        for name, priority in (("a", -100), ("b", 100), ("c", 7))
    ]
    jobs[0].turn(0)
    assert main(["quota", str(folder), "--slots", "5"]) == exit_codes.OK
    out, err = capsys.readouterr()
    assert [line.split() for line in out.splitlines()[1:]] == [
        ["b", "high", "0", "3", "1", "to", "4"],
        ["c", "7", "0", "1", "1", "to", "4"],
        ["a", "low", "1", "1", "1", "to", "4"],
    ]
    assert err == "1 of 5 slots are in use; waiting jobs: 2\n"


def test_a_quota_that_is_not_there_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quota", str(tmp_path / "nowhere")]) == exit_codes.FAILED
    assert "error: there is no quota" in capsys.readouterr().err


@pytest.mark.parametrize("written", ["urgent", "1001", "1.5"])
def test_a_priority_is_a_name_or_a_number(written: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        main(["train", "--program", ".", "--priority", written])
    assert raised.value.code == exit_codes.USAGE
    assert (
        f"{written} is neither one of low, normal, high nor a number from -1000 to 1000"
        in capsys.readouterr().err
    )


def test_that_a_job_waits_is_said_once_each_time() -> None:
    said = io.StringIO()
    narrator = ProgressNarrator(said)
    for waiting, instances in ((3, 0), (2, 0), (2, 1), (3, 0)):
        narrator(Tally(1, 0, 0, instances=instances, waiting=waiting))
    assert said.getvalue() == "waiting for a slot\n" * 2


def test_that_instances_are_cut_off_is_said_when_there_are_more() -> None:
    said = io.StringIO()
    narrator = ProgressNarrator(said)
    for cut_off in (0, 1, 1, 0, 2):
        narrator(Tally(1, 0, 0, instances=3, cut_off=cut_off))
    assert said.getvalue() == "".join(
        f"{count} of 3 instances cut off; their logs say from what\n" for count in (1, 2)
    )
