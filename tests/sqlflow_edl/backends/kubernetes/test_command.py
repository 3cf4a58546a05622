"""Jobs of `edl train | evaluate | predict --on kubernetes`, from the command line to the output that comes back."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edl import exit_codes
from edl.cli.main import main
from edl.jobs import job_folder
from edl.models.archive import read_archive
from edl.program import user_model
from sqlflow_edl.backends.kubernetes.manifests import objects
from sqlflow_edl.backends.kubernetes.manifests.rendering import format_yaml, yaml_of
from sqlflow_edl.cli.main import main as sqlflow
from tests.edl.cli.test_distributed import MODULE
from tests.kubernetes.process import Cluster

ROWS = 200
SMALL = ("master_cpu=0.1", "worker_cpu=0.2", "worker_cpu_limit=2", "grace_secs=2")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a zoo of one module and a file of rows."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(user_model, "_added", [])
    monkeypatch.chdir(tmp_path)
    Path("zoo").mkdir()
    Path("zoo/pods_line.py").write_text(MODULE)
    Path("line.csv").write_text("x,y\n" + "".join(f"{n / 100},{3 * n / 100 + 1}\n" for n in range(ROWS)))
    return tmp_path


def edl(kind: str, *more: object) -> int:
    model = ("--model_zoo", "zoo", "--model_def", "pods_line.custom_model")
    return main([kind, *model, *map(str, more)])


def on_kubernetes(namespace: str, *more: object) -> tuple[object, ...]:
    settings = [f"--set={each}" for each in SMALL]
    return ("--on", "kubernetes", "--namespace", namespace, "--image", "edl:test", *settings, *more)


def test_a_module_is_trained_by_pods_on_rows_that_travel_and_its_archive_comes_back(
    namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    on = on_kubernetes(namespace, "--num_epochs", 3, "--output", "line.zip", "--job_name", "my-line")
    assert edl("train", *on, "--training_data", "line.csv") == exit_codes.OK, capsys.readouterr().err
    told = capsys.readouterr()
    assert "rmse" in told.out
    assert "epoch 3  step 12" in told.err
    assert read_archive(Path("line.zip")).spec.output.name == "my-line"
    [job] = job_folder.jobs()
    assert (job.status().state, "my-line" in job.status().place) == ("done", True)
    assert not job.archive.exists() and not job.rows.exists()


@pytest.mark.soak
def test_a_detached_training_on_files_of_pods_is_fetched_measured_and_used_as_on_this_machine(
    namespace: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = f"pod:{folder / 'line.csv'}"
    train = ("--training_data", rows, "--validation_data", rows, "--num_epochs", 2, "--num_workers", 2)
    on = on_kubernetes(namespace, "--detach", "--output", "my line.zip")
    assert edl("train", *on, *train) == exit_codes.OK
    job = job_folder.jobs()[-1]
    assert f"`edl fetch {job.id} --output 'my line.zip'` gets" in capsys.readouterr().err
    assert sqlflow(["attach", job.id]) == exit_codes.OK
    assert f"`edl fetch {job.id}`" in capsys.readouterr().err
    assert main(["fetch", job.id, "--output", "line.zip"]) == exit_codes.OK

    use = ("--weights", "line.zip")
    for kind, data in (("evaluate", "--validation_data"), ("predict", "--prediction_data")):
        capsys.readouterr()
        assert edl(kind, *use, data, "line.csv") == exit_codes.OK
        here = capsys.readouterr().out
        assert edl(kind, *use, data, rows, *on_kubernetes(namespace, "--num_workers", 2)) == exit_codes.OK
        assert capsys.readouterr().out == here


@pytest.mark.soak
def test_results_go_to_a_path_of_pods_where_they_are_too_large_to_come_back(
    namespace: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = f"pod:{folder / 'volume'}"
    on = on_kubernetes(namespace, "--training_data", "line.csv", "--output", f"{target}/line.zip")
    assert edl("train", *on) == exit_codes.OK
    assert "pods have written" in capsys.readouterr().err
    use = ("--weights", f"{target}/line.zip", "--prediction_data", "line.csv")
    assert edl("predict", *on_kubernetes(namespace, "--output", f"{target}/out"), *use) == exit_codes.OK
    assert "note: the model is in pods, so the columns of " in capsys.readouterr().err
    assert [path.suffix for path in (folder / "volume" / "out").iterdir()] == [".arrow"]


def test_files_that_pods_do_not_find_fail_the_job_with_their_name(
    namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    on = on_kubernetes(namespace, "--training_data", "pod:/nowhere/line.csv", "--output", "line.zip")
    assert edl("train", *on) == exit_codes.FAILED
    assert "error: there is no file /nowhere/line.csv" in capsys.readouterr().err
    assert not Path("line.zip").exists()


def test_a_dry_run_prints_the_objects_and_leaves_nothing(
    kubernetes: Cluster,
    namespace: str,
    golden: object,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(objects, "MAPS", 2)
    kubernetes.requests()
    on = on_kubernetes(
        "team", "--training_data", "pod:/edl/volume/line.csv", "--set", "volume=data", "--dry-run"
    )
    assert edl("train", *on) == exit_codes.OK
    made = yaml_of(capsys.readouterr().out)
    for each in made:  # the JobSpec has golden files of its own
        each.get("data", {}).pop("program.job.json", None)
    golden("kubernetes/zoo.yaml", format_yaml(made).encode())  # type: ignore[operator]
    assert (kubernetes.requests(), job_folder.jobs()) == ([], [])
