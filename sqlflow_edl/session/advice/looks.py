"""Looks at what a statement reads: the rows of its tables without the conditions, their columns and values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Any

from edl.errors import Span, SQLFlowError
from sqlflow_edl.analysis import expressions
from sqlflow_edl.session.compiler import Compiler
from sqlflow_edl.syntax.ast import Statement
from sqlflow_edl.syntax.dialects import Dialect, dialect_named, sqlglot_name
from sqlflow_edl.syntax.lexer import Token, code_tokens
from sqlflow_edl.syntax.queries import trees

if TYPE_CHECKING:
    import pyarrow as pa
    from sqlglot import exp

MOST_VALUES = 200  # different values of a column that are compared with what was written
_PARTS = ("where", "group", "having", "qualify", "order", "limit", "offset", "distinct", "windows")


class Look:
    """Statement, and the source that it reads."""

    def __init__(self, compiler: Compiler, statement: Statement) -> None:
        self.compiler = compiler
        self.statement = statement
        self.select = statement.select or (statement.text if statement.kind == "sql" else "")
        self.start = (statement.select_span or statement.span).start

    @property
    def dialect(self) -> Dialect:
        return dialect_named(self.compiler.dialect)

    @cached_property
    def tree(self) -> exp.Select | None:
        """The query, if it is a single SELECT that reads tables."""
        from sqlglot import exp

        with suppress(ValueError):
            parsed = trees(self.select, self.dialect)
            if len(parsed) == 1 and isinstance(parsed[0], exp.Select) and parsed[0].args.get("from_"):
                return parsed[0]
        return None

    @cached_property
    def tokens(self) -> list[Token]:
        """Words of the query, with places in it."""
        return list(code_tokens(self.select, 0, self.dialect))

    def locate(self, token: Token | Span) -> Span:
        """Return a place of the query in the program."""
        return Span(token.start, token.end).shift(self.start)

    def text(self, place: Span) -> str:
        """Return the query at a place of the program."""
        return self.select[place.start - self.start : place.end - self.start]

    def only(self, text: str) -> Span | None:
        """Return the place in the program of a word of the query that is there once, or None."""
        matches = [token for token in self.tokens if token.text == text]
        return self.locate(matches[0]) if len(matches) == 1 else None

    def name(self, column: str) -> str:
        return expressions.name(column, self.compiler.dialect)

    # The source ---------------------------------------------------------------------------------------------

    def probe(self, items: str, where: str = "", rest: str = "") -> str | None:
        """Return a query of other items over the same tables, without the conditions of this one."""
        from sqlglot import exp

        if self.tree is None:
            return None
        query = self.tree.copy()
        for part in _PARTS:
            query.set(part, None)
        query.set("expressions", [exp.Var(this="sqlflow_edl_items")])
        text = query.sql(sqlglot_name(self.dialect)).replace("sqlflow_edl_items", items, 1)
        return " ".join(filter(None, (text, f"WHERE {where}" if where else "", rest)))

    def rows(self, query: str | None) -> list[tuple[Any, ...]]:
        """Return the rows of a small result; none of a query that cannot be made or fails."""
        result: list[tuple[Any, ...]] = []
        with suppress(SQLFlowError):
            for batch in self.compiler.source.stream(query) if query else ():
                result += zip(*(column.to_pylist() for column in batch.columns), strict=True)
        return result

    @cached_property
    def columns(self) -> pa.Schema | None:
        """All columns of the tables."""
        query = self.probe("*")
        with suppress(SQLFlowError):
            return self.compiler.source.schema(query) if query else None
        return None

    @cached_property
    def query_schema(self) -> pa.Schema | None:
        """Columns of the query."""
        with suppress(SQLFlowError):
            return self.compiler.source.schema(self.select)
        return None

    def find_column(self, name: str) -> str | None:
        """Return the column of the tables with a name, in any case."""
        names = self.columns.names if self.columns is not None else ()
        return next((candidate for candidate in names if candidate.casefold() == name.casefold()), None)

    def values(self, column: str, most: int = MOST_VALUES) -> list[str]:
        """Return different values of a column of the tables as texts, frequent ones first."""
        name = self.name(column)
        query = self.probe(
            f"{name}, COUNT(*) AS n",
            f"{name} IS NOT NULL",
            f"GROUP BY {name} ORDER BY n DESC, 1 LIMIT {most}",
        )
        return [str(value) for value, _ in self.rows(query)]

    def values_of_query(self, column: str, most: int = MOST_VALUES) -> list[str]:
        """Return different values of a column of the query as texts, frequent ones first."""
        name = self.name(column)
        counted = f"SELECT {name}, COUNT(*) AS n FROM (\n{self.select}\n) AS rows_of_query"
        filtered = f"WHERE {name} IS NOT NULL GROUP BY {name} ORDER BY n DESC, 1 LIMIT {most}"
        return [str(value) for value, _ in self.rows(f"{counted} {filtered}")]

    def has_rows(self, where: str) -> bool:
        return bool(self.rows(self.probe("1 AS n", where, "LIMIT 1")))

    @cached_property
    def table(self) -> str:
        """Name of the only table, or empty."""
        from sqlglot import exp

        tables = [*self.tree.find_all(exp.Table)] if self.tree is not None else []
        return tables[0].sql(sqlglot_name(self.dialect)) if len(tables) == 1 else ""

    def conditions(self) -> Iterator[exp.Expr]:
        """Yield the parts of the condition that AND joins."""
        where = self.tree.args.get("where") if self.tree is not None else None
        if where is not None:
            from sqlglot import exp

            yield from where.this.flatten() if isinstance(where.this, exp.And) else (where.this,)

    def sql(self, part: exp.Expr) -> str:
        return str(part.sql(sqlglot_name(self.dialect)))

    def is_accepted(self) -> bool:
        """Return True if the database can plan the query."""
        with suppress(SQLFlowError):
            self.compiler.source.schema(self.select)
            return True
        return False


def list_texts(values: Sequence[str], most: int = 5) -> str:
    """Return the first values as texts of SQL: 'a', 'b' and others."""
    shown = [text(value) for value in values[:most]]
    if len(values) > most:
        return ", ".join(shown) + ", …"
    return " or ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"
