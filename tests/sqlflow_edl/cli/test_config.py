"""The configuration file: `sqlflow config`, what wins over it, and how its mistakes are told."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main
from sqlflow_edl.console.config import DEFAULTS, FaultyConfigError, parse_config, read, template


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's configuration file, which does not exist yet."""
    for name in ("SQLFLOW_SOURCE", "SQLFLOW_MODEL_STORE", "NO_COLOR"):
        monkeypatch.setenv(name, "")  # main() may set it, and pytest takes that back
    path = tmp_path / "config" / "sqlflow-edl" / "config.toml"
    path.parent.mkdir(parents=True)
    return path


def test_a_file_is_written_once_and_its_comments_are_valid_settings(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["config", "--init"]) == 0
    assert parse_config(file.read_text()) == DEFAULTS
    file.write_text("timing = false\n")
    assert main(["config", "--init"]) == 1
    assert "it exists, and stays as it is" in capsys.readouterr().err
    assert file.read_text() == "timing = false\n"
    assert parse_config(re.sub(r"^# (?=\w+ = )", "", template(), flags=re.MULTILINE)).pager == "less -SRX"


def test_settings_are_listed_with_their_origins(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text('source = "a.duckdb"\ntiming = false\n')
    monkeypatch.setenv("SQLFLOW_SOURCE", "mysql://reader:hidden@db/shop")
    assert main(["config"]) == 0
    rows = {line.split()[0]: line.split()[1:] for line in capsys.readouterr().out.splitlines()}
    assert rows["source"] == ['"mysql://reader@db/shop"', "SQLFLOW_SOURCE"]
    assert rows["timing"] == ["false", "file"]
    assert rows["keys"] == ['"emacs"', "default"]


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def error(*arguments: str) -> str:
        assert main(["run", "-e", "SELECT 1", *arguments]) == 1
        return capsys.readouterr().err

    file.write_text(f'source = "{tmp_path}/of_file.duckdb"\ncolor = false\n')
    assert "of_file.duckdb" in error()
    assert os.environ["NO_COLOR"] == "1"
    monkeypatch.setenv("SQLFLOW_SOURCE", f"{tmp_path}/of_environment.duckdb")
    assert "of_environment.duckdb" in error()
    assert "of_option.duckdb" in error("--source", f"{tmp_path}/of_option.duckdb")


@pytest.mark.variants(4)
@pytest.mark.parametrize(
    ("text", "line", "message", "hint"),
    [
        ('sorce = "a"', 1, "unknown key sorce", "did you mean source?"),
        ("\ntiming = 1", 2, "timing must be true or false", "timing = true"),
        ("history_size = true", 1, "history_size must be a whole number", "history_size = 10000"),
        ("history_size = 0", 1, "history_size must be above 0", ""),
        ('format = "cvs"', 1, "format cannot be 'cvs'", "did you mean csv?"),
        (r"prompt = '\q> '", 1, r"prompt has an unknown escape \q", r"known: \d \t"),
        ('keys = "nano"', 1, "keys cannot be 'nano'", "emacs, vi"),
        ('pager = "less \'"', 1, "a quote in pager is not closed", ""),
        ("timing = true\n[console]", 2, "unknown section console", "known: source"),
        ("timing = true\nkeys = vi", 2, "no valid TOML", ""),
    ],
)
def test_mistakes_are_told_with_their_line(
    file: Path, text: str, line: int, message: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text)
    assert main(["jobs"]) == 2
    told = capsys.readouterr().err
    assert all(each in told for each in (message, hint, f"config.toml:{line}:"))
    assert main(["config"]) == 2


@pytest.mark.parametrize(
    "text",
    [
        'source = "mysql://reader:hidden@db/shop"',
        'source = "maxcompute://id@host/api?access_key=hidden"',
        "source = mysql://reader:hidden@db/shop",
        'sorce = "mysql://reader:hidden@db/shop"',
    ],
)
def test_a_password_is_refused_and_not_shown(file: Path, text: str) -> None:
    file.write_text(f"{text}\n")
    with pytest.raises(FaultyConfigError, match=r"config\.toml, line 1: ") as raised:
        read()
    assert "hidden" not in str(raised.value)


def test_a_url_with_options_is_no_password(file: Path) -> None:
    file.write_text('source = "csv:///a b.csv?delim=%3B&header="\n')
    assert read().source == "csv:///a b.csv?delim=%3B&header="
