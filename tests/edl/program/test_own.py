"""Models of the user's own, found by their names without importing them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from edl.errors import SemanticError
from edl.program.own import PATH_VARIABLE, find, make_importable, search_path

MODELS = Path(__file__).parents[2] / "fixtures" / "models"


@pytest.fixture(autouse=True)
def model_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(MODELS))
    monkeypatch.setattr(sys, "path", list(sys.path))


@pytest.mark.parametrize(
    ("name", "file", "required", "optional", "anything", "framework"),
    [
        ("nets.Tower", "nets/towers.py", ("units", "outputs"), ("dropout",), False, "keras"),
        ("nets.towers.Tower", "nets/towers.py", ("units", "outputs"), ("dropout",), False, "keras"),
        ("nets.towers.Tall", "nets/towers.py", ("units", "outputs"), ("dropout",), False, "keras"),
        ("nets.joined", "nets/towers.py", ("features",), ("width",), False, "keras"),
        ("torch_nets.Model", "torch_nets.py", ("in_features", "out_features"), ("units",), False, "torch"),
        ("torch_nets.custom_model", "torch_nets.py", ("features",), (), True, "torch"),
    ],
)
def test_a_name_is_followed_to_what_defines_it(
    name: str,
    file: str,
    required: tuple[str, ...],
    optional: tuple[str, ...],
    anything: bool,
    framework: str,
) -> None:
    found = find(name)
    assert found.file == MODELS / file
    assert (found.signature.required, found.signature.optional) == (required, optional)
    assert (found.signature.anything, found.framework) == (anything, framework)
    assert found.module == name.rpartition(".")[0]


def test_looking_for_a_model_imports_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "loud").mkdir()
    (tmp_path / "loud" / "__init__.py").write_text("raise SystemExit('imported')")
    (tmp_path / "loud" / "net.py").write_text("raise SystemExit('imported')\ndef build(n): ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    assert find("loud.net.build").signature.required == ("n",)
    assert "loud" not in sys.modules


def test_a_module_alone_means_its_custom_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "zoo").mkdir()
    (tmp_path / "zoo" / "wide.py").write_text("def custom_model(a, b=1, *, c, d=2, **more): ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    found = find("zoo.wide")
    assert (found.module, found.attribute) == ("zoo.wide", "custom_model")
    assert str(found.signature) == "a, c, b=…, d=…, …"


def test_parameters_of_a_base_that_cannot_be_seen_are_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare.py").write_text("import keras\nclass Net(keras.Model): ...\nclass Own(Net): ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    assert find("bare.Own").signature.anything
    assert find("bare.Own").framework == "keras"


@pytest.mark.parametrize(
    ("name", "message", "hint"),
    [
        ("nest.Tower", "there is no module nest; looked in", "did you mean nets?"),
        ("nets.tower.Tower", "there is no module nets.tower", "did you mean nets.towers?"),
        ("nets.towers.Towr", "nets.towers defines no class or function Towr", "did you mean Tower?"),
        ("nets.parts", "nets.parts defines no class or function custom_model", ""),
        ("numpy._core._multiarray_umath.x", "has no Python source to look at", ""),
        ("nets.2.Tower", "nets.2.Tower is no name of a Python module", "my_package"),
        ("nets.class.Tower", "is no name of a Python module", "my_package"),
        ("sys.exit", "there is no module sys", ""),
    ],
)
def test_what_is_not_there_is_named_with_the_nearest(name: str, message: str, hint: str) -> None:
    with pytest.raises(SemanticError, match=message) as raised:
        find(name)
    assert hint in (raised.value.hint or "")


@pytest.mark.parametrize(
    "text", ["def build(:\n", "\x00", "a" * 3 + " = \xff".encode("latin-1").decode("latin-1")]
)
def test_a_module_that_cannot_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    (tmp_path / "broken.py").write_bytes(text.encode("latin-1"))
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    with pytest.raises(SemanticError, match=r"broken\.py"):
        find("broken.build")


def test_names_that_import_each_other_in_a_ring_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "one.py").write_text("from two import Net")
    (tmp_path / "two.py").write_text("from one import Net")
    (tmp_path / "self_based.py").write_text("class Net(Net): ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    assert find("one.Net").signature.anything
    assert find("self_based.Net").signature.anything


def test_an_installed_package_is_never_hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "keras.py").write_text("class Model: ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    assert tmp_path not in find("keras.Model").file.parents
    make_importable("nets.Tower")
    assert sys.path[-1] == str(tmp_path)


def test_a_module_is_imported_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    for name in ("changing", "changing_helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "changing.py").write_text("from changing_helper import VALUE")
    found = []
    for value in (1, 22):
        (tmp_path / "changing_helper.py").write_text(f"VALUE = {value}")
        make_importable("changing.Net")
        import changing  # type: ignore[import-not-found]

        found.append(changing.VALUE)
    assert found == [1, 22]


def test_without_a_path_models_are_in_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    assert search_path() == [str(tmp_path)]
