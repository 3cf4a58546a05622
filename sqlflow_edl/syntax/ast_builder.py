"""Conversion of the parse tree of the extended clauses to a `Statement`: one method per rule of the grammar."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

from lark import Token, Transformer, Tree, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from edl.errors import Span, SQLFlowError, StatementSyntaxError, raise_all
from sqlflow_edl.syntax.ast import (
    Aggregate,
    Attribute,
    Call,
    ColumnClause,
    ColumnItem,
    Constant,
    Expression,
    Formula,
    ListValue,
    MapValue,
    Name,
    Star,
    Statement,
    Validate,
    Value,
)
from sqlflow_edl.syntax.dialects import Dialect
from sqlflow_edl.syntax.formulas import Part, by_precedence, is_quotient, quotient, without_paths
from sqlflow_edl.syntax.kinds import Kind
from sqlflow_edl.syntax.lexer import name_value, quoted_name, string_value

_CONSTANTS: dict[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_MOST_DIGITS = 400  # Python itself refuses to parse an integer of 4,301


@dataclass(frozen=True, slots=True)
class _Clause:
    """Clause: the field of `Statement` that it sets, and the value."""

    field: str
    content: Any
    span: Span


@dataclass(frozen=True, slots=True)
class _Keyword:
    """Keyword argument `key=value` of a call."""

    key: str
    value: Value


@dataclass(frozen=True, slots=True)
class _Item:
    """Item of COLUMN, with the input of the group that it closes, if any."""

    item: ColumnItem
    for_input: Name | None
    end: int


def build_statement(tree: Tree[Token], text: str, dialect: Dialect) -> Statement:
    """Return the statement of `tree`; the caller sets its SELECT, text and span.

    text: the whole program, into which all positions point. Raises StatementSyntaxError, or an ErrorList of them, for
    clauses given twice and values that cannot be read.
    """
    try:
        return cast(Statement, _Builder(text, dialect).transform(tree))
    except VisitError as error:
        if isinstance(error.orig_exc, SQLFlowError):
            raise error.orig_exc from None
        raise


@v_args(meta=True)
class _Builder(Transformer[Token, Any]):
    def __init__(self, text: str, dialect: Dialect) -> None:
        super().__init__()
        self._text = text
        self._dialect = dialect

    def _written(self, meta: Meta) -> str:
        return self._text[meta.start_pos : meta.end_pos]

    # ------------------------------------------------------------------------------------ statements

    def start(self, meta: Meta, children: list[Statement]) -> Statement:
        return children[0]

    def train(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("train", meta, children[1:], model=children[0])

    def predict(self, meta: Meta, children: list[Any]) -> Statement:
        has_target = bool(children) and isinstance(children[0], Name)
        target = children.pop(0) if has_target else None
        if target is not None and "" in target.parts:  # else it would be no target at all
            raise StatementSyntaxError("a name of the target is empty", span=target.span)
        return self._statement("predict", meta, children, target=target)

    def evaluate(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("evaluate", meta, children[1:], model=children[0])

    def measure(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("measure", meta, children)

    def explain(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("explain", meta, children[1:], model=children[0])

    def optimize(self, meta: Meta, children: list[Any]) -> Statement:
        direction, objective, *clauses = children
        return self._statement("optimize", meta, clauses, direction=direction, objective=objective)

    def run(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("run", meta, children[1:], image=children[0])

    def auto(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("auto", meta, children)

    def show_train(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("show_train", meta, [], model=children[0])

    def show_trials(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("show_trials", meta, [], model=children[0])

    def show_curve(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("show_curve", meta, [], model=children[0])

    def show_features(self, meta: Meta, children: list[Any]) -> Statement:
        """Return a PREDICT with the features as its result."""
        model, query = children
        report = Attribute("predict.report", Constant("features", _span(meta)), _span(meta))
        return self._statement(
            "predict",
            meta,
            [],
            using=model,
            attributes=(report,),
            select=str(query).strip(),
            select_span=Span(query.start_pos or 0, query.end_pos or 0),
        )

    def show_models(self, meta: Meta, children: list[Token]) -> Statement:
        like = string_value(children[0]) if children else None
        return self._statement("show_models", meta, [], like=like)

    def describe_model(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("describe_model", meta, [], model=children[0])

    def set_model(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("set_model", meta, [], model=self._set(meta, children))

    def set_tag(self, meta: Meta, children: list[Any]) -> Statement:
        name, tag, selector = children
        model = self._set(meta, [name, selector])
        return self._statement("set_tag", meta, [], model=model, tag=tag)

    def _set(self, meta: Meta, children: list[Any]) -> Name:
        """Return the model with the version that ends the statement."""
        span = Span(children[0].span.start, meta.end_pos)
        return replace(self.versioned(meta, children), text=children[0].text, span=span)

    def drop_model(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("drop_model", meta, [], model=children[-1], if_exists=len(children) > 1)

    def drop_tag(self, meta: Meta, children: list[Any]) -> Statement:
        return self._statement("drop_tag", meta, [], model=children[0], tag=children[1])

    def _statement(self, kind: Kind, meta: Meta, clauses: list[_Clause], **fields: Any) -> Statement:
        """Return the statement of these clauses; only COLUMN may be given more than once."""
        first: dict[str, _Clause] = {}
        columns: list[ColumnClause] = []
        twice: list[SQLFlowError] = []
        for clause in clauses:
            if clause.field == "columns":
                columns += clause.content
            elif clause.field in first:
                twice.append(self._given_twice(first[clause.field], clause))
            else:
                first[clause.field] = clause
        raise_all([*twice, *self._too_many(kind, first.get("into"))])
        if (segments := first.pop("segments", None)) is not None:  # another form of an attribute
            attributes = first["attributes"].content if "attributes" in first else ()
            first["attributes"] = _Clause("attributes", (*attributes, *segments.content), segments.span)
        fields |= {name: clause.content for name, clause in first.items()}
        return Statement(kind, self._written(meta), _span(meta), columns=tuple(columns), **fields)

    def _too_many(self, kind: Kind, into: _Clause | None) -> Iterator[StatementSyntaxError]:
        """Yield an error if a statement other than RUN names several results."""
        if into is not None and kind != "run" and len(into.content) > 1:
            first, second, *_ = into.content
            yield StatementSyntaxError(
                "INTO takes one name here", span=second.span, hint=f"write INTO {first.text}"
            )

    def _given_twice(self, first: _Clause, second: _Clause) -> StatementSyntaxError:
        keyword = self._keyword(second)
        line = self._text.count("\n", 0, first.span.start) + 1
        return StatementSyntaxError(
            f"{keyword.upper()} is given twice",
            span=Span(second.span.start, second.span.start + len(keyword)),
            hint=f"line {line} has {self._keyword(first).upper()} already; a list takes commas",
        )

    def _keyword(self, clause: _Clause) -> str:
        word = re.compile(r"\w+").match(self._text, clause.span.start)
        return word[0] if word else ""

    # --------------------------------------------------------------------------------------- clauses

    def attributes(self, meta: Meta, children: list[Attribute]) -> _Clause:
        return _Clause("attributes", tuple(children), _span(meta))

    def attribute(self, meta: Meta, children: list[Any]) -> Attribute:
        key, value = children
        return Attribute(str(key), value, key.span)

    def column(self, meta: Meta, children: list[_Item]) -> _Clause:
        """Group items: FOR closes a group, so `COLUMN a, b FOR deep, c FOR wide` is two clauses."""
        groups: list[ColumnClause] = []
        items: list[ColumnItem] = []
        start = meta.start_pos
        for entry in children:
            items.append(entry.item)
            if entry.for_input or entry is children[-1]:
                groups.append(ColumnClause(tuple(items), entry.for_input, Span(start, entry.end)))
                items, start = [], entry.end
        return _Clause("columns", groups, _span(meta))

    def item(self, meta: Meta, children: list[Any]) -> _Item:
        value, named = without_paths(children[0]), dict(children[1:])
        if isinstance(value, Name) and value.parts == (value.text,) and {":", "/"} & set(value.text):
            quoted = quoted_name(value.text)
            raise StatementSyntaxError(
                f"unexpected {value.text}",
                span=value.span,
                hint=f"quote a name that is not one word: {quoted}",
            )
        if isinstance(value, Call):
            value = replace(value, alias=named.get("AS"))
        return _Item(ColumnItem(value, named.get("AS")), named.get("FOR"), meta.end_pos)

    def alias(self, meta: Meta, children: list[Name]) -> tuple[str, Name]:
        return "AS", children[0]

    def for_input(self, meta: Meta, children: list[Name]) -> tuple[str, Name]:
        return "FOR", children[0]

    def label(self, meta: Meta, children: list[Name]) -> _Clause:
        return _Clause("labels", tuple(children), _span(meta))

    def segments(self, meta: Meta, children: list[Name]) -> _Clause:
        """Return the columns of BY as the attribute that they stand for."""
        columns = ListValue(tuple(children), _span(meta))
        by = Span(meta.start_pos, meta.start_pos + len("BY"))
        return _Clause("segments", (Attribute("evaluate.by", columns, by),), _span(meta))

    def label_name(self, meta: Meta, children: list[Any]) -> Name:
        """Return the name in a text; in double quotes it is read by the dialect's rules for names."""
        token = children[0]
        if isinstance(token, Name):
            return token
        as_name = token[0] == '"' and self._dialect.double_quotes_name
        return Name((name_value(token) if as_name else string_value(token),), str(token), _span(meta))

    def validate(self, meta: Meta, children: list[Any]) -> _Clause:
        how = children[0]
        if isinstance(how, Token):
            query_span = Span(how.start_pos or 0, how.end_pos or 0)
            return _Clause("validate", Validate(str(how), None, _span(meta), query_span), _span(meta))
        return _Clause("validate", Validate(None, float(how.value), _span(meta)), _span(meta))

    def using(self, meta: Meta, children: list[Name]) -> _Clause:
        return _Clause("using", children[0], _span(meta))

    def into(self, meta: Meta, children: list[Name]) -> _Clause:
        return _Clause("into", tuple(children), _span(meta))

    def append(self, meta: Meta, children: list[Any]) -> _Clause:
        return _Clause("append", Constant(True, _span(meta)), _span(meta))

    def command(self, meta: Meta, children: list[Token]) -> _Clause:
        return _Clause("command", tuple(map(string_value, children)), _span(meta))

    def image(self, meta: Meta, children: list[Token]) -> Name:
        text = ".".join(children)
        return Name((text,), text, _span(meta))

    def if_exists(self, meta: Meta, children: list[Any]) -> bool:
        return True

    # -------------------------------------------------------------------------------------- optimize

    def direction(self, meta: Meta, children: list[Token]) -> str:
        return children[0].lower()

    def arguments(self, meta: Meta, children: list[Any]) -> list[Any]:
        return children

    def operand(self, meta: Meta, children: list[Any]) -> list[Part]:
        """Return the signs and the operand behind them; a path such as `a/b` is a quotient."""
        arguments = children.pop() if isinstance(children[-1], list) else None
        *signs, core = children
        span = Span(core.start_pos or 0, meta.end_pos) if isinstance(core, Token) else core.span
        if arguments is not None:
            return [*signs, Aggregate(str(core), tuple(arguments), Span(span.start, meta.end_pos))]
        if not isinstance(core, Token):
            return [*signs, core]
        if core.type == "NUMBER":
            return [*signs, replace(self.number(meta, [core]), span=span)]
        return (
            [*signs, *quotient(core, span.start)]
            if core.type == "PATH"
            else [*signs, Constant(string_value(core), span)]
        )

    def expression(self, meta: Meta, children: list[Any]) -> Expression:
        flat = [part for child in children for part in (child if isinstance(child, list) else [child])]
        return by_precedence(flat)

    def objective(self, meta: Meta, children: list[Expression]) -> Formula:
        return Formula(self._written(meta), children[0], _span(meta))

    def constraint(self, meta: Meta, children: list[Any]) -> Formula:
        group = children[1] if len(children) > 1 else None
        return Formula(self._written(meta), children[0], _span(meta), group)

    def constraints(self, meta: Meta, children: list[Formula]) -> _Clause:
        return _Clause("constraints", tuple(children), _span(meta))

    # ---------------------------------------------------------------------------------------- values

    def arithmetic(self, meta: Meta, children: list[Any]) -> Value:
        """Return the tree of values with operators between them; a path such as `a/b` is a quotient."""
        return cast(Value, by_precedence([part for child in children for part in _parts(child)]))

    def grouped(self, meta: Meta, children: list[Value]) -> Value:
        return without_paths(children[0])

    def signed(self, meta: Meta, children: list[Any]) -> list[Any]:
        sign, operand = children
        return [sign, *_parts(operand)]

    def path_call(self, meta: Meta, children: list[Any]) -> list[Any]:
        """Return the parts of `x/LOG(y)`; the name of the function is the last part of a path."""
        *before, function = quotient(children[0], meta.start_pos)
        name = function if isinstance(function, Name) else Name((), children[0], _span(meta))
        call = self.call(meta, [name, *children[1:]])
        return [*before, replace(call, span=Span(name.span.start, meta.end_pos))]

    def star(self, meta: Meta, children: list[Token]) -> Star:
        return Star(_span(meta))

    def string(self, meta: Meta, children: list[Token]) -> Constant:
        return Constant(string_value(children[0]), _span(meta))

    def constant(self, meta: Meta, children: list[Token]) -> Constant:
        return Constant(_CONSTANTS[children[0].upper()], _span(meta))

    def number(self, meta: Meta, children: list[Token]) -> Constant:
        text = "".join(children)
        span = _span(meta)
        if len(text) > _MOST_DIGITS:
            raise StatementSyntaxError(
                "the number is too long", span=span, hint=f"at most {_MOST_DIGITS} digits"
            )
        value = float(text) if set(text) & set(".eE") else int(text)
        if abs(value) > sys.float_info.max:
            raise StatementSyntaxError("the number is too large", span=span, hint="numbers go up to 1.8e308")
        return Constant(value, span)

    def list_value(self, meta: Meta, children: list[Value]) -> ListValue:
        return ListValue(tuple(children), _span(meta))

    def map_value(self, meta: Meta, children: list[tuple[str, Value]]) -> MapValue:
        return MapValue(tuple(children), _span(meta))

    def pair(self, meta: Meta, children: list[Any]) -> tuple[str, Value]:
        key, value = children
        return (str(key.value) if isinstance(key, Constant) else str(key)), value

    def call(self, meta: Meta, children: list[Any]) -> Call:
        name, *arguments = children
        return Call(
            str(name),
            tuple(argument for argument in arguments if not isinstance(argument, _Keyword)),
            tuple((argument.key, argument.value) for argument in arguments if isinstance(argument, _Keyword)),
            _span(meta),
            name.span,
        )

    def aliased(self, meta: Meta, children: list[Any]) -> Call:
        call: Call = children[0]
        return replace(call, alias=dict(children[1:])["AS"])

    def keyword(self, meta: Meta, children: list[Any]) -> _Keyword:
        return _Keyword(*children)

    # ----------------------------------------------------------------------------------------- names

    def name(self, meta: Meta, children: list[str]) -> Name:
        return Name(tuple(children), self._written(meta), _span(meta))

    def path(self, meta: Meta, children: list[Token]) -> Name:
        return Name((str(children[0]),), str(children[0]), _span(meta))

    def versioned(self, meta: Meta, children: list[Any]) -> Name:
        name: Name = children[0]
        number: Token | str = children[1]
        if not isinstance(number, Token):
            return replace(name, version=number, text=self._written(meta), span=_span(meta))
        if not (number.isdecimal() and len(number) < _MOST_DIGITS):
            raise StatementSyntaxError(
                f"a version is a whole number, not {number[:20]}",
                span=Span(_span(meta).end - len(number), _span(meta).end),
                hint=f"write {name}@1, or leave it out: {name} is the current version",
            )
        return replace(name, version=int(number), text=self._written(meta), span=_span(meta))

    def part(self, meta: Meta, children: list[Token]) -> str:
        return name_value(children[0])

    def tag(self, meta: Meta, children: list[Token]) -> str:
        return name_value(children[0])


def _parts(child: Any) -> list[Any]:
    """Return the operands and operators of a part of an expression."""
    if isinstance(child, list):
        return child
    if is_quotient(child):
        return list(quotient(child.text, child.span.start))
    return [child if isinstance(child, Token) else without_paths(child)]


def _span(meta: Meta) -> Span:
    return Span(meta.start_pos, meta.end_pos)
