"""Settings: who says them, which of them wins, and what is answered to wrong ones."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from edl.errors import ErrorList, SemanticError
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.backends.kubernetes.settings import Configuration, place, read_configuration
from sqlflow_edl.syntax import parse
from sqlflow_edl.syntax.ast import Attribute


@pytest.fixture(autouse=True)
def no_file_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def file(folder: Path, text: str) -> Path:
    path = folder / "some.toml"
    path.write_text(text)
    return path


def attributes(text: str) -> tuple[Attribute, ...]:
    return parse(f"SELECT 1 TO TRAIN m WITH {text} LABEL y INTO x")[0].attributes


def test_later_ones_win_from_the_default_to_the_command_line(tmp_path: Path) -> None:
    shared = 'worker_cpu = 2\nimage = "a"\nnamespace = "n"\nps_cpu = 3'
    profile = '[big]\nimage = "b"\nnamespace = "m"\nps_cpu = 4'
    found = read_configuration("big", file(tmp_path, f"{shared}\n{profile}"), [("ps_cpu", "6")])
    settings = found.settings(attributes("kubernetes.namespace = o, kubernetes.ps_cpu = 5"))
    names = ("master_cpu", "worker_cpu", "image", "namespace", "ps_cpu")
    assert [settings.text(name) for name in names] == ["0.5", "2", "b", "o", "6"]


def test_names_with_values_are_brought_together_and_lists_are_not(tmp_path: Path) -> None:
    written = 'labels = {a = "1", b = "1"}\ntolerations = ["x"]\n[p]\nlabels = {b = "2", c = "2"}'
    found = read_configuration("p", file(tmp_path, written), [("labels", "d=4"), ("tolerations", "z")])
    settings = found.settings(attributes("kubernetes.labels = {'c': 3}, kubernetes.tolerations = y"))
    assert settings.pairs("labels") == {"a": "1", "b": "2", "c": "3", "d": "4"}
    assert settings.texts("tolerations") == ["z"]


def test_the_users_file_is_read_without_being_named(tmp_path: Path) -> None:
    folder = tmp_path / "config" / "sqlflow-edl"
    folder.mkdir(parents=True)
    (folder / "kubernetes.toml").write_text('image = "mine"\npod_template = "pods.yaml"')
    settings = read_configuration().settings()
    assert settings.text("image") == "mine"
    assert settings.text("pod_template") == str(folder / "pods.yaml")


def test_what_nobody_says_is_the_default_or_empty() -> None:
    settings = Configuration().settings()
    assert (settings.text("namespace"), settings.whole("ttl_secs")) == ("", 86_400)
    assert (settings.pairs("labels"), settings.texts("tolerations")) == ({}, [])
    assert (settings.number("high_priority_fraction"), settings.whole("worker_gpu")) == (1.0, 0)


@pytest.mark.parametrize(
    ("written", "message", "hint"),
    [
        ('imag = "x"', "some.toml: unknown setting imag", "did you mean image?"),
        (
            'worker_memory = "4GB"',
            r"some.toml: kubernetes.worker_memory must be an amount of memory",
            "Memory request of",
        ),
        ("worker_memory = 4", "must be an amount of memory with its unit", "Memory request of"),
        (
            '[gpu]\nworker_gpu = "2"',
            r"some.toml, \[gpu\]: kubernetes.worker_gpu must be a whole number",
            "GPUs",
        ),
        (
            "[gpu]\nworker_gpu = 65",
            r"some.toml, \[gpu\]: kubernetes.worker_gpu = 65 is out of range",
            "from 0 to 64",
        ),
        ('[gpu]\nimage_pull_policy = "never ever"', "cannot be 'never ever'", "did you mean Never?"),
        (
            "[gpu]\nlabels = {a = [1]}",
            "kubernetes.labels must be names with values",
            "Additional labels of every",
        ),
        ('[gpu]\ntolerations = ["a=b:Never"]', "must be taints as kubectl writes them", "Taints"),
        ("[gpus]", "has no profile gpu", "did you mean gpus?"),
        ("image =", "is not valid TOML", "a setting looks like"),
    ],
)
def test_a_wrong_setting_of_a_file_is_told_with_its_place(
    tmp_path: Path, written: str, message: str, hint: str
) -> None:
    with pytest.raises(SemanticError, match=message) as refused:
        read_configuration("gpu", file(tmp_path, f"{written}\n" if "[" in written else f"{written}\n[gpu]"))
    assert hint in (refused.value.hint or "")


def test_a_profile_that_is_not_asked_for_is_not_read(tmp_path: Path) -> None:
    assert (
        read_configuration("", file(tmp_path, "[broken]\nworker_gpu = 'x'")).settings().whole("worker_gpu")
        == 0
    )


def test_a_file_that_is_named_is_there(tmp_path: Path) -> None:
    with pytest.raises(SemanticError, match="there is no file"):
        read_configuration("", tmp_path / "none.toml")
    with pytest.raises(SemanticError, match=r"there is no file .*kubernetes\.toml"):
        read_configuration("gpu")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("imag", "x", "imag=x: unknown setting imag"),
        ("worker_gpu", "many", "worker_gpu=many: kubernetes.worker_gpu must be a whole number"),
        ("labels", "a", "labels=a: kubernetes.labels must be names with values"),
        ("worker_cpu", "0", "must be a number of processors"),
    ],
)
def test_a_wrong_setting_of_the_command_line_is_told_with_what_was_written(
    name: str, text: str, message: str
) -> None:
    with pytest.raises(SemanticError, match=message):
        read_configuration(pairs=[(name, text)])


@pytest.mark.parametrize(
    ("name", "text", "read"),
    [("ttl_secs", "60", "60"), ("memory_factor", "2", "2.0"), ("worker_cpu_limit", "None", "none")],
)
def test_the_command_line_has_numbers_and_words(name: str, text: str, read: str) -> None:
    assert read_configuration(pairs=[(name, text)]).settings().text(name) == read


def test_wrong_attributes_are_told_together_with_their_places() -> None:
    text = "kubernetes.imgae = x, kubernetes.worker_gpu = 1.5, train.epoch = 1"
    with pytest.raises(ErrorList) as refused:
        read_configuration().settings(attributes(text))
    one, other = refused.value.errors
    assert (one.message, one.hint) == ("unknown attribute kubernetes.imgae", "did you mean kubernetes.image?")
    assert other.message == "kubernetes.worker_gpu must be a whole number"
    assert one.span and other.span and one.span.start < other.span.start


def test_defaults_are_what_their_types_and_ranges_allow() -> None:
    for row in KUBERNETES:
        if row.default is not None:
            text = str(row.default)
            assert read_configuration(pairs=[(row.name.removeprefix("kubernetes."), text)])


def test_a_place_is_this_machine_or_kubernetes_with_a_profile() -> None:
    assert place("", {}) is None
    found = place("kubernetes", {"worker_gpu": "2"})
    assert found is not None and found.settings().whole("worker_gpu") == 2
    with pytest.raises(SemanticError, match="there is no file"):
        place("kubernetes:gpu", {})


@pytest.mark.parametrize("on", ["mars", "kubernetes:", ""])
def test_any_other_place_is_refused(on: str) -> None:
    with pytest.raises(SemanticError, match="jobs cannot run on"):
        place(on, {"image": "x"})


def test_the_files_in_docs_are_read(repository: Path, tmp_path: Path) -> None:
    text = (repository / "docs" / "kubernetes.md").read_text(encoding="utf-8")
    [example] = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    [written] = re.findall(r"kubernetes\.toml <<END\n(.*?)END", text, re.DOTALL)
    assert read_configuration("gpu", file(tmp_path, example)).settings().whole("worker_gpu") == 1
    assert read_configuration("", file(tmp_path, written)).settings().text("volume") == "checkpoints"
