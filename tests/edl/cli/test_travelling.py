"""Files that travel with a job of a hand-written module, and those that do not."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest

from edl.cli import place, travelling
from edl.cli.main import _options, main
from edl.cli.model_zoo import job_spec
from edl.errors import SemanticError
from edl.jobs import job_folder
from edl.jobs.job_folder import JobFolder
from edl.models.pending import Intent, read_intent
from edl.program import user_model
from edl.run import job_runner
from edl.spec import JobSpec
from tests.edl.cli.test_distributed import MODULE

MOST = 100_000


@pytest.fixture
def zoo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package with data and a secret, another one, and files that are no module."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(user_model, "_added", [])
    monkeypatch.chdir(tmp_path)
    found = tmp_path / "zoo"
    for name, text in {
        "travelling_net/__init__.py": "",
        "travelling_net/net.py": MODULE,
        "travelling_net/words.txt": "a b c",
        "travelling_net/.env": "PASSWORD=x",
        "travelling_net/__pycache__/net.pyc": "",
        "others/losses.py": "",
        "others/rows.csv": "x\n1\n",
        "venv/pyvenv.cfg": "",
        "venv/lib.py": "",
        ".hidden/secret.py": "",
    }.items():
        (found / name).parent.mkdir(parents=True, exist_ok=True)
        (found / name).write_text(text)
    (tmp_path / "rows.csv").write_text("x,y\n" + "".join(f"{n},{2 * n}\n" for n in range(20)))
    return found


def filled(zoo: Path, *more: str, kind: str = "train", most: int = MOST) -> tuple[JobFolder, JobSpec]:
    """A job folder for a command line, and the JobSpec of the pods."""
    model = ("--model_zoo", str(zoo), "--model_def", "travelling_net.net.custom_model")
    options = _options([kind, *model, "--on", "kubernetes", *more])
    job = JobFolder(zoo.parent / "20260101-120000-000000-abcdef")
    job.program.mkdir(parents=True)
    spec = job_spec(options)
    with job_runner.load_program(job.program, spec, threads=1) as program:
        return job, travelling.fill(job, program, options, most)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_the_package_travels_with_its_data_and_the_modules_beside_it_without_what_is_hidden(
    zoo: Path,
) -> None:
    job, spec = filled(zoo, "--training_data", "rows.csv", "--output", "pod:/edl/volume/m.zip")
    package = {f"travelling_net/{name}" for name in ("__init__.py", "net.py", "words.txt")}
    assert files(job.zoo) == {*package, "others/losses.py"}
    assert spec.zoo is not None
    assert (spec.zoo.path, spec.rows.training, spec.cluster.workers) == ("zoo", 20, 1)
    assert files(job.rows) == {"pinned.json", "files.json", "data/00000.csv"}
    assert read_intent(job.path) == Intent("train", "", "/edl/volume/m.zip")


def test_rows_that_only_pods_see_are_named_and_not_read(zoo: Path) -> None:
    job, spec = filled(
        zoo, "--training_data", "pod:/d/train.csv", "--validation_data", "pod:csv:///d/v?delim=;"
    )
    written = msgspec.json.decode(job.unindexed_files.read_bytes())
    assert written == {"rows": "/d/train.csv", "rows/held-out": "csv:///d/v?delim=;"}
    assert spec.rows.total == 0


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--training_data", "pod:/x.csv", "--validation_data", "rows.csv"), "only one begins with pod:"),
        (("--training_data", "rows.csv", "--output", "pod:m.zip"), "not an absolute path in pods"),
    ],
)
def test_paths_of_pods_that_cannot_be_meant_are_refused(zoo: Path, more: tuple[str, ...], said: str) -> None:
    with pytest.raises(SemanticError, match=said):
        filled(zoo, *more)


@pytest.mark.parametrize(
    ("most", "said"), [(1_500, "the modules of .* have"), (2_800, "the files of .* MB travel")]
)
def test_what_is_too_large_to_travel_is_refused_before_it_is_copied(zoo: Path, most: int, said: str) -> None:
    Path("rows.csv").write_text("x,y\n" + "1,2\n" * 1000)
    (zoo / "travelling_net" / "words.txt").write_text("a" * 1200)
    with pytest.raises(SemanticError, match=said):
        filled(zoo, "--training_data", "rows.csv", most=most)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--on", "kubernets"), "jobs cannot run on 'kubernets'\nhint: did you mean kubernetes"),
        (("--detach",), "--detach applies to jobs elsewhere\nhint: add --on"),
        (("--output", "pod:/v/m.zip"), "--output names a path of pods, and the job has none\nhint: add --on"),
        (("--on", "kubernetes", "--threads", "2"), "--threads applies to jobs on this machine"),
        (("--on", "kubernetes", "--output", "no/m.zip"), "there is no folder no for --output"),
        (("--on", "kubernetes", "--set", "wroker_cpu=1"), "did you mean worker_cpu"),
    ],
)
def test_mistakes_are_told_before_anything_is_submitted(
    zoo: Path, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
) -> None:
    model = ("--model_zoo", str(zoo), "--model_def", "travelling_net.net.custom_model")
    assert main(["train", *model, "--training_data", "rows.csv", *more]) != 0
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(("kind", "where"), [("run", "kubernetes default/job-1"), ("train", "")])
def test_jobs_that_make_no_file_elsewhere_have_none_to_fetch(
    capsys: pytest.CaptureFixture[str], kind: job_folder.Kind, where: str
) -> None:
    job = job_folder.create(kind)
    job.zoo.mkdir()
    job.update(place=where)
    assert main(["fetch", job.id]) != 0
    assert f"job {job.id} has no output to fetch\nhint: edl fetch is for jobs of" in capsys.readouterr().err


def test_a_place_that_is_not_installed_is_told_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "entry_points", lambda group: [])
    with pytest.raises(SemanticError, match="cannot run on 'kubernetes'") as refused:
        place.place_named("kubernetes")
    assert "pip install" in str(refused.value.hint)
