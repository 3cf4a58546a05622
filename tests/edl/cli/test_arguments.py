"""The arguments of the `edl` command: every one is known, or named with what to write instead."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main

MODULE = ["--model_def", "a.b.custom_model", "--training_data", "x.csv"]


def complaint(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = exit_codes.USAGE) -> str:
    assert main(arguments) == code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    ("flag", "words"),
    [
        ("--minibatchsize", "did you mean --minibatch_size?"),
        ("--trainingdata=x", "did you mean --training_data?"),
        ("--num_epoch", "did you mean --num_epochs?"),  # no abbreviation
        ("--xyz", "see --help"),
    ],
)
def test_a20_an_unknown_flag_is_an_error_with_the_nearest_right_one(
    flag: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    err = complaint(["train", *MODULE, flag, "3"], capsys)
    assert f"there is no argument {flag.partition('=')[0]}" in err
    assert words in err


def test_an_unknown_flag_before_a_script_is_an_error_and_flags_behind_it_are_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    err = complaint(["run", "--threads", "1", "--worker=2", "train.py"], capsys)
    assert "there is no argument --worker\nhint: did you mean --workers?" in err
    err = complaint(
        ["run", "--workers=2", "--threads", "1", "missing.py", "--worker"], capsys, exit_codes.FAILED
    )
    assert "there is no file missing.py" in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["train"], "either --program or --model_def"),
        (["train", "--program", "p", *MODULE], "either --program or --model_def"),
        (["train", "--program", "p", "--max_step", "3"], "--max_step is for hand-written modules"),
        (["train", "--model_def", "a.b"], "--training_data is required"),
        (["evaluate", "--model_def", "a.b", "--weights", "w"], "--validation_data is required"),
        (["predict", "--model_def", "a.b", "--weights", "w"], "--prediction_data is required"),
        (["train", *MODULE, "--evaluation_steps", "9"], "--evaluation_steps needs --validation_data"),
    ],
)
def test_arguments_that_do_not_go_together_are_named(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert words in complaint(arguments, capsys)


def test_a20_a_value_that_looks_like_a_flag_of_another_command_is_no_flag(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    err = complaint(["train", "--model_zoo", str(tmp_path), *MODULE], capsys, exit_codes.FAILED)
    assert "has no module a" in err
