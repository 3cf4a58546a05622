"""Models of the user's own, found by their names without importing them."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest

from edl.errors import JobError, SemanticError, SpecError, SQLFlowError, UserCodeError
from edl.program import model_packages
from edl.program.user_model import (
    PATH_VARIABLE,
    check_permitted,
    find,
    make_importable,
    search_path,
    with_digest,
)
from edl.spec import Component, JobSpec, Own, Query, RegressionLabel, Rows

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
        ("numpy._core._multiarray_umath.x", "has no Python source", ""),
        ("nets.2.Tower", "nets.2.Tower is not the name of a Python module", "my_package"),
        ("nets.class.Tower", "is not the name of a Python module", "my_package"),
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
    with pytest.raises(SQLFlowError, match=r"broken\.py"):
        find("broken.build")


def test_a_syntax_error_is_shown_with_its_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "broken.py"
    file.write_text("import torch\nclass Net(torch.nn.Module)\n    pass\n")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    with pytest.raises(UserCodeError) as raised:
        find("broken.Net")
    assert raised.value.message == f"{file}:2: expected ':'"
    assert raised.value.hint == "class Net(torch.nn.Module)"
    assert raised.value.traceback.endswith("SyntaxError: expected ':'\n")


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
    assert sys.path.index(str(tmp_path)) > sys.path.index(sysconfig.get_path("purelib"))


def test_a_module_is_imported_as_it_is_now(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    for name in ("changing", "changing_helper"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    (tmp_path / "changing.py").write_text("from changing_helper import VALUE")
    found = []
    for value in (1, 2):  # of the same length, in the same second
        (tmp_path / "changing_helper.py").write_text(f"VALUE = {value}")
        make_importable("changing.Net")
        import changing  # type: ignore[import-not-found]

        found.append(changing.VALUE)
    assert found == [1, 2]


def test_modules_of_a_folder_with_a_name_that_only_begins_alike_stay_as_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder, name in (("nets", "of_the_path"), ("nets_of_others", "of_others")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / f"{name}.py").touch()
    monkeypatch.setenv(PATH_VARIABLE, f"{tmp_path / 'nets'}/")
    monkeypatch.syspath_prepend(tmp_path / "nets_of_others")
    make_importable("another.Net")
    for name in ("of_the_path", "of_others"):
        __import__(name)
    make_importable("another.Net")
    assert [name in sys.modules for name in ("of_the_path", "of_others")] == [False, True]


def test_without_a_path_models_are_in_the_current_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, "")
    monkeypatch.chdir(tmp_path)
    assert search_path() == [str(tmp_path)]


def used(name: str, own: Own) -> JobSpec:
    """A prediction with a stored model of that name."""
    return JobSpec(
        kind="predict",
        statement="SELECT x FROM t TO PREDICT USING m",
        query=Query(select="SELECT x FROM t", dialect="duckdb", source="duckdb:"),
        rows=Rows(pinned=True, total=1, training=0),
        framework="torch",
        model=Component(name),
        inputs={},
        label=RegressionLabel("y"),
        optimizer=Component("adam"),
        loss=Component("mean_squared_error"),
        metrics=(),
        own=own,
    )


@pytest.mark.variants(6)
@pytest.mark.parametrize(
    ("name", "packages", "allowed"),
    [
        ("torch_nets.Model", "", True),
        ("torch_nets.custom_model", "", True),
        ("nets.joined", "", True),
        ("torch.nn.modules.linear.Linear", "", False),
        ("torch.nn.modules.linear.Linear", "torch.nn", True),
        ("keras.layers.Dense", "", False),
        ("keras.layers.Dense", "numpy, keras.layers.Dense", True),
        ("keras.layers.Lambda", "keras.layers.Dense", False),
        ("keras.applications.MobileNet", "", False),
        ("keras.applications.MobileNet", "keras.applications", True),
        ("keras.utils.get_file", "keras.applications", False),
        ("subprocess.Popen", "", False),
        ("shutil.rmtree", "", False),
        ("torch.hub.load", "torch.nn", False),
        ("torch.utils.cpp_extension.load", "", False),
        ("webbrowser.open", "", False),
        ("edl.program.loader.load", "edl", False),
        ("edl.keras.Embedding", "", False),
    ],
)
def test_a25_sql_names_models_of_the_path_and_of_allowed_packages(
    name: str, packages: str, allowed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PATH_VARIABLE, f"{MODELS}:/")  # even where a folder of the path holds everything
    monkeypatch.setenv(model_packages.VARIABLE, packages)
    found = find(name)
    job = used(name, Own(found.module, found.attribute, found.digest))
    if allowed:
        assert with_digest(job) == job
        return
    with pytest.raises(SemanticError, match="SQL may not name"):
        with_digest(job)


FLAWED = """
import keras
from collections import OrderedDict
from keras.layers import Dense
from posix import system
from shutil import rmtree
from subprocess import getoutput as build

class Config:
    def __init__(self, path): ...

class Failure(Exception): ...

class Net(keras.Model): ...

class Wide(Net): ...

class Joined(keras.layers.Dense): ...
"""


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("build", "flawed does not define build, it imports it from subprocess"),
        ("system", "flawed does not define system, it imports it from posix"),
        ("rmtree", "flawed does not define rmtree, it imports it from shutil"),
        ("Dense", "flawed does not define Dense, it imports it from keras"),
        ("OrderedDict", "flawed does not define OrderedDict"),
        ("Config", "flawed.Config is not a model"),
        ("Failure", "flawed.Failure is not a model"),
        ("Net", ""),
        ("Wide", ""),
        ("Joined", ""),  # its base is out of sight: the process that imports it looks
    ],
)
def test_a25_a_module_lends_sql_the_models_that_it_defines_and_nothing_that_it_imports(
    name: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "flawed.py").write_text(FLAWED)
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    found = find(f"flawed.{name}")
    if not message:
        check_permitted(found)
        return
    with pytest.raises(SemanticError, match=message):
        check_permitted(found)


def test_a25_a_function_makes_models_where_its_module_comes_to_import_a_framework(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "blocks.py").write_text("import torch")
    (tmp_path / "towers.py").write_text("from blocks import block\ndef build(n): ...")
    (tmp_path / "chores.py").write_text("import shutil, chores\ndef clean(path): ...")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    check_permitted(find("towers.build"))
    with pytest.raises(SemanticError, match=r"chores\.clean cannot make a model"):
        check_permitted(find("chores.clean"))


@pytest.mark.parametrize(
    "name", ["torch_nets.__loader__.exec_module", "nets.__init__.Tower", "torch_nets.__dict__"]
)
def test_a25_a_name_with_dunders_is_no_name_of_a_model(name: str) -> None:
    with pytest.raises(SemanticError, match="is not the name of a Python module"):
        find(name)


def test_what_sql_may_not_name_is_answered_with_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SemanticError) as raised:
        check_permitted(find("keras.applications.MobileNet"))
    assert f"SQLFLOW_MODEL_PATH: {MODELS}" in str(raised.value.hint)
    assert "--model-packages keras.applications" in str(raised.value.hint)
    with pytest.raises(SemanticError) as raised:
        check_permitted(find("subprocess.getoutput"))
    assert "--model-packages" not in str(raised.value.hint)


def test_a25_a_stored_models_parts_belong_to_its_name() -> None:
    found = find("torch_nets.Model")
    with pytest.raises(SpecError, match=r"torch_nets\.Model is not os\.system"):
        with_digest(used("torch_nets.Model", Own("os", "system", found.digest)))


def test_functions_of_the_contract_that_stand_beside_a_model_are_found() -> None:
    found = find("torch_zoo.custom_model").functions
    assert list(found) == ["loss", "optimizer", "eval_metrics_fn", "callbacks"]
    assert found["loss"].required == ("labels", "predictions")
    assert find("torch_nets.Model").functions == {}


def test_functions_of_the_contract_may_come_from_another_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "parts_of_a_test.py").write_text("def mean(labels, predictions, power=2): ...")
    (tmp_path / "zoo_of_a_test.py").write_text(
        "from parts_of_a_test import mean as loss\nfrom keras.losses import unknown as optimizer\nclass Model: ..."
    )
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    found = find("zoo_of_a_test.Model").functions
    assert found["loss"].names == ("labels", "predictions", "power")
    assert found["optimizer"].anything


def test_a25_a_stored_model_takes_functions_from_modules_of_the_user_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = find("torch_zoo.custom_model")
    good = Own(own.module, own.attribute, own.digest, (), ("loss", "callbacks"))
    assert with_digest(used("torch_zoo.custom_model", good)).own == good
    monkeypatch.setenv(model_packages.VARIABLE, "torch.nn,keras.layers")
    for name in ("torch_nets.Model", "torch.nn.functional.mse_loss", "keras.layers.Dense"):
        found = find(name)
        with pytest.raises(JobError, match="no longer defines loss"):
            with_digest(used(name, Own(found.module, found.attribute, found.digest, (), ("loss",))))
