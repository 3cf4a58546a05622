"""Model that a TRAIN statement names: a built-in one, a family, or the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from edl.errors import Advice, SemanticError, SQLFlowError, suggest_name
from edl.program.user_model import OwnModel, has_module
from sqlflow_edl.analysis import alternatives, catalog, user_model
from sqlflow_edl.analysis.checks.query_errors import OtherModelError, UnknownArchitectureError
from sqlflow_edl.analysis.entries import Entry
from sqlflow_edl.analysis.models import boosted_trees
from sqlflow_edl.analysis.models.base import Model
from sqlflow_edl.analysis.settings import trees
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.syntax import ast

_OF_SQLFLOW = "sqlflow_models."  # package of SQLFlow's own models
# examples in it, each of which is a DNNClassifier here
_EXAMPLES = ("dnnclassifier_functional_model", "RawDNNClassifier", "CustomClassifier")
# other models of it -> the model that does their work here
_SAME_WORK = {"ScoreCard": "Linear", "OneClassSVM": "IsolationForest"}
_OF_ELASTICDL = "elasticdldnnclassifier"  # which is trained elastically, like all models here


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen model.

    entry: the model, or None for the model of `family` that suits the label. own: the user's own model, as its source
    describes it. implied_framework, params: implied by its name, such as xgboost.dart. is_forest: of trees that are
    grown side by side in one round.
    """

    entry: Model | None
    family: str = ""
    own: OwnModel | None = None
    implied_framework: str = ""
    params: Mapping[str, Setting] = field(default_factory=dict)
    is_forest: bool = False

    @property
    def is_trees(self) -> bool:
        return self.example.architecture is boosted_trees.ARCHITECTURE

    @property
    def example(self) -> Model:
        """Entry of the model, or of one of its family: they have the same inputs and parameters."""
        return self.entry or catalog.MODELS.entries[f"{self.family}Classifier"]

    @property
    def framework(self) -> str:
        """Framework if WITH model.framework is not given."""
        return self.implied_framework or self.example.frameworks[0]


def choose(statement: ast.Statement, errors: list[SQLFlowError]) -> Choice:
    """Return the model that the statement names.

    An unknown name adds an error and returns a substitute, so that the analysis can continue.
    """
    if statement.model is None:
        return Choice(None, "DNN")
    name = statement.model.text
    own_name = "DNNClassifier" if name.casefold() == _OF_ELASTICDL else name
    if built_in := _built_in(own_name) or _of_sqlflow(name):
        return built_in
    try:
        image, _, of_image = name.rpartition("/")
        if image and _built_in(of_image):
            raise SemanticError(
                f"{of_image} is a model of this package, and no class of the image {image}",
                span=statement.model.span,
                hint=Advice(f"write {of_image}, which needs no image", of_image),
            )
        return _choose_user_model(statement.model, statement)
    except SQLFlowError as error:
        errors.append(error)
        return _built_in(catalog.nearest_model(name) or "") or Choice(user_model.substitute_model(statement))


def with_loss(choice: Choice, loss: Entry | None) -> Choice:
    """Return the choice; of a family of trees with a loss that ranks, the ranker."""
    if loss is None or loss.task != "ranking" or choice.family != trees.FAMILY:
        return choice
    return replace(choice, entry=catalog.MODELS.entries[f"{trees.FAMILY}Ranker"], family="")


def is_built_in(name: str) -> bool:
    """Return True for the name of a model of this package."""
    return _built_in(name) is not None


def _built_in(name: str) -> Choice | None:
    """Return the model or family of that name, or None."""
    if tree := trees.find_by_name(name):
        entry = catalog.MODELS.find(tree.model)
        return Choice(
            entry,
            "" if entry else tree.model,
            implied_framework=tree.framework,
            params=tree.params,
            is_forest=tree.is_forest,
        )
    if model := catalog.MODELS.find(name):
        return Choice(model)
    family = catalog.family(name)
    return Choice(None, family) if family else None


# packages of the classes that other programs name in place of a model, as in tf.estimator.DNNClassifier
_FRAMEWORKS = frozenset(("tf", "tensorflow", "keras", "torch", "nn"))
_LAYERS = (
    "write TO TRAIN DNNClassifier WITH model.hidden_units = [64, 32], or a class of yours, my_module.MyModel"
)


def _of_sqlflow(name: str) -> Choice | None:
    """Return the model of a name of SQLFlow's zoo, unless a module of that name is there."""
    package, _, model = name.partition(".")
    if f"{package}." != _OF_SQLFLOW:
        return None
    choice = _built_in("DNNClassifier" if model in _EXAMPLES else _SAME_WORK.get(model, model))
    return choice if choice and not has_module(package) else None


def _find_own_model(name: ast.Name) -> OwnModel | None:
    """Return the user's model of that name. The error for a class of a framework names the model that is here."""
    try:
        return user_model.look_up(name)
    except SQLFlowError as error:
        package, _, rest = name.text.partition(".")
        is_there = "--model-packages" in (error.hint or "")  # and only has to be permitted
        if package in _FRAMEWORKS and not is_there:
            model = rest.rpartition(".")[2]
            built_in, other = _built_in(model), alternatives.find_alternative(model)
            error.hint = f"write TO TRAIN {model}" if built_in else other.hint if other else _LAYERS
        raise


def _choose_user_model(name: ast.Name, statement: ast.Statement) -> Choice:
    of_sqlflow = name.text.startswith(_OF_SQLFLOW)
    model = name.text.removeprefix(_OF_SQLFLOW)
    other = alternatives.find_alternative(model, name.text)
    if "/" in name.text or (
        "." in name.text and not (of_sqlflow and (other or not has_module(_OF_SQLFLOW[:-1])))
    ):
        user_code = _find_own_model(name)
        return Choice(user_model.entry(name, user_code, statement), own=user_code)
    if other:
        raise OtherModelError(other.message, other.replacement, span=name.span, hint=other.hint)
    near = catalog.nearest_model(model)
    hint = suggest_name(near) if near else alternatives.HINT
    raise UnknownArchitectureError(name.text, span=name.span, hint=hint)
