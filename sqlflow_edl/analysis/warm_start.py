"""TRAIN … USING m: training continues from the weights of a model, so their meaning must not change.

Features with their vocabularies and statistics, classes, and the shape of the model are taken from m, whatever the new
rows would have given; optimizer, loss, settings and rows are the statement's. Anything that would change the meaning
of a weight is an error; the distance of the new rows from the rows of m is a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean
from sqlflow_edl.analysis import catalog, expressions
from sqlflow_edl.analysis.choice import Choice
from sqlflow_edl.analysis.columns.drafts import Draft, Statistics
from sqlflow_edl.analysis.columns.inputs import Fitted, ModelInputs
from sqlflow_edl.analysis.inference import used_model
from sqlflow_edl.analysis.schema import Schema
from sqlflow_edl.analysis.settings.attribute_dictionary import Resolved
from sqlflow_edl.analysis.statistics.fitting import ColumnStatistics, Want
from sqlflow_edl.syntax import ast

WITHOUT_WEIGHTS = ("activation", "dropout")  # parameters of built-in models that change no weight's shape
FAR = 1.0  # deviations between two means that cause a note
MANY = 0.05  # share of rows with an unknown value that causes a note


@dataclass(frozen=True, slots=True)
class Parent:
    """Model that training starts from: `name@version`, its JobSpec, and its span in the statement."""

    reference: str
    spec: spec.JobSpec
    span: Span

    def refuse(self, message: str, span: Span | None, hint: str) -> SemanticError:
        return SemanticError(message, span=span or self.span, hint=hint)


def choice(
    parent: Parent, choice_written: Choice, statement: ast.Statement, errors: list[SQLFlowError]
) -> Choice:
    """Return the model of the parent; add an error if the statement names another."""
    name = parent.spec.model.name
    if parent.spec.framework == spec.NO_FRAMEWORK:
        hint = f"write COLUMN FEATURES({expressions.model(parent.reference)}) in place of USING"
        raise parent.refuse(
            f"{parent.reference} is a transform, which has no weights to start from", None, hint
        )
    if parent.spec.imported:
        raise parent.refuse(
            f"{parent.reference} was imported from {parent.spec.imported.file}, and is not trained further",
            None,
            "a model that starts anew learns from the rows of the query alone",
        )
    if parent.spec.members:
        hint = f"train one of its models further: SHOW TRIALS {parent.reference} lists their statements"
        raise parent.refuse(f"{parent.reference} is an ensemble, which is not trained as a whole", None, hint)
    if parent.spec.edited:
        errors.append(
            parent.refuse(
                f"{parent.reference} was trained by an edited program, which is not stored with it",
                None,
                "run that program: edl train --weights",
            )
        )
    if parent.spec.forecast is not None:
        hint = "leave USING out: a training takes seconds, and learns from all rows of the query"
        raise parent.refuse(f"{parent.reference} is a forecast, which is not trained further", None, hint)
    entry = catalog.MODELS.find(name)
    same = (
        choice_written.entry.name == name if choice_written.entry else name.startswith(choice_written.family)
    )
    if statement.model is not None and not same:
        errors.append(
            parent.refuse(
                f"{parent.reference} is a {name}, not a {statement.model.text}",
                statement.model.span,
                f"write TRAIN {name}, or leave USING out",
            )
        )
    if entry is None and statement.model is None:
        errors.append(parent.refuse(f"{parent.reference} is a {name}", None, f"write TO TRAIN {name}"))
    if entry is not None and parent.spec.label.labels:
        return Choice(None, name.removesuffix("Regressor").removesuffix("Classifier"))  # by each label
    return Choice(entry) if entry else choice_written


def check_parameters(parent: Parent, resolved: Mapping[str, Resolved], errors: list[SQLFlowError]) -> None:
    """Return errors for attributes that would change the shape of a weight."""
    free_trees = parent.spec.framework in spec.TREES  # later trees may differ in all but their kind
    params = {"members": 1, **parent.spec.model.params}
    theirs = {f"model.{name}": value for name, value in params.items() if not free_trees or name == "booster"}
    theirs["model.framework"] = parent.spec.framework
    for name, value_of_parent in theirs.items():
        free = parent.spec.own is None and name.removeprefix("model.") in WITHOUT_WEIGHTS
        if name not in resolved or free:
            continue
        if _plain(resolved[name].value) != _plain(value_of_parent):
            span = resolved[name].span
            message = (
                f"{name} is {_plain(value_of_parent)} in {parent.reference}, and its weights fit no other"
            )
            errors.append(parent.refuse(message, span, f"leave {name} out"))


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def parameters(
    parent: Parent, values_written: Mapping[str, spec.job.Parameter], resolved: Mapping[str, Resolved]
) -> dict[str, spec.job.Parameter]:
    """Return the parameters of the model: the written ones, else the parent's."""
    kept = {name: value for name, value in values_written.items() if f"model.{name}" in resolved}
    return {**parent.spec.model.params, **kept}


def inputs(
    parent: Parent, statement: ast.Statement, schema: Schema, errors: list[SQLFlowError]
) -> ModelInputs:
    """Return the parent's features, over the columns of this query."""
    renamed = used_model.columns(statement, schema, parent.spec.columns, errors, parent.spec.query)
    return used_model.renamed_inputs(parent.spec, renamed)


def list_wants(features: ModelInputs) -> dict[str, Want]:
    """Return the statistics by which the new rows are compared."""
    by_column: dict[str, Want] = {}
    for feature in _iterate_features(features):
        column = spec.category_of(feature)
        if (want := _compared_by(column)) is not Want.NONE:
            [source] = map(str, spec.sources(column))
            by_column[source] = by_column.get(source, Want.NONE) | want
    return by_column


def _compared_by(column: Fitted) -> Want:
    """Return the statistics by which rows are compared with a feature or category; none of most kinds."""
    if column.moments is not None and not column.part:
        return Want.MOMENTS
    return Want.COUNTS if column.levels else Want.NONE


def computed_columns(features: ModelInputs) -> dict[str, spec.Computed]:
    """Return the computed columns of the features by the names that `wants` gives them."""
    all_sources = (source for feature in _iterate_features(features) for source in spec.sources(feature))
    return {str(source): source for source in all_sources if isinstance(source, spec.Computed)}


def label(parent: Parent, own_label: spec.Label, span: Span | None) -> spec.Label:
    """Return the parent's label in this query's column.

    Raises SemanticError if it has classes that the parent does not know.
    """
    return _label(parent, parent.spec.label, own_label, span)


def _label(parent: Parent, theirs: spec.Label, own_label: spec.Label, span: Span | None) -> spec.Label:
    if own_label.labels or theirs.labels:
        return _several(parent, spec.each_label(theirs), spec.each_label(own_label), span)
    if theirs.has_classes and own_label.has_classes:
        unknown = [value for value in own_label.classes if value not in theirs.classes]
        if unknown:
            shown = ", ".join(map(repr, unknown[:3])) + (", …" if len(unknown) > 3 else "")
            texts = [value for value in theirs.classes if isinstance(value, str)]  # 10 is not meant by 100
            hint = did_you_mean(str(unknown[0]), texts, list_up_to=20)
            message = f"{own_label.column} has classes that {parent.reference} does not know: {shown}"
            raise parent.refuse(message, span, hint or "leave USING out: the model starts from new weights")
    if own_label.group:
        return own_label
    return msgspec.structs.replace(theirs, column=own_label.column)


def _several(
    parent: Parent, theirs: Sequence[spec.Label], own_labels: Sequence[spec.Label], span: Span | None
) -> spec.SeveralLabels:
    if [type(one_label) for one_label in theirs] != [type(one_label) for one_label in own_labels]:
        columns = ", ".join(one_label.column for one_label in theirs)
        hint = "name as many labels of the same kinds, in that order"
        raise parent.refuse(f"{parent.reference} predicts {columns}", span, hint)
    pairs = zip(theirs, own_labels, strict=True)
    return spec.several_labels(_label(parent, *pair, span) for pair in pairs)


def check_written(
    parent: Parent,
    drafts: Iterable[Draft],
    features: ModelInputs,
    statistics: Statistics,
    form: Callable[[Fitted, Span | None], Fitted] | None,
) -> list[SQLFlowError]:
    """Return errors for written columns that the parent lacks; sizes that come from the rows are ignored.

    form: of a column in the parent's kind of model, if that takes other forms than networks.
    """
    errors: list[SQLFlowError] = []
    theirs = {name for feature in _iterate_features(features) for name in _signatures(feature)}
    shown = ", ".join(
        dict.fromkeys(_describe_column(spec.category_of(feature)) for feature in _iterate_features(features))
    )
    for draft in drafts:
        try:
            column = draft.fit(statistics)
            own_signature = signature(form(column, draft.span) if form else column, draft.dim)
        except SQLFlowError as error:
            errors.append(error)
            continue
        if own_signature not in theirs:
            message = f"{parent.reference} has no feature {own_signature}"
            hint = f"leave COLUMN out: its features are {shown}"
            errors.append(parent.refuse(message, draft.span, hint))
    return errors


def warm_start_notes(parent: Parent, features: ModelInputs, statistics: Statistics) -> list[str]:
    """Return notes on the origin of the features, and on rows far from the parent's."""
    said = [f"features, vocabularies and statistics are those of {parent.reference}"]
    for feature in dict.fromkeys(map(spec.category_of, _iterate_features(features))):
        want, columns = _compared_by(feature), ", ".join(map(str, spec.sources(feature)))
        if want is Want.MOMENTS and feature.moments is not None:
            column_statistics, (mean, std) = statistics[columns], feature.moments
            if (
                column_statistics.rows > column_statistics.nulls
                and abs(column_statistics.mean - mean) > FAR * std
            ):
                now = f"{columns} is {column_statistics.mean:.4g} on average"
                said.append(f"{now}, and was {mean:.4g} for {parent.reference}")
        elif want is Want.COUNTS and (share := _unknown_share(feature, statistics)) > MANY:
            values = f"values that {parent.reference} does not know in {share:.0%} of the rows"
            said.append(f"{columns} holds {values}")
    return said


def _unknown_share(feature: Fitted, statistics: Statistics) -> float:
    """Return the share of rows with a value outside the vocabulary; 1 if there are too many values to count."""
    [source] = map(str, spec.sources(feature))
    column_statistics: ColumnStatistics = statistics[source]
    if not column_statistics.rows or column_statistics.nulls == column_statistics.rows:
        return 0.0
    if column_statistics.counts is None:
        return 1.0
    words = {str(word) for word in feature.levels}
    counts = zip(column_statistics.counts.vocabulary(), column_statistics.counts.counts, strict=True)
    return sum(count for word, count in counts if str(word) not in words) / column_statistics.rows


def _iterate_features(features: ModelInputs) -> Iterable[spec.Feature]:
    return (feature for some_features in features.values() for feature in some_features)


def _signatures(feature: spec.Feature) -> set[str]:
    """Return the signatures by which a feature of the parent may be written; form and dimension may be omitted."""
    inner = _describe_column(spec.category_of(feature))
    names = {signature(feature), signature(feature, feature.dim)}
    return names | {inner} if feature.array == "ids" else names


def signature(column: Fitted, dim: int = 0) -> str:
    """Return the signature of a column, without fitted parts: `embedding(hash_bucket(city, 100), 8)`.

    dim: written length of its vectors; 0 if it follows from the rows.
    """
    category = spec.category_of(column)
    if column.is_for_trees or not column.dim:  # a statement does not write the code of a category
        return _describe_column(category if column.is_for_trees else column)
    # its size, and so the dimension, come from the rows
    lengths = [] if not dim and category.is_fitted else [str(column.dim)]
    shared = ["shared"] if column.table else []
    return f"embedding({', '.join([_describe_column(category), *lengths, *shared])})"


def _describe_column(column: Fitted) -> str:
    """Return `hash_bucket(city, 100)`; of a category that is fitted to rows, the column alone."""
    parts = [
        _describe_column(part) if spec.is_category(part) else str(part) for part in spec.parts_of(column)
    ]
    stated = [str(getattr(column, name)) for name in column.stated]
    return f"{column.__struct_config__.tag}({', '.join(filter(None, [*parts, *stated]))})"
