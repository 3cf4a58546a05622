"""Resolution of COLUMN items to drafts of feature columns: names, `*`, regular expressions, calls, aliases.

Everything is resolved against the columns of the query. Errors are collected, each with its source span, so that a
statement with three mistakes gets three messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from edl import spec
from edl.errors import SemanticError, Span, SQLFlowError, did_you_mean
from edl.spec.computed import TO_NUMBER, json_columns
from sqlflow_edl.analysis import expressions
from sqlflow_edl.analysis.checks.query_errors import TextOperandError
from sqlflow_edl.analysis.columns import json_values, reused
from sqlflow_edl.analysis.columns.arguments import CONVERTERS, TYPE_WORDS
from sqlflow_edl.analysis.columns.cells import Cells
from sqlflow_edl.analysis.columns.computed import BY_NAME as COMPUTED_BY_NAME
from sqlflow_edl.analysis.columns.computed import FUNCTIONS as COMPUTED
from sqlflow_edl.analysis.columns.computed import (
    Kind,
    bind_expression,
    check_call,
    fix_statistics,
    is_computed,
)
from sqlflow_edl.analysis.columns.derive import calendar, lists, text
from sqlflow_edl.analysis.columns.drafts import Bound, ColumnFunction, Draft, FunctionParameter, Statistics
from sqlflow_edl.analysis.columns.functions import BY_NAME, FUNCTIONS
from sqlflow_edl.analysis.columns.inputs import Fitted
from sqlflow_edl.analysis.columns.numeric import draft_standardized, numeric
from sqlflow_edl.analysis.columns.shared import share_vectors
from sqlflow_edl.analysis.schema import ColumnType, Schema
from sqlflow_edl.analysis.statistics.fitting import Want
from sqlflow_edl.errors.spans import set_missing_spans
from sqlflow_edl.syntax import ast

OF_TEXTS = ("VOCABULARIZE", "CATEGORY_HASH", "NGRAMS")  # functions of texts, also of those in JSON
_POWERS = ("POW", "POWER", "SQUARE")  # of SQL, which expressions lack
COMBINE = "COMBINE"  # concatenates items, as a model does in any case


class Resolver:
    """Resolver of COLUMN items against the query's schema; errors are collected, each with its source span.

    reserved: columns that a model must not see -> their role. models: the models of FEATURES(m) in COLUMN.
    """

    def __init__(
        self,
        schema: Schema,
        reserved: Mapping[str, str],
        errors: list[SQLFlowError],
        notes: list[str],
        models: reused.Models | None = None,
    ) -> None:
        self.schema = schema
        self.reserved = reserved
        self.errors = errors
        self.notes = notes
        self.models = models or {}
        self.aliases: dict[str, Draft] = {}
        self.computed: dict[
            str, spec.Computed
        ] = {}  # columns of expressions, which the query does not select
        self._columns_of: dict[str, str] = {}  # aliases of columns
        self._tables = 0  # of vectors that several columns share
        self._named: set[str] = set()  # aliases of the clause, also of later items
        self._several: set[str] = set()  # aliases of items that are several features

    def items(self, items: Iterable[ast.ColumnItem]) -> list[Draft]:
        """Return the drafts of a COLUMN clause, in order; an aliased item that others use is no feature by itself."""
        drafts: list[tuple[Draft, str | None]] = []
        used: set[str] = set()
        self._used = used
        items = list(items)
        self._named = {_fold_name(item.alias) for item in items if item.alias}
        items = [replace(item, value=self._with_names(item.value)) for item in items]
        for item in items:
            alias = _fold_name(item.alias) if item.alias else None
            try:
                item_drafts = self._item(item.value)
                if item.alias and len(item_drafts) == 1:
                    self._name(item.alias, item_drafts[0])
                elif item.alias:
                    self._several.add(_fold_name(item.alias))
            except SQLFlowError as error:
                self.errors.append(error)
                continue
            is_column = isinstance(item.value, ast.Name | ast.Operation) or is_computed(
                item.value, nested=False
            )
            if alias and len(item_drafts) == 1 and is_column:
                self._columns_of[alias] = item_drafts[0].columns[0]
            drafts.extend((draft, alias) for draft in item_drafts)
        return self.over_the_table(draft for draft, alias in drafts if alias is None or alias not in used)

    def number_in_text(self, column: str, decimal: str) -> str:
        """Return the name of a computed column of the numbers in a column of texts. decimal: `.` or `,`."""
        return self._computed_name(
            spec.Computed(TO_NUMBER, (column,), "" if decimal == "." else decimal), is_text=False
        )

    def over_the_table(self, drafts: Iterable[Draft]) -> list[Draft]:
        """Return the drafts; in their features, expressions take the place of the names."""
        return [self._over_the_table(draft) for draft in drafts]

    def _with_names(self, value: ast.Value) -> ast.Value:
        """Return the item with names in place of texts that are a column or an alias, such as "my size" + 1."""
        match value:
            case ast.Constant(value=str() as text) if (
                self.schema.find(text) or text.casefold() in self._known_aliases
            ):
                return ast.Name((text,), text, value.span)
            case ast.ListValue():
                return replace(value, items=tuple(map(self._with_names, value.items)))
            case ast.Operation():
                return replace(value, operands=tuple(map(self._with_names, value.operands)))
            case ast.Call():
                return replace(value, args=tuple(map(self._with_names, value.args)))
        return value

    @property
    def _known_aliases(self) -> set[str]:
        """Aliases of this clause and of those before it."""
        return self._named | self.aliases.keys() | self._columns_of.keys()

    def _over_the_table(self, draft: Draft) -> Draft:
        """Return the draft; in its feature, expressions take the place of the names."""
        sources_here = {name: self.computed[name] for name in draft.columns if name in self.computed}

        def fit(statistics: Statistics) -> Fitted:
            with set_missing_spans(draft.span):
                numbered = {name: fix_statistics(source, statistics) for name, source in sources_here.items()}
            for name, source in sources_here.items():
                if statistics[name].nulls == statistics[name].rows:
                    hint = (
                        "it is where a part is NULL, and for a division by 0 and the logarithm of 0 and below"
                    )
                    if any(json_columns(source)):
                        hint = "no text has a value at the path; capital and small letters differ"
                    raise SemanticError(f"{name} is NULL in every training row", span=draft.span, hint=hint)
            return spec.with_columns(draft.fit(statistics), numbered)

        return replace(draft, fit=fit) if sources_here else draft

    def _item(self, value: ast.Value) -> list[Draft]:
        if is_computed(value, nested=False):
            return [draft_standardized(self._compute(value), value.span)]
        if isinstance(value, ast.Call) and value.function.upper() == COMBINE:
            return [draft for item in self._combine_values(value) for draft in self._item(item)]
        if isinstance(value, ast.Call) and (model := ast.reused_model(value)) and str(model) in self.models:
            return self._reuse_features(model, value)
        if isinstance(value, ast.Call):
            return self._calls(value)
        if isinstance(value, ast.Name) and self.schema.find(str(value)) is None:
            alias = _fold_name(value)
            if alias in self.aliases:  # use the item again, in another input of the model
                self._used.add(alias)
                return [self.aliases[alias]]
        if isinstance(value, ast.Name | ast.Star | ast.Constant):
            return [draft for column in self._columns(value) for draft in self._plain(column, value.span)]
        raise SemanticError(
            "expected a column or a function of one", span=value.span, hint="such as age, BUCKETIZE(age, 5)"
        )

    def _reuse_features(self, model: ast.Name, call: ast.Call) -> list[Draft]:
        """Return the features of another model."""
        function = BY_NAME[call.function.casefold()]
        chosen = _arguments(call, function).get("columns")
        columns = _convert_value(function, function.parameters[1], chosen) if chosen else ()
        source = reused.ReusedSource(self.models[str(model)], call.span, columns)
        drafts = reused.drafts(source, self.schema, self.reserved, self._tables)
        self._tables = max([self._tables, *(draft.table for draft in drafts)])
        return drafts

    def _combine_values(self, call: ast.Call) -> tuple[ast.Value, ...]:
        if call.kwargs or not call.args:
            raise SemanticError(
                "COMBINE takes items, as COLUMN does", span=call.span, hint="write COMBINE(a, b)"
            )
        return call.args

    def _plain(self, column: str, span: Span) -> list[Draft]:
        """Return the features of a column that stands in COLUMN by itself, by its type."""
        kind = self.schema.type(column)
        if kind in (ColumnType.NUMBER, ColumnType.BOOLEAN):
            return [draft_standardized(column, span) if kind is ColumnType.NUMBER else numeric(column, span)]
        if kind.is_temporal:
            return calendar(column, self.schema, self.notes, span)
        return [self._as_category(column, span, is_category=False)]

    def _as_category(self, column: str, span: Span | None, *, is_category: bool = True) -> Draft:
        if self.schema.items(column) in (ColumnType.TEXT, ColumnType.NUMBER):
            return lists(column, self.schema, span, is_category=is_category)
        self.schema.require_category(column, span)
        return text(column, span, is_category=is_category)

    def _calls(self, call: ast.Call) -> list[Draft]:
        """Return the drafts of a call: one, or one per column that a regular expression in it matches."""
        function = BY_NAME.get(call.function.casefold())
        if function is None:
            raise _unknown_function(call)
        arguments = _arguments(call, function)
        _check_required(call, function, arguments)
        expanded: list[dict[str, Any]] = [{}]
        for parameter in function.parameters:
            if parameter.name in arguments:
                choices = self._argument(function, parameter, arguments[parameter.name])
                expanded = [{**values, parameter.name: choice} for values in expanded for choice in choices]
        drafts = [function.build(Bound(call, function, values, self.schema)) for values in expanded]
        if call.alias and len(drafts) == 1:
            self._name(call.alias, drafts[0])
        return drafts

    def _name(self, alias: ast.Name, draft: Draft) -> None:
        """Give an item its name. Raises SemanticError if another one has it."""
        if self.aliases.setdefault(_fold_name(alias), draft) is not draft:
            raise SemanticError(
                f"two items are named {alias}", span=alias.span, hint="give one of them another name"
            )

    def _argument(
        self, function: ColumnFunction, parameter: FunctionParameter, value: ast.Value
    ) -> list[Any]:
        """Return the values of the argument: several if it is a regular expression."""
        if parameter.type == "column":
            return self._cells(value, function)
        if parameter.type == "category":
            return self._categories(value, function)
        if parameter.type == "embedded":
            return self._resolve_embedding(value, function)
        if parameter.type == "categories":
            items = value.items if isinstance(value, ast.ListValue) else (value,)
            return [tuple(draft for item in items for draft in self._categories(item, function))]
        if parameter.type == "crossed":
            items = value.items if isinstance(value, ast.ListValue) else (value,)
            return [tuple(part for item in items for part in self._resolve_cross(item, function))]
        return [_convert_value(function, parameter, value)]

    def _resolve_embedding(self, value: ast.Value, function: ColumnFunction) -> list[Draft]:
        """Return categories; categories in brackets share their vectors."""
        if not isinstance(value, ast.ListValue):
            return self._categories(value, function)
        if not value.items:
            raise SemanticError(
                f"{function.name} takes a category, or several in brackets",
                span=value.span,
                hint=f"write {function.usage}",
            )
        drafts = [draft for item in value.items for draft in self._categories(item, function)]
        self._tables += 1
        return share_vectors(drafts, self._tables, value.span)

    def _resolve_cross(self, value: ast.Value, function: ColumnFunction) -> Sequence[str | Draft]:
        """Return columns by name, to cross their values, or categories, to cross their ids.

        What only says how numbers are read stands for its column; a list in a text is one value.
        """
        is_alias = (
            isinstance(value, ast.Name)
            and _fold_name(value) in self.aliases.keys() - self._columns_of.keys()
            and self.schema.find(str(value)) is None
        )
        if not isinstance(value, ast.Call) or is_computed(value):
            return self._categories(value, function) if is_alias else self._columns(value)
        if getattr(BY_NAME.get(value.function.casefold()), "reads", False):
            return [draft if draft.is_category else draft.columns[0] for draft in self._calls(value)]
        return self._categories(value, function)

    def _cells(self, value: ast.Value, function: ColumnFunction) -> list[Cells]:
        """Return columns and how their cells are read: `CATEGORY_HASH(DENSE(x), …)` hashes each of a cell's items."""
        if not isinstance(value, ast.Call) or is_computed(value):
            return [Cells(column) for column in self._columns(value, text=function.name in OF_TEXTS)]
        inner = BY_NAME.get(value.function.casefold())
        if inner is None:
            raise _unknown_function(value)
        if inner.reads:
            return [draft.cells for draft in self._calls(value)]
        raise SemanticError(
            f"{function.name} takes a column, not {inner.name}(…)",
            span=value.span,
            hint=f"write {function.usage}",
        )

    def _categories(self, value: ast.Value, function: ColumnFunction) -> list[Draft]:
        if isinstance(value, ast.ListValue) and len(value.items) > 1:
            raise SemanticError(
                f"{function.name} takes one category, here are {len(value.items)}",
                span=value.span,
                hint="CONCAT(a, b) makes one of several",
            )
        if isinstance(value, ast.Call) and not is_computed(value):
            drafts = self._calls(value)
            for draft in drafts:
                if not draft.is_category:
                    raise _no_category(function, value.function, value.span)
            return drafts
        if isinstance(value, ast.Name) and _fold_name(value) in self.aliases:
            self._used.add(_fold_name(value))
            return [self._alias_category(self.aliases[_fold_name(value)], value, function)]
        return [self._as_category(column, value.span) for column in self._columns(value, text=True)]

    def _alias_category(self, draft: Draft, name: ast.Name, function: ColumnFunction) -> Draft:
        """Return a named category; a named text becomes one where it is needed."""
        if not draft.is_category and Want.TEXT not in draft.wants:
            raise _no_category(function, name.text, name.span)
        return draft if draft.is_category else self._as_category(draft.columns[0], name.span)

    def _columns(self, value: ast.Value, *, text: bool = False) -> list[str]:
        """Return the columns of the query that a name, `*` or regular expression matches, without reserved ones."""
        if is_computed(value):
            return [self._compute(value, text=text)]
        if isinstance(value, ast.Star):
            return [name for name in self.schema.names if name not in self.reserved]
        if isinstance(value, ast.Name):
            return [self._column(value)]
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return self._matching(value.value, value.span)
        raise SemanticError("expected a column", span=value.span, hint=self.schema.suggest_columns())

    def _column(self, name: ast.Name) -> str:
        """Return the column of a name, which may be an alias."""
        alias = _fold_name(name)
        if alias in self._columns_of and self.schema.find(str(name)) is None:
            self._used.add(alias)
            return self._columns_of[alias]
        try:
            return self._visible(self.schema.resolve(name), name.span)
        except SemanticError as error:
            if alias in self.aliases:
                error.hint = f"AS {name} names a feature, and a column is needed here"
            elif alias in self._several:
                error.hint = f"AS {name} names several features, and one column is needed here"
            elif alias in self._named:
                error.hint = f"put the item with AS {name} before this one"
            elif hint := json_values.of_path(name, self.schema):
                error.hint = hint
            raise

    def _compute(self, value: ast.Value, *, text: bool = False) -> str:
        """Return the name of the expression's column, its text, under which its statistics are collected.

        text: a value in JSON is wanted as the text of a category.
        """
        source = bind_expression(value, self._operand)
        if text and source.operator == "JSON":
            source = msgspec.structs.replace(source, operator="JSON_TEXT")
        return self._computed_name(source, is_text=source.operator == "JSON_TEXT")

    def _computed_name(self, source: spec.Computed, *, is_text: bool) -> str:
        """Return the name of a computed column, which it gets if it has none."""
        name = expressions.WrittenName(source)
        while name in self.schema.names or self.computed.get(name, source) != source:
            name = expressions.WrittenName(f"{name} ")  # SELECT x / y has a column of that name
        if name not in self.computed:
            self.computed[name] = source
            self.schema = self.schema.with_column(name, text=is_text)
        return name

    def _operand(self, name: ast.Name, expected: Kind) -> spec.Source:
        """Return the column of a number, a text or any type in an expression; dates and times count in seconds."""
        column = self._column(name)
        kind = self.schema.type(column)
        if expected == "any":
            return self.computed.get(column, column)
        if expected == "text":
            if kind is not ColumnType.TEXT:
                raise SemanticError(f"a text is read here, and {column} is {kind.words}", span=name.span)
            return column
        if kind in (ColumnType.NUMBER, ColumnType.BOOLEAN) or kind.is_temporal:
            return self.computed.get(column, column)
        message = f"an expression takes numbers, {column} is {kind.words}"
        if kind is not ColumnType.TEXT:
            raise SemanticError(message, span=name.span)
        hint = "cast it in the SELECT if it holds numbers; of a text, NULL is a category of its own"
        raise TextOperandError(message, column, span=name.span, hint=hint)

    def _matching(self, text: str, span: Span) -> list[str]:
        if exact := self.schema.find(text):
            return [self._visible(exact, span)]
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise SemanticError(
                f"{text!r} is neither a column nor a regular expression: {error}",
                span=span,
                hint=self.schema.suggest_columns(text),
            ) from None
        matches = [
            name for name in self.schema.names if pattern.fullmatch(name) and name not in self.reserved
        ]
        if not matches:
            raise SemanticError(
                f"no selected column matches {text!r}", span=span, hint=self.schema.suggest_columns(text)
            )
        return matches

    def _visible(self, column: str, span: Span) -> str:
        if column in self.reserved:
            raise SemanticError(
                f"{column} is {self.reserved[column]}; a model must not see it",
                span=span,
                hint="take it out of COLUMN",
            )
        return column


def _fold_name(name: ast.Name) -> str:
    return str(name).casefold()


def check_calls(items: Iterable[ast.ColumnItem]) -> list[SQLFlowError]:
    """Return errors of the calls in COLUMN that need no schema: functions, arguments, values of the wrong type."""
    errors: list[SQLFlowError] = []
    for call in (call for item in items for call in ast.calls(item.value)):
        if call.function.upper() == COMBINE and not call.kwargs:
            continue
        try:
            _check_call(call)
        except SQLFlowError as error:
            errors.append(error)
    return errors


def _check_call(call: ast.Call) -> None:
    if call.function.casefold() in COMPUTED_BY_NAME or "." in call.function:
        check_call(call)
        return
    function = BY_NAME.get(call.function.casefold())
    if function is None:
        raise _unknown_function(call)
    arguments = _arguments(call, function)
    _check_required(call, function, arguments)
    for parameter in function.parameters:
        if parameter.name in arguments and parameter.type in CONVERTERS:
            _convert_value(function, parameter, arguments[parameter.name])


def _check_required(call: ast.Call, function: ColumnFunction, arguments: Mapping[str, ast.Value]) -> None:
    for parameter in function.parameters:
        if parameter.required and parameter.name not in arguments:
            raise SemanticError(
                f"{function.name} lacks its {parameter.name}", span=call.span, hint=f"write {function.usage}"
            )


def _convert_value(function: ColumnFunction, parameter: FunctionParameter, value: ast.Value) -> Any:
    converted = CONVERTERS[parameter.type](value)
    if converted is None:
        raise SemanticError(
            f"{function.name}'s {parameter.name} must be {TYPE_WORDS[parameter.type]}",
            span=value.span,
            hint=f"write {function.usage}",
        )
    return converted


def _no_category(function: ColumnFunction, other_name: str, span: Span) -> SemanticError:
    what = "a sequence" if other_name.upper() == "SEQUENCE" else "numbers"
    return SemanticError(
        f"{function.name} needs a category, and {other_name} gives {what}",
        span=span,
        hint="categories are made by VOCABULARIZE, CATEGORY_HASH, CATEGORY_ID, BUCKETIZE, CROSS",
    )


def _unknown_function(call: ast.Call) -> SemanticError:
    if call.function.upper() == COMBINE:
        return SemanticError(
            "COMBINE is an item of COLUMN, and cannot be an argument",
            span=call.function_span,
            hint="CONCAT(a, b) makes one category of several",
        )
    if call.function.upper() in _POWERS:
        hint = "write x * x for a square, or compute it in the SELECT"
        return SemanticError(f"unknown function {call.function}", span=call.function_span, hint=hint)
    names_of_functions = (name for function in FUNCTIONS for name in (function.name, *function.aliases))
    names = [COMBINE, *names_of_functions, *(function_of_numbers.name for function_of_numbers in COMPUTED)]
    hint = did_you_mean(call.function, names) or "compute it in the SELECT, or use one of " + ", ".join(
        f.name for f in (*FUNCTIONS, *COMPUTED)
    )
    return SemanticError(f"unknown function {call.function}", span=call.function_span, hint=hint)


def _arguments(call: ast.Call, function: ColumnFunction) -> dict[str, ast.Value]:
    """Map parameter names to arguments, positional and keyword ones together."""
    if function.variadic and len(call.args) > 1:
        call = replace(call, args=(ast.ListValue(call.args, call.span),))
    if len(call.args) > len(function.parameters):
        raise SemanticError(
            f"{function.name} takes at most {len(function.parameters)} arguments, here are {len(call.args)}",
            span=call.args[len(function.parameters)].span,
            hint=f"write {function.usage}",
        )
    arguments = {
        parameter.name: value for parameter, value in zip(function.parameters, call.args, strict=False)
    }
    by_name = {name.casefold(): p.name for p in function.parameters for name in (p.name, *p.aliases)}
    for key, value in call.kwargs:
        name = by_name.get(key.casefold())
        if name is None:
            raise SemanticError(
                f"{function.name} has no argument {key}", span=value.span, hint=did_you_mean(key, by_name)
            )
        if name in arguments:
            raise SemanticError(f"{function.name} gets its {name} twice", span=value.span, hint="keep one")
        arguments[name] = value
    return arguments
