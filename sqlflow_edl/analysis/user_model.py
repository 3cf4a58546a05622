"""User-defined model in a TRAIN statement: it takes the parameters of its class or function.
`WITH model.units = 3` sets its parameter `units`. The program itself passes parameters of these names if the signature
has them: `features` (then the model is given the arrays of the features, else one matrix), `in_features` (the width of
that matrix), `outputs` or `out_features` (one for a number or two classes, else the number of classes).

The program also uses `loss`, `optimizer`, `eval_metrics_fn` and `callbacks` of the model's module, unless the
statement names others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError
from edl.program import contract, image_models
from edl.program.user_model import OwnModel, Signature, check_permitted, find
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.models.base import Architecture, Model
from sqlflow_edl.analysis.models.parts import deep_feature, one_input
from sqlflow_edl.analysis.settings.attribute_dictionary import AttributeRow, Dictionary
from sqlflow_edl.analysis.settings.attributes import TRAIN
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.syntax import ast

ARCHITECTURE = Architecture("own", one_input(deep_feature))
PASSED = ("features", "in_features", "outputs", "out_features")

# package of estimators that are not called here by their own names -> its display name
_LIBRARIES: Mapping[str, str] = {
    "sklearn": "scikit-learn",
    "xgboost": "XGBoost",
    "lightgbm": "LightGBM",
    "catboost": "CatBoost",
    "statsmodels": "statsmodels",
}
_LINEAR = (
    "linear_model",
    "LogisticRegression",
    "LinearRegression",
    "LinearSVC",
    "LinearSVR",
    "api.OLS",
    "api.Logit",
)
_TREES = ("ensemble", "tree", "Tree", "Forest", "Boost")
_HOOKS = "sqlflow_"  # prefix of methods that SQLFlow calls in place of its own training and prediction


def look_up(name: ast.Name) -> OwnModel | None:
    """Return the model of that dotted name, if SQL may use it, or of image/Class; None for an unknown image.

    Raises SemanticError with the source span.
    """
    image, _, model = str(name).rpartition("/")
    try:
        if image:
            user_code = image_models.find_in_image(image, model)
        elif str(name).partition(".")[0] in _LIBRARIES:
            raise _other_library(str(name))
        else:
            user_code = find(str(name))
            check_permitted(user_code)
        methods = user_code.definition.methods if user_code is not None else ()
        if user_code is not None and (
            hooks := sorted(method for method in methods if method.startswith(_HOOKS))
        ):
            raise _hooks(user_code, hooks)
        return user_code
    except SQLFlowError as error:
        error.span = name.span
        raise


def _other_library(name: str) -> SemanticError:
    """Return the error for an estimator of another library, with the equivalent models."""
    library = _LIBRARIES[name.partition(".")[0]]
    trees = library in ("XGBoost", "LightGBM", "CatBoost") or any(part in name for part in _TREES)
    family = "BoostedTrees" if trees else "Linear" if any(part in name for part in _LINEAR) else "DNN"
    hint = f"write TO TRAIN {family}Classifier, or {family}Regressor for a label that is a number"
    return SemanticError(
        f"{name} is an estimator of {library}; statements train models by their names here", hint=hint
    )


def _hooks(user_code: OwnModel, hooks: list[str]) -> SemanticError:
    return SemanticError(
        f"{user_code.name} defines {', '.join(hooks)}, which is not called here: "
        "a job trains every model by minibatches",
        hint="remove it, and write what it does as loss, optimizer or callbacks beside the model, or in its call; "
        "a model that must train itself is trained in Python, see sqlflow help python",
    )


def entry(name: ast.Name, user_code: OwnModel | None, statement: ast.Statement) -> Model:
    """Return a catalog entry for the model, or a substitute for an unknown one; the label decides its task.

    If the signature takes any keyword, attributes written with `model.` are parameters, too.
    """
    if user_code is None:
        return substitute_model(statement)
    attributes = statement.attributes
    names = list(user_code.signature.names)
    if user_code.signature.anything:
        prefixed = (
            attribute.key for attribute in attributes if attribute.key.casefold().startswith("model.")
        )
        names += [key[len("model.") :] for key in prefixed]
    of_all_models = Dictionary(TRAIN)  # as model.optimizer is
    rows = (
        _attribute(user_code, parameter)
        for parameter in dict.fromkeys(names)
        if parameter.isidentifier() and of_all_models.find(f"model.{parameter}") is None
    )
    frameworks = (user_code.framework,) if user_code.framework else ("keras", "torch")
    return Model(
        user_code.name if user_code.image else str(name),
        f"{user_code.attribute}({user_code.signature})",
        tuple(rows),
        frameworks=frameworks,
        architecture=ARCHITECTURE,
    )


def substitute_model(statement: ast.Statement) -> Model:
    """Return a substitute for an unknown model: it takes every unclaimed attribute, of any type."""
    dictionary = Dictionary((*TRAIN, *KUBERNETES))
    keys = dict.fromkeys(
        attribute.key for attribute in statement.attributes if dictionary.find(attribute.key) is None
    )
    rows = (
        AttributeRow(key, "anything", "A parameter of the model.")
        for key in keys
        if not key.startswith(("optimizer.", "loss.", "schedule."))
    )
    return Model("", "", tuple(rows), architecture=ARCHITECTURE)


def _attribute(user_code: OwnModel, parameter: str) -> AttributeRow:
    return AttributeRow(
        f"model.{parameter}", "anything", f"A parameter of {user_code.attribute}.", aliases=(parameter,)
    )


def check(user_code: OwnModel, parameters: Iterable[str], span: Span, errors: list[SQLFlowError]) -> None:
    """Add an error if a required parameter is neither given nor filled in."""
    lacking = [name for name in user_code.signature.required if name not in {*parameters, *PASSED}]
    if lacking:
        plural = "s" if len(lacking) > 1 else ""
        errors.append(
            SemanticError(
                f"{user_code.attribute} needs its parameter{plural} {', '.join(lacking)}",
                span=span,
                hint=f"write WITH model.{lacking[0]} = …; it is {user_code.attribute}({user_code.signature})",
            )
        )


def check_sequence(user_code: OwnModel | None, column: Fitted, span: Span | None) -> None:
    """Raise SemanticError for ids in their order, unless the model takes arrays of features."""
    if column.array == "sequence" and (user_code is None or "features" not in user_code.signature.names):
        raise SemanticError(
            "SEQUENCE needs a model that reads ids in their order",
            span=span,
            hint="train a SequenceClassifier or a SequenceRegressor, or a model of your own with a parameter features; "
            "others take EMBEDDING(x, 8, mean) of the same ids, which has no order",
        )


def functions(user_code: OwnModel, framework: str, attribute_names: Iterable[str]) -> tuple[str, ...]:
    """Return the functions of the contract that the program takes from the model's module.

    Those are the functions with a compatible signature that no attribute of the statement replaces.

    attribute_names: its attributes by their canonical names.
    """
    names = set(attribute_names)
    return tuple(
        function.name
        for function in contract.functions(framework)
        if function.name in user_code.functions
        and _fits(user_code.functions[function.name], len(function.arguments))
        and not any(name.startswith(_SAID_BY[function.name]) for name in names)
    )


# function of the contract -> prefixes of the attributes that replace it
_SAID_BY: Mapping[str, tuple[str, ...]] = {
    "loss": ("loss",),
    "optimizer": ("optimizer",),
    "eval_metrics_fn": ("validation.metrics",),
    "callbacks": (),
}


def _fits(signature: Signature, arguments: int) -> bool:
    """Return True if a function can be called with that many arguments."""
    return signature.anything or len(signature.required) <= arguments <= len(signature.names)


def store_model(user_code: OwnModel, parameters: Iterable[str], functions: tuple[str, ...]) -> spec.Own:
    """Return the model in the form of a JobSpec."""
    passes = tuple(
        name for name in PASSED if name in user_code.signature.names and name not in set(parameters)
    )
    image = user_code.image or msgspec.UNSET
    return spec.Own(user_code.module, user_code.attribute, user_code.digest, passes, functions, image)
