"""ONNX files: their inputs bound to columns, and the output that predicts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from edl import features as fc
from edl import spec
from edl.errors import did_you_mean
from edl.extensions.imported.description import FileDescription, FileTensor
from edl.spec.imported import Gives
from edl.spec.job import Field
from sqlflow_edl.extensions.imported.binding import BoundModel, check_count
from sqlflow_edl.extensions.imported.labels import class_label, label_column
from sqlflow_edl.extensions.imported.options import ImportOptions

_MAPS = "seq(map("
_ROUNDING = 1e-4  # of probabilities in float16
_TENSOR = re.compile(r"tensor\((\w+)\)")
_TYPES = {  # element of a tensor -> type of the column
    "float": "float",
    "double": "double",
    "float16": "halffloat",
    "bool": "bool",
    "string": "string",
    **{f"{sign}int{bits}": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
# Keys of metadata under which files name their columns: JSON, or names with commas.
_NAMES = ("feature_names", "input_columns", "columns", "features")
_LABELS = ("label", "output_label", "variable")  # outputs that are the predicted class
_PROBABLE = ("probabilities", "output_probability", "probability", "scores")
_FROM_OPERATORS = frozenset(
    {
        "Softmax",
        "Sigmoid",
        "ZipMap",
        "Normalizer",
        "TreeEnsembleClassifier",
        "LinearClassifier",
        "SVMClassifier",
    }
)


def bind_onnx(description: FileDescription, options: ImportOptions) -> BoundModel:
    """Bind the inputs to columns. Raises SemanticError for what a table has no columns for, or what is not told."""
    if options.rounds:
        raise options.error("rounds", "rounds are of trees of XGBoost", "leave rounds out")
    widths = [_width(tensor, description, options) for tensor in description.inputs]
    names = _column_names(description, widths, options)
    nulls = description.of_export.nulls if description.of_export else {}
    inputs: dict[str, tuple[spec.Feature, ...]] = {}
    fields: list[Field] = []
    for position, (tensor, width) in enumerate(zip(description.inputs, widths, strict=True)):
        some, names = names[:width], names[width:]
        kind = _TYPES[_element(tensor)]
        fields += [Field(name, kind) for name in some]
        inputs[f"i{position}"] = tuple(
            fc.raw_text(name, nulls.get(name, msgspec.UNSET)) if kind == "string" else fc.raw(name)
            for name in some
        )
    if description.of_export and not (options.output or options.kind or options.classes):
        label, output, gives = _own_output(description, description.of_export.label, options)
        threshold = description.of_export.threshold
    else:
        output_value = _output(description, options)
        label, gives = _label(description, output_value, options)
        output, threshold = output_value.name, None
    return BoundModel(
        inputs={"features": inputs["i0"]} if len(inputs) == 1 else inputs,
        label=label,
        fields=tuple(fields),
        output=output,
        gives=gives,
        types=tuple(tensor.type for tensor in description.inputs),
        threshold=threshold,
        notes=tuple(_notes(description, options)),
    )


def _notes(description: FileDescription, options: ImportOptions) -> Iterator[str]:
    fixed = next((tensor.shape[0] for tensor in description.inputs if tensor.shape and tensor.shape[0]), None)
    if fixed:
        yield (
            f"the file computes {fixed} row{'s' if fixed > 1 else ''} at a time, which is slow: export it with a free "
            "number of rows"
        )


# Inputs ------------------------------------------------------------------------------------------------------


def _element(tensor: FileTensor) -> str:
    match = _TENSOR.fullmatch(tensor.type)
    return match[1] if match else ""


def _width(tensor: FileTensor, description: FileDescription, options: ImportOptions) -> int:
    """Return the number of columns of an input. Raises SemanticError for one that rows of a table cannot give."""
    if _element(tensor) not in _TYPES:
        raise options.error(
            "input_columns",
            f"the input {tensor.name} is {tensor.type}, which no column of a table gives",
            "export the model with inputs of numbers, booleans and texts",
        )
    if len(tensor.shape) == 1 and tensor.shape[0] is None:
        return 1
    if len(tensor.shape) != 2:
        dimensions = ", ".join("rows" if size is None else str(size) for size in tensor.shape)
        raise options.error(
            "input_columns",
            f"the input {tensor.name} has the dimensions ({dimensions}), and a table gives (rows, columns)",
            "export the model with an input (rows, columns) or one for each column, (rows,)",
        )
    if tensor.shape[1] is not None:
        return tensor.shape[1]
    others = len(description.inputs) - 1
    named = len(options.columns or _names_of_metadata(description))
    if not named:
        raise options.error(
            "input_columns",
            f"the file does not tell how many columns its input {tensor.name} takes, nor their names",
            "add input_columns = ['a', 'b', …], in the order of the training",
        )
    return named - others


def _column_names(description: FileDescription, widths: list[int], options: ImportOptions) -> tuple[str, ...]:
    """Return the names of the columns of all inputs, in order: of the option, of the metadata, or of the inputs."""
    total = sum(widths)
    names = options.columns or _names_of_metadata(description)
    if names:
        check_count(names, total, "the file", options)
        return names
    wide = next((tensor for tensor, width in zip(description.inputs, widths, strict=True) if width > 1), None)
    if wide is not None:
        check_count((), total, f"the input {wide.name} of the file", options)
    return tuple(tensor.name for tensor in description.inputs)


def _names_of_metadata(description: FileDescription) -> tuple[str, ...]:
    text = next((description.metadata[key] for key in _NAMES if key in description.metadata), "")
    try:
        names = msgspec.json.decode(text, type=tuple[str, ...])
    except msgspec.MsgspecError:
        names = tuple(name.strip() for name in text.split(","))
    return tuple(filter(None, names))


# Outputs -----------------------------------------------------------------------------------------------------


def _own_output(
    description: FileDescription, data: msgspec.Raw, options: ImportOptions
) -> tuple[spec.Label, str, Gives]:
    """Return the label of a model of ours, and its output. Raises SemanticError for one of another version."""
    try:
        label: spec.Label = msgspec.json.decode(bytes(data), type=spec.Label)
    except msgspec.MsgspecError as error:
        raise options.error(
            "model_path", f"another version has written the label of the file: {error}"
        ) from None
    if options.label and not label.labels:
        label = msgspec.structs.replace(label, column=options.label)
    names = [output.name for output in description.outputs]
    has_scores = label.has_classes or bool(label.labels)
    if label.is_number:  # the file adds the centre itself
        label = spec.RegressionLabel(", ".join(label.columns))
    own_names = [name for name in names if name.rstrip("_") == ("scores" if has_scores else "outputs")]
    output = own_names[0] if own_names else names[0]
    gives: Gives = "probabilities" if label.has_classes else "scores" if label.labels else "number"
    return label, output, gives


def _output(description: FileDescription, options: ImportOptions) -> FileTensor:
    """Return the output that predicts: the one of the option, else probabilities, else the first one."""
    by_name = {output.name: output for output in description.outputs}
    if options.output:
        if options.output not in by_name:
            hint = did_you_mean(options.output, by_name, list_up_to=8)
            raise options.error("output", f"the file has no output {options.output}", hint)
        return by_name[options.output]
    scored = [
        output
        for output in description.outputs
        if output.type.startswith(_MAPS) or (output.operator in _FROM_OPERATORS and _is_float(output))
    ]
    named = [
        output for output in description.outputs if output.name.casefold() in _PROBABLE and _is_float(output)
    ]
    floats = [output for output in description.outputs if _is_float(output)]
    if not (scored or named) and len(floats) > 1:
        raise options.error(
            "output",
            f"the file has several outputs: {', '.join(by_name)}",
            f"write output = '{floats[0].name}', the one that predicts",
        )
    return (scored or named or floats or list(description.outputs))[0]


def _is_float(output: FileTensor) -> bool:
    return _element(output) in ("float", "double", "float16")


def _label(
    description: FileDescription, output: FileTensor, options: ImportOptions
) -> tuple[spec.Label, Gives]:
    """Return the label, and what the output is. Raises SemanticError if the file does not tell enough."""
    width = _scores_of(output)
    gives = options.kind or _guess(description, output, width, options)
    if gives == "number":
        if options.classes:
            raise options.error("classes", "a number has no classes", "leave classes or output_kind out")
        if width not in (None, 1):
            raise options.error(
                "output",
                f"the output {output.name} has {width} numbers for each row, and a number is predicted",
                "name its classes: classes = ['a', 'b', …]",
            )
        return spec.RegressionLabel(label_column(options)), "number"
    if gives == "class":
        if not (options.classes or description.classes):
            raise options.error(
                "classes",
                f"the file does not tell the classes of its output {output.name}",
                "add classes = ['a', 'b', …]",
            )
        return class_label(options, description.classes, None), "class"
    if not (options.classes or description.classes) and (width is None or _names_classes(description)):
        raise options.error(
            "classes",
            f"the file does not tell the classes of its output {output.name}",
            "add classes = ['a', 'b', …], in the order of its numbers",
        )
    if gives == "probabilities":
        _check_shares(description, output, options)
    return class_label(
        options, description.classes, width
    ), "probabilities" if gives == "probabilities" else "logits"


def _names_classes(description: FileDescription) -> bool:
    """Return True if another output is the predicted class: its names may differ from the numbers from 0."""
    return any(_element(output) and not _is_float(output) for output in description.outputs)


def _check_shares(description: FileDescription, output: FileTensor, options: ImportOptions) -> None:
    """Raise SemanticError if an output had numbers for made-up rows that are no probabilities."""
    strange = next((number for number in output.extremes if not -_ROUNDING <= number <= 1 + _ROUNDING), None)
    if strange is None:
        return
    label = next(
        (other.name for other in description.outputs if _element(other) and not _is_float(other)), ""
    )
    raise options.error(
        "output",
        f"the output {output.name} has {strange:.4g} for a made-up row, and a probability is between 0 and 1",
        f"write output = '{label}', output_kind = 'class'" if label else "write output_kind = 'logits'",
    )


def _scores_of(output: FileTensor) -> int | None:
    """Return the number of values for each row, None if it is unknown."""
    if output.type.startswith(_MAPS):
        return None
    if len(output.shape) > 2:
        return None
    return output.shape[1] if len(output.shape) == 2 else 1


def _guess(
    description: FileDescription, output: FileTensor, width: int | None, options: ImportOptions
) -> Gives:
    """Return what an output is by its operator and the classes. Raises SemanticError if that is ambiguous."""
    if output.type.startswith(_MAPS):
        return "probabilities"
    if not _is_float(output):
        is_class = _element(output) == "string" or bool(options.classes or description.classes)
        return "class" if is_class or output.name.casefold() in _LABELS[:2] else "number"
    has_classes = bool(options.classes or description.classes) or width not in (None, 1)
    if not has_classes:
        return "probabilities" if output.operator == "Sigmoid" and width == 1 else "number"
    if output.operator in _FROM_OPERATORS or output.name.casefold() in _PROBABLE:
        return "probabilities"
    made = f" ({output.operator} makes it)" if output.operator else ""
    raise options.error(
        "output_kind",
        f"the file does not tell if its output {output.name} has probabilities or logits of classes{made}",
        "write output_kind = 'logits', or 'probabilities' if its numbers of a row add up to 1",
    )
