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


def test_a_job_on_kubernetes_may_build_and_push_its_image_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    builder = tmp_path / "bin" / "buildah"
    builder.parent.mkdir()
    builder.write_text(
        f"#!{sys.executable} -S\nimport sys\nprint(sys.argv[1:])\nsys.exit(sys.argv[1] == 'push')\n"
    )
    builder.chmod(0o755)
    monkeypatch.setenv("PATH", str(builder.parent))
    folder = tmp_path / "image"
    folder.mkdir()
    (folder / "Dockerfile").write_text("FROM scratch\n")
    run = [
        "run",
        "-e",
        "SELECT 1 LABEL a INTO m",
        "--source",
        "duckdb:",
        "--on",
        "kubernetes",
        "--build",
        str(folder),
    ]
    assert main([*run, "--image", "registry.example/team/m:1"]) == 1
    out, err = capfd.readouterr()
    assert out.splitlines()[0].startswith(
        f"['build', '--file', '{folder}/Dockerfile', '--tag', 'registry.example/"
    )
    assert out.splitlines()[1] == "['push', 'registry.example/team/m:1']"
    assert "build of registry.example/team/m:1 with buildah\npush of registry.example" in err
    assert "the push of registry.example/team/m:1 failed: buildah ended with exit code 1" in err
    assert main(run) == 1
    assert "an image that is built needs a name" in capfd.readouterr().err
    assert main(["run", "-e", "SELECT 1", "--source", "duckdb:", "--build", str(folder)]) == 2
    assert "--build applies to jobs on Kubernetes" in capfd.readouterr().err
    assert main([*run, "--image", "m:1", "--dry-run"]) != 2
    assert "build of" not in capfd.readouterr().err
