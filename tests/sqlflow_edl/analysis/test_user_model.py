"""TRAIN statements over models of the user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl import spec
from edl.errors import ErrorList, SQLFlowError
from edl.program.user_model import PATH_VARIABLE
from sqlflow_edl.session.compiler import CompiledStatement
from sqlflow_edl.session.session import Session

MODELS = Path(__file__).parents[2] / "fixtures" / "models"


@pytest.fixture(autouse=True)
def model_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PATH_VARIABLE, str(MODELS))


def compiled(session: Session, model: str, attributes: str = "", label: str = "income") -> CompiledStatement:
    written = f"WITH {attributes} " if attributes else ""
    text = f"SELECT age, city, {label} AS y FROM people TO TRAIN {model} {written}LABEL y INTO m"
    [only] = session.compile(text)
    return only


def test_parameters_follow_the_signature_and_the_rest_is_filled_in(session: Session) -> None:
    found = compiled(session, "nets.Tower", "model.units = [8, 4], dropout = 0.5", "team").spec
    assert found.model == spec.Component("nets.Tower", {"units": (8, 4), "dropout": 0.5})
    assert found.own is not None
    assert (found.own.module, found.own.attribute, found.own.passes) == ("nets", "Tower", ("outputs",))
    assert (found.framework, len(found.own.digest)) == ("keras", 64)


def test_lists_may_hold_lists_and_numbers_of_any_kind(session: Session) -> None:
    written = "model.units = [[64, 32], [16]], model.dropout = [0.1, 1e-3, -2, [TRUE, relu, ['a']]]"
    found = compiled(session, "nets.Tower", written, "team").spec
    units, dropout = ((64, 32), (16,)), (0.1, 0.001, -2, (True, "relu", ("a",)))
    assert found.model.params == {"units": units, "dropout": dropout}
    assert spec.from_json(spec.to_json(found)) == found


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("[[[[1]]]]", "at most three deep"),
        ("[1, {'a': 2}]", "a list of them and of such lists"),
        ("[[99999999999999999999]]", "out of range"),
    ],
)
def test_a_value_that_no_parameter_takes_is_named(session: Session, value: str, message: str) -> None:
    with pytest.raises(SQLFlowError, match=message):
        compiled(session, "nets.Tower", f"model.units = {value}", "team")


def test_a_parameter_that_is_written_is_not_filled_in(session: Session) -> None:
    found = compiled(session, "torch_nets.Model", "model.out_features = 1").spec
    assert found.own is not None
    assert found.own.passes == ("in_features",)
    assert found.model.params == {"out_features": 1}
    assert found.framework == "torch"


def test_a_function_that_takes_anything_gets_what_is_written(session: Session) -> None:
    found = compiled(session, "torch_nets.custom_model", "model.bias = FALSE, learning_rate = 0.5").spec
    assert found.model.params == {"bias": False}
    assert found.optimizer.params["learning_rate"] == 0.5


@pytest.mark.parametrize(
    ("label", "attributes", "kind"),
    [
        ("income", "", spec.RegressionLabel),
        ("team", "", spec.ClassLabel),
        ("age % 3", "", spec.ClassLabel),
        ("age % 3", "loss = mae", spec.RegressionLabel),
    ],
)
def test_the_label_or_a_written_loss_decides_what_is_learnt(
    session: Session, label: str, attributes: str, kind: type[spec.Label]
) -> None:
    assert isinstance(compiled(session, "torch_nets.Model", attributes, label).spec.label, kind)


@pytest.mark.parametrize(
    ("model", "attributes", "message", "hint"),
    [
        ("nets.Tower", "", "Tower needs its parameter units", "Tower(units, outputs, dropout=…)"),
        (
            "nets.Tower",
            "units = 3, model.dropuot = 1",
            "unknown attribute model.dropuot",
            "did you mean model.dropout?",
        ),
        (
            "nets.Tower",
            "units = 3, hidden_units = 3",
            "unknown attribute hidden_units",
            "belongs to DNNClassifier",
        ),
        (
            "nets.Tower",
            "units = 3, framework = torch",
            "Tower is written in keras, not torch",
            "leave model.framework out",
        ),
        ("nets.Towr", "units = 3", "nets defines no class or function Towr", "did you mean Tower?"),
    ],
)
def test_what_does_not_fit_the_signature_is_named(
    session: Session, model: str, attributes: str, message: str, hint: str
) -> None:
    with pytest.raises(SQLFlowError) as raised:
        compiled(session, model, attributes)
    assert not isinstance(raised.value, ErrorList)
    assert message in raised.value.message
    assert hint in (raised.value.hint or "")
    assert raised.value.span is not None


ZOO_FUNCTIONS = ("loss", "optimizer", "eval_metrics_fn", "callbacks")


@pytest.mark.parametrize("module", ["keras_zoo", "torch_zoo"])
def test_loss_optimizer_metrics_and_callbacks_of_the_module_are_the_programs_too(
    session: Session, module: str
) -> None:
    found = compiled(session, f"{module}.custom_model", label="age % 3")
    assert found.spec.own is not None
    assert found.spec.own.functions == ZOO_FUNCTIONS
    assert (found.spec.loss.name, found.spec.optimizer.name) == (f"{module}.loss", f"{module}.optimizer")
    assert found.spec.metrics == ()
    lines = found.program.files["model.py"].decode().splitlines()
    [line] = [line for line in lines if module in line and not line.startswith("#")][1:]
    names = ("own_model", "callbacks", "eval_metrics_fn", "loss", "optimizer")
    assert all(name in line for name in names)


@pytest.mark.parametrize(
    ("attributes", "left"),
    [
        ("loss = cross_entropy", ("optimizer", "eval_metrics_fn", "callbacks")),
        ("model.loss = focal", ("optimizer", "eval_metrics_fn", "callbacks")),
        ("learning_rate = 0.1", ("loss", "eval_metrics_fn", "callbacks")),
        ("optimizer = sgd", ("loss", "eval_metrics_fn", "callbacks")),
        ("optimizer.clipnorm = 1", ("loss", "eval_metrics_fn", "callbacks")),
        ("metrics = accuracy", ("loss", "optimizer", "callbacks")),
    ],
)
def test_what_the_statement_names_goes_before_the_modules_own(
    session: Session, attributes: str, left: tuple[str, ...]
) -> None:
    found = compiled(session, "torch_zoo.custom_model", attributes, label="age % 3").spec
    assert found.own is not None
    assert found.own.functions == left
    assert ("." in found.loss.name, "." in found.optimizer.name) == ("loss" in left, "optimizer" in left)


def test_a_function_that_cannot_be_called_as_the_contract_does_is_not_taken(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (MODELS / "torch_zoo.py").read_text()
    source = source.replace("def loss(labels, predictions)", "def loss(batch)")
    (tmp_path / "other_zoo.py").write_text(source.replace("def optimizer(parameters)", "def optimizer()"))
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    found = compiled(session, "other_zoo.custom_model", label="age % 3").spec
    assert found.own is not None
    assert found.own.functions == ("eval_metrics_fn", "callbacks")


def test_classes_cannot_be_weighed_in_a_loss_of_the_module(session: Session) -> None:
    with pytest.raises(SQLFlowError, match=r"the loss is torch_zoo\.loss"):
        compiled(session, "torch_zoo.custom_model", "class_weights = balanced", label="age % 3")


def test_a_class_that_trains_itself_is_refused(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "self_trained.py").write_text(
        "import keras\nclass Base(keras.Model):\n    def sqlflow_train_loop(self, rows): ...\nclass Net(Base): ..."
    )
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path))
    with pytest.raises(
        SQLFlowError, match="Net defines sqlflow_train_loop, which is not called here"
    ) as raised:
        compiled(session, "self_trained.Net")
    assert "sqlflow help python" in (raised.value.hint or "")
