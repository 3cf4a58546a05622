"""Errors of which a look into the tables of the query tells what was meant, see `sqlflow_edl.session.advice`."""

from __future__ import annotations

from collections.abc import Sequence

from edl.errors import SemanticError, Span
from sqlflow_edl.analysis.alternatives import Replacement


class UnknownColumnError(SemanticError):
    """The query has no column of the name. written: the name as it stands in the statement."""

    def __init__(self, column: str, name: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(f"unknown column {name}", span=span, hint=hint)
        self.column = column


class NoLabelOptionError(UnknownColumnError):
    """The options of CREATE MODEL name no label, and the query has no column with the name that is usual for it."""


class MissingColumnsError(SemanticError):
    """The query lacks columns that the model reads, or its label. types: of the columns in the training."""

    def __init__(
        self, message: str, types: dict[str, str], *, is_label: bool, span: Span | None, hint: str | None
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.types = types
        self.is_label = is_label


class UnfitColumnError(SemanticError):
    """A column has another type than in the training. wanted: its type there. made: the expression of it, or empty."""

    def __init__(
        self,
        message: str,
        column: str,
        type_of_training: str,
        expression: str,
        *,
        span: Span | None,
        hint: str | None,
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.column, self.wanted, self.made = column, type_of_training, expression


class TextOperandError(SemanticError):
    """A text stands where the COLUMN clause computes with a number."""

    def __init__(self, message: str, column: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(message, span=span, hint=hint)
        self.column = column


class NoRowsError(SemanticError):
    """The query yields no rows."""

    def __init__(self, *, span: Span | None, hint: str | None) -> None:
        super().__init__("the query yields no rows", span=span, hint=hint)


class MissingLabelError(SemanticError):
    """The statement names no column to predict. names: what it must name, in the hint."""

    def __init__(self, names: str = "the column to predict", *, span: Span | None) -> None:
        super().__init__("the statement has no label", span=span, hint=f"name {names}: LABEL my_label")
        self.names = names


class NeedlessLabelError(SemanticError):
    """The model is trained without a label, and the statement has one."""


class TextLabelError(SemanticError):
    """The label is a text, and its texts are no classes: they may be numbers."""

    def __init__(self, message: str, column: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(message, span=span, hint=hint)
        self.column = column


class NoModelError(SemanticError):
    """The statement names no model. target: where its predictions go, which may be meant as the model, or empty."""

    def __init__(self, message: str, target: Sequence[str], *, span: Span | None, hint: str | None) -> None:
        super().__init__(message, span=span, hint=hint)
        self.target = target


class UnknownArchitectureError(SemanticError):
    """TO TRAIN names no model that can be trained."""

    def __init__(self, name: str, *, span: Span | None, hint: str | None) -> None:
        super().__init__(f"unknown model {name}", span=span, hint=hint)
        self.name = name


class OtherModelError(SemanticError):
    """TO TRAIN names a model of another system. replacement: what to train here, if one model does its work."""

    def __init__(
        self, message: str, replacement: Replacement | None, *, span: Span | None, hint: str | None
    ) -> None:
        super().__init__(message, span=span, hint=hint)
        self.replacement = replacement
