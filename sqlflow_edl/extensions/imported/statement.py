"""CREATE MODEL of a file that was trained elsewhere: `CREATE MODEL m OPTIONS(model_type = 'onnx', model_path = …)`.

It has the form of BigQuery ML's statement, and no query. The options stay attributes at their places in the text.
"""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import Span, SQLFlowError, StatementSyntaxError, did_you_mean, raise_all
from sqlflow_edl.syntax.ast import Attribute, Constant, ListValue, Name, Statement

TYPES = ("onnx", "lightgbm", "xgboost")
PATH, TYPE = "model_path", "model_type"
# option -> the form of its value
OPTIONS = {
    TYPE: "a text",
    PATH: "a text",
    "input_columns": "a list of texts",
    "input_label_cols": "a list of one text",
    "classes": "a list",
    "output": "a text",
    "output_kind": "a text",
    "rounds": "a whole number",
}
_IGNORED = ("kms_key_name",)
_INSTEAD = {
    "tensorflow": "a SavedModel is a program: export it as ONNX (tf2onnx converts SavedModels), "
    "and import that with model_type = 'onnx'",
    "tensorflow_lite": "export it as ONNX (tf2onnx converts it), and import that with model_type = 'onnx'",
}


def make_statement(
    text: str, span: Span, name: Name, options: Sequence[Attribute], closing: int
) -> Statement:
    """Return the statement. closing: place of the parenthesis behind the options. Raises all its errors together."""
    errors: list[SQLFlowError] = []
    if text[closing + 1 : span.end].strip():
        place = Span(closing + 1 + _leading_spaces(text[closing + 1 :]), span.end)
        message = "a model of a file learns from no query, so nothing stands behind its options"
        errors.append(StatementSyntaxError(message, span=place, hint="leave it out"))
    by_name = {option.key.casefold(): option for option in options}
    for option in options:
        key = option.key.casefold()
        if key not in OPTIONS and key not in _IGNORED:
            hint = did_you_mean(key, OPTIONS)
            errors.append(
                StatementSyntaxError(f"unknown option {option.key}", span=option.key_span, hint=hint)
            )
        elif key in OPTIONS and not _fits(option, OPTIONS[key]):
            errors.append(
                StatementSyntaxError(
                    f"{option.key} is {OPTIONS[key]}", span=option.value.span, hint=_EXAMPLES[key]
                )
            )
    errors += _check_type(by_name.get(TYPE), name.span)
    if PATH not in by_name:
        hint = f"add {PATH} = 'FILE', a file below the folder of the models"
        errors.append(StatementSyntaxError("the options name no file", span=name.span, hint=hint))
    raise_all(errors)
    return Statement(
        "import_model",
        text=text[span.start : span.end],
        span=span,
        attributes=tuple(option for option in options if option.key.casefold() in OPTIONS),
        into=(name,),
    )


_EXAMPLES = {
    TYPE: "as in model_type = 'onnx'",
    PATH: "as in model_path = 'm.onnx'",
    "input_columns": "as in input_columns = ['age', 'city']",
    "input_label_cols": "as in input_label_cols = ['species']",
    "classes": "as in classes = ['no', 'yes'], in the order of the scores",
    "output": "as in output = 'probabilities'",
    "output_kind": "as in output_kind = 'logits'",
    "rounds": "as in rounds = 100",
}


def _check_type(option: Attribute | None, name_span: Span) -> list[SQLFlowError]:
    """Return an error for a type of files that are not imported."""
    if option is None:
        hint = f"add {TYPE} = 'onnx', 'lightgbm' or 'xgboost'"
        return [StatementSyntaxError("the options name no model_type", span=name_span, hint=hint)]
    kind = text_of(option).casefold()
    if kind in TYPES:
        return []
    instead = _INSTEAD.get(kind) or did_you_mean(kind, TYPES)
    message = f"files of the model_type {text_of(option) or 'that is written'} are not imported"
    return [StatementSyntaxError(message, span=option.value.span, hint=instead)]


def _fits(option: Attribute, form: str) -> bool:
    values = [item.value for item in list_of(option) if isinstance(item, Constant)]
    if form == "a text":
        return bool(text_of(option))
    if form == "a whole number":
        [value] = values or [None]
        return isinstance(value, int) and not isinstance(value, bool) and value > 0
    if len(values) != len(list_of(option)) or not values:
        return False
    if form == "a list":
        return all(isinstance(value, str | int | bool) for value in values)
    return all(isinstance(value, str) and value for value in values) and (
        form.endswith("texts") or len(values) == 1
    )


def list_of(option: Attribute) -> tuple[object, ...]:
    """Return the items of an option; one value is a list of itself."""
    return option.value.items if isinstance(option.value, ListValue) else (option.value,)


def text_of(option: Attribute) -> str:
    """Return the text of an option, or an empty one."""
    value = option.value
    if isinstance(value, Constant):
        return value.value if isinstance(value.value, str) else ""
    return value.text if isinstance(value, Name) else ""


def _leading_spaces(text: str) -> int:
    return len(text) - len(text.lstrip())
