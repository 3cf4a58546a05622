"""Builders of images: which one is taken, what it is told, and what is said when there is none."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from edl.build import SHOWN, Build
from edl.errors import ClusterError, SemanticError
from sqlflow_edl.analysis.settings.kubernetes import USER
from sqlflow_edl.backends.images import builders
from sqlflow_edl.backends.images.builders import Builder, check_tag, find_builder, init
from sqlflow_edl.backends.images.registry import LABEL

# Stands in for a builder: writes down its arguments, answers about its daemon, and ends as it is told.
STAND_IN = """#!{python} -S
import json, sys
with open({calls!r}, "a") as file:
    print(json.dumps([{name!r}, *sys.argv[1:]]), file=file)
if sys.argv[1] == "version":
    if {refusal!r}:
        print({refusal!r}, file=sys.stderr)
        sys.exit(1)
    sys.exit(0)
print("step 1 of 1")
print("a warning", file=sys.stderr)
sys.exit({code})
"""


@pytest.fixture
def calls(tmp_path: Path) -> Callable[[], list[list[str]]]:
    """What builders were called with, but for questions about their daemons."""

    def read() -> list[list[str]]:
        lines = (tmp_path / "calls").read_text().splitlines() if (tmp_path / "calls").exists() else []
        return [call for call in map(json.loads, lines) if call[1] != "version"]

    return read


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """install(name, code=, refusal=): puts a builder on the PATH, where nothing else is."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))

    def put(name: str, code: int = 0, refusal: str = "") -> None:
        text = STAND_IN.format(
            python=sys.executable, calls=str(tmp_path / "calls"), name=name, code=code, refusal=refusal
        )
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)

    return put


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    init(tmp_path / "mine")
    return tmp_path / "mine"


def test_the_first_builder_that_works_is_taken(install: Callable[..., None]) -> None:
    install("buildah")
    assert find_builder().name == "buildah"
    install("docker", refusal="Cannot connect to the Docker daemon")
    assert find_builder().name == "buildah"
    install("podman")
    assert find_builder().name == "podman"
    install("docker")
    assert find_builder().name == "docker"
    assert find_builder("buildah").name == "buildah"


def test_a_daemon_that_does_not_answer_is_told_in_its_own_words(install: Callable[..., None]) -> None:
    install("docker", refusal="Client: 28\nCannot connect to the Docker daemon")
    with pytest.raises(ClusterError, match="no image builder works: docker: Cannot connect to the Docker"):
        find_builder()


@pytest.mark.parametrize("name", ["", "podman"])
def test_without_a_builder_it_says_what_to_install(install: Callable[..., None], name: str) -> None:
    if name:
        install("docker")
    with pytest.raises(ClusterError, match="not installed, and one is needed to build images") as caught:
        find_builder(name)
    assert "install podman or buildah" in str(caught.value.hint)


@pytest.mark.parametrize("name", builders.BUILDERS)
def test_a_builder_is_told_everything_as_arguments_and_its_exit_code_is_ours(
    install: Callable[..., None], calls: Callable[[], list[list[str]]], folder: Path, name: str
) -> None:
    install(name, code=7)
    builder = find_builder(name)
    hostile = "$(touch /tmp/x); `id` ' \""
    assert builder.build(folder, "team/models:1", target="job", arguments={"BASE": hostile}) == 7
    assert builder.push("team/models:1") == 7
    file, rest = str(folder / "Dockerfile"), ["--build-arg", f"BASE={hostile}", str(folder)]
    assert calls() == [
        [name, "build", "--file", file, "--tag", "team/models:1", "--target", "job", *rest],
        [name, "push", "team/models:1"],
    ]


def test_an_image_with_the_code_of_its_folder_has_a_label_with_its_build(
    install: Callable[..., None], calls: Callable[[], list[list[str]]], folder: Path
) -> None:
    install("podman")
    code = folder / "runtime" / "edl"
    code.mkdir(parents=True)
    for name, line in (("installation", 'VERSION = "0.2.0"  # of both'), ("build", "PROTOCOL = 7")):
        (code / f"{name}.py").write_text(f"{line}\n", encoding="utf-8")
    assert find_builder().build(folder, "m") == 0
    [[*_, option, label, _]] = calls()
    name, _, value = label.partition("=")
    build = msgspec.json.decode(value, type=Build)
    assert (option, name) == ("--label", LABEL)
    assert (build.version, len(build.digest), build.protocol) == ("0.2.0", SHOWN, 7)


def test_a_builders_output_comes_as_it_is_made(
    install: Callable[..., None], folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    install("podman")
    assert find_builder().build(folder, "m") == 0
    assert capfd.readouterr() == ("step 1 of 1\n", "a warning\n")


@pytest.mark.parametrize(
    "tag",
    [
        "m",
        "m:1",
        "team/models:1.0-a_b",
        "host.example/team/m:1",
        "host:5000/m",
        "a__b/c-d.e",
        "localhost/m:T",
    ],
)
def test_names_of_images(tag: str) -> None:
    check_tag(tag)


@pytest.mark.parametrize(
    "tag", ["", "-t", "--tag", "a b", "m:", "m:-1", "a//b", "Team/M:1 ", "m@1", "é", "m:1\n"]
)
def test_what_names_no_image_is_refused_before_a_builder_is_asked(tag: str) -> None:
    with pytest.raises(SemanticError, match="cannot name an image"):
        Builder("docker", "/nowhere").build(Path(), tag)
    with pytest.raises(SemanticError, match="cannot name an image"):
        Builder("docker", "/nowhere").push(tag)


def test_a_name_in_capitals_has_a_hint() -> None:
    with pytest.raises(SemanticError) as caught:
        check_tag("MyModels:1")
    assert caught.value.hint == "write mymodels:1"


def test_a_folder_without_a_dockerfile_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="there is no Dockerfile") as caught:
        Builder("docker", "/nowhere").build(tmp_path, "m")
    assert caught.value.hint == f"sqlflow image init {tmp_path} writes one"


def test_a_containerfile_will_do(install: Callable[..., None], tmp_path: Path) -> None:
    install("buildah")
    (tmp_path / "Containerfile").write_text("FROM a")
    assert find_builder().build(tmp_path, "m") == 0


def test_a_new_folder_stands_on_the_stock_image_and_runs_as_its_user(tmp_path: Path) -> None:
    made = init(tmp_path / "deep" / "mine")
    assert [path.name for path in made] == ["Dockerfile", "requirements.txt"]
    text = made[0].read_text(encoding="utf-8")
    assert f"ARG BASE={builders.STOCK}\nFROM ${{BASE}}\n" in text
    assert text.endswith(f"USER {USER}:{USER}\n")
    assert "COPY models/ /opt/models/\n" in text
    assert (tmp_path / "deep" / "mine" / "models").is_dir()


def test_a_folder_with_a_file_of_ours_stays_as_it_is(folder: Path) -> None:
    (folder / "Dockerfile").unlink()
    (folder / "requirements.txt").write_text("mine")
    with pytest.raises(SemanticError, match=r"requirements\.txt exists already"):
        init(folder)
    assert (folder / "requirements.txt").read_text() == "mine"
    assert not (folder / "Dockerfile").exists()
