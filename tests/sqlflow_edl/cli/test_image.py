"""`sqlflow image`: from an empty folder to a builder's exit code."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sqlflow_edl.cli.main import main


def test_a_folder_is_made_and_its_image_built_and_pushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = tmp_path / "bin" / "podman"
    builder.parent.mkdir()
    builder.write_text(f"#!{sys.executable} -S\nimport sys\nprint(sys.argv[1:])\nsys.exit(3)\n")
    builder.chmod(0o755)
    monkeypatch.setenv("PATH", str(builder.parent))
    mine = tmp_path / "mine"
    assert main(["image", "init", str(mine)]) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [str(mine / "Dockerfile"), str(mine / "requirements.txt")]
    assert f"sqlflow image build {mine} --tag" in err
    assert main(["image", "build", str(mine), "--tag", "m:1", "--build-arg", "BASE=b"]) == 3
    command = ["build", "--file", f"{mine}/Dockerfile", "--tag", "m:1", "--build-arg", "BASE=b", str(mine)]
    assert capfd.readouterr() == (f"{command}\n", "building m:1 with podman\n")
    assert main(["image", "push", "m:1", "--builder", "podman"]) == 3
    assert capfd.readouterr().out == "['push', 'm:1']\n"


def test_what_is_wrong_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["image", "build", str(tmp_path), "--tag", "m"]) == 1
    assert "error: docker, podman and buildah are not installed" in capsys.readouterr().err
