"""`sqlflow doctor`: what is installed, what can run, and whether the data source answers."""

from __future__ import annotations

import importlib.metadata as metadata
import json
from pathlib import Path

import pytest

from edl.installation import install_extras, install_packages
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.main import main

Found = dict[tuple[str, str], tuple[str, str]]


def report(capsys: pytest.CaptureFixture[str], *options: str, code: int = exit_codes.OK) -> Found:
    capsys.readouterr()
    assert main(["doctor", "--format", "json", *options]) == code
    rows = json.loads(capsys.readouterr().out)
    return {(row["about"], row["name"]): (row["found"], row["advice"]) for row in rows}


def without(monkeypatch: pytest.MonkeyPatch, package: str, version: str | None) -> None:
    """Let a package be missing, or of another version."""
    real = metadata.version

    def found(name: str) -> str:
        if name != package:
            return real(name)
        if version is None:
            raise metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(metadata, "version", found)


def test_libraries_are_listed_with_their_versions(capsys: pytest.CaptureFixture[str]) -> None:
    found = report(capsys)
    assert found["libraries", "xgboost"] == (f"xgboost-cpu {metadata.version('xgboost-cpu')}", "")
    assert found["possible", "boosted trees"] == ("lightgbm, xgboost", "")
    assert int(found["machine", "cores"][0]) >= 1


@pytest.mark.soak
def test_a_missing_library_is_named_with_its_installation(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "torch", None)
    found = report(capsys)
    assert found["libraries", "torch"][1] == install_packages("torch>=2.6")
    assert found["possible", "networks"] == ("tensorflow", "")
    assert found["possible", "all-reduce"][0] == "no"


@pytest.mark.soak
def test_a_library_that_is_too_old_is_missing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch, "lightgbm", "3.3.5")
    found = report(capsys)
    assert found["libraries", "lightgbm"][0].startswith("lightgbm 3.3.5")
    assert found["libraries", "lightgbm"][1] == install_extras("lightgbm")
    assert found["possible", "boosted trees"] == ("xgboost", "")


def test_a_data_source_is_tried(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/data.sqlite"
    found = report(capsys, "--source", url, code=exit_codes.FAILED)["data", "source"]
    assert found[0] == "not reachable"
    assert found[1].startswith("there is no database file")
    (tmp_path / "data.sqlite").touch()
    assert report(capsys, "--source", url)["data", "source"] == (f"{url}: reachable, 0 models", "")


@pytest.mark.soak
def test_a_cluster_needs_a_kubeconfig(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "config"))
    assert report(capsys)["possible", "Kubernetes"] == ("no", f"there is no {tmp_path}/config")
    (tmp_path / "config").touch()
    assert report(capsys)["possible", "Kubernetes"] == ("kubernetes", "")
