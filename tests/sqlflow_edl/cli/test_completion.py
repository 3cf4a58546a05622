"""`sqlflow completion`: each script in its own shell, where that is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from sqlflow_edl.cli.completion import SHELLS, commands
from sqlflow_edl.cli.main import COMMANDS, _parser, main


def installed(shell: str) -> str:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"{shell} is not installed")
    return path


@pytest.fixture
def script(request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """The file with the script for the shell that is the parameter."""
    assert main(["completion", request.param]) == 0
    path = tmp_path / "script"
    path.write_text(capsys.readouterr().out)
    return path


def test_an_option_has_its_whole_description() -> None:
    run = next(each for each in commands(_parser()) if each.name == "run")
    docs = {option.names[0]: option.doc for option in run.options}
    assert docs["--on-error"].startswith("stop, or continue with the statements")


def test_all_commands_are_completed() -> None:
    assert {each.name for each in commands(_parser())} == {*COMMANDS}


@pytest.mark.soak
@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_is_free_of_formats_of_argparse(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    assert "%(" not in capsys.readouterr().out


@pytest.mark.variants(5)
@pytest.mark.parametrize("script", ["bash"], indirect=True)
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (["expo"], ["export"]),
        (["run", "--dry"], ["--dry-run"]),
        (["run", "--format", "js"], ["json", "jsonl"]),
        (["completion", "z"], ["zsh"]),
        (["image", "build", "--ta"], ["--tag", "--target"]),
        (["-e", "x", "--form"], ["--format"]),
        (["--js"], ["--json"]),
        (["run", "--format", "=", "js"], ["json", "jsonl"]),
        (["run", "--on-error", "="], ["stop", "continue"]),
    ],
)
def test_bash_completes_commands_options_and_values(
    script: Path, words: list[str], wanted: list[str]
) -> None:
    typed = " ".join(words)
    call = (
        f'. "$0"; COMP_WORDS=(sqlflow {typed}); COMP_CWORD={len(words)}; _sqlflow; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run([installed("bash"), "-c", call, script], capture_output=True, text=True, check=True)
    assert (done.stdout.split(), done.stderr) == (wanted, "")


@pytest.mark.parametrize("script", ["fish"], indirect=True)
def test_fish_completes_commands_options_and_values(script: Path) -> None:
    for typed, wanted in (
        ("sqlflow expo", "export"),
        ("sqlflow run --format js", "jsonl"),
        ("sqlflow -e x --form", "--format"),
        ("sqlflow image build --t", "--tag"),
    ):
        call = ["-c", f"source {script}; complete -C '{typed}'"]
        done = subprocess.run([installed("fish"), *call], capture_output=True, text=True, check=True)
        assert wanted in [line.partition("\t")[0] for line in done.stdout.splitlines()]


@pytest.mark.parametrize("script", ["zsh"], indirect=True)
def test_zsh_reads_the_script(script: Path) -> None:
    call = f"autoload -Uz compinit; compinit -u -D; source {script}; print $_comps[sqlflow]"
    done = subprocess.run([installed("zsh"), "-f", "-c", call], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == ("_sqlflow", "")
