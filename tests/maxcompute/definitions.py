"""The statements that define tables: CREATE, ALTER, DROP, TRUNCATE. Regular enough for a parser of our own."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.maxcompute.column_types import Column, parse_prefix
from tests.maxcompute.storage import Project, RefusedError, Table

_NAME = r"((?:`?[^\s`.(]+`?\.)?(?:`[^`]+`|[^\s`.(;]+))"
_TEXT = r"('(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_VALID = re.compile(r"[A-Za-z_]\w{0,127}", re.ASCII)

_FOUND_ALREADY = "ODPS-0130211"
_NO_PARTITION = "ODPS-0130131"


class Cursor:
    """A place in the text of a statement."""

    def __init__(self, text: str) -> None:
        self.text = text.strip()

    def take(self, pattern: str) -> re.Match[str] | None:
        match = re.match(
            pattern + r"(?!\w)\s*" if pattern[-1].isalpha() else pattern + r"\s*", self.text, re.I
        )
        if match:
            self.text = self.text[match.end() :]
        return match

    def need(self, pattern: str) -> re.Match[str]:
        found = self.take(pattern)
        if found is None:
            raise RefusedError(
                400, "ODPS-0130161", f"[1,1] Parse exception - invalid token near {self.text[:20]!r}"
            )
        return found

    def name(self) -> str:
        """The table of a dotted name; the projects are told apart before."""
        return self.need(_NAME)[1].rpartition(".")[2].strip("`")

    def string(self) -> str:
        return unescaped(self.need(_TEXT)[1])


Query = Callable[[str], Table]  # runs a query; its columns and rows as a table


def define(project: Project, text: str, query: Query) -> bool:
    """Run the statement if it is one that defines something; whether it is."""
    cursor = Cursor(text)
    if cursor.take(r"CREATE\s+TABLE"):
        _create(project, cursor, query)
    elif found := cursor.take(r"CREATE(\s+OR\s+REPLACE)?\s+VIEW"):
        _create_view(project, cursor, query, bool(found[1]))
    elif cursor.take(r"DROP\s+(TABLE|VIEW)"):
        _drop(project, cursor)
    elif cursor.take(r"TRUNCATE\s+TABLE"):
        table = project.table(cursor.name())
        table.parts = {spec: table.schema.empty_table() for spec in table.parts}
    elif cursor.take(r"ALTER\s+TABLE"):
        _alter(project, cursor)
    else:
        return False
    return True


def _create(project: Project, cursor: Cursor, query: Query) -> None:
    absent = cursor.take(r"IF\s+NOT\s+EXISTS")
    name = cursor.name()
    columns = _columns(cursor) if cursor.take(r"\(") else None
    comment, partitions, lifecycle = "", [], -1
    while cursor.text:
        if cursor.take("COMMENT"):
            comment = cursor.string()
        elif cursor.take(r"PARTITIONED\s+BY\s*\("):
            partitions = _columns(cursor)
        elif found := cursor.take(r"LIFECYCLE\s+(\d+)"):
            lifecycle = int(found[1])
        elif cursor.take(r"TBLPROPERTIES\s*\([^)]*\)"):
            continue
        else:
            break
    if name.lower() in project.tables:
        if absent:
            return
        raise RefusedError(400, _FOUND_ALREADY, f"Table or view already exists - {project.name}.{name}")
    _check_names([name], r"[A-Za-z]\w{0,127}")
    if columns is None:
        cursor.need("AS")
        table = query(cursor.text)
        table.name, table.lifecycle = name, lifecycle
    else:
        table = Table(name, columns, partitions, comment, lifecycle)
    _check_names([column.name for column in (*table.columns, *table.partition_columns)], r"\w{1,128}")
    project.tables[name.lower()] = table


def _create_view(project: Project, cursor: Cursor, query: Query, replace: bool) -> None:
    cursor.take(r"IF\s+NOT\s+EXISTS")
    name = cursor.name()
    cursor.need("AS")
    if name.lower() in project.tables and not replace:
        raise RefusedError(400, _FOUND_ALREADY, f"Table or view already exists - {project.name}.{name}")
    project.tables[name.lower()] = Table(name, query(cursor.text).columns, view=cursor.text)


def _drop(project: Project, cursor: Cursor) -> None:
    lenient = cursor.take(r"IF\s+EXISTS")
    name = cursor.name()
    if lenient and name.lower() not in project.tables:
        return
    project.table(name)
    del project.tables[name.lower()]


def _alter(project: Project, cursor: Cursor) -> None:
    table = project.table(cursor.name())
    if cursor.take(r"RENAME\s+TO"):
        name = cursor.name()
        if name.lower() in project.tables:
            raise RefusedError(400, _FOUND_ALREADY, f"Table or view already exists - {project.name}.{name}")
        del project.tables[table.name.lower()]
        table.name = name
        project.tables[name.lower()] = table
    elif cursor.take(r"SET\s+COMMENT"):
        table.comment = cursor.string()
    elif found := cursor.take(r"SET\s+LIFECYCLE\s+(\d+)"):
        table.lifecycle = int(found[1])
    elif cursor.take(r"DISABLE\s+LIFECYCLE"):
        table.lifecycle = -1
    elif cursor.take("ADD"):
        _add_partitions(table, cursor)
    else:
        cursor.need("DROP")
        _drop_partitions(table, cursor)


def _add_partitions(table: Table, cursor: Cursor) -> None:
    lenient = cursor.take(r"IF\s+NOT\s+EXISTS")
    while cursor.take(r"PARTITION\s*\("):
        spec = table.spec(partition_values(cursor))
        if spec in table.parts:
            if not lenient:
                raise RefusedError(400, _FOUND_ALREADY, f"Partition already exists - {spec}")
            continue
        table.put(spec, table.schema.empty_table(), overwrite=False)


def _drop_partitions(table: Table, cursor: Cursor) -> None:
    lenient = cursor.take(r"IF\s+EXISTS")
    while cursor.take(r"PARTITION\s*\("):
        spec = table.spec(partition_values(cursor))
        if spec in table.parts:
            del table.parts[spec]
        elif not lenient:
            raise RefusedError(400, _NO_PARTITION, f"Partition not found - {spec}")
        cursor.take(",")


def partition_values(cursor: Cursor) -> dict[str, str]:
    """What stands after `PARTITION (`."""
    values = {}
    while not cursor.take(r"\)"):
        name = cursor.need(r"`?(\w+)`?\s*=")[1]
        literal = cursor.need(rf"({_TEXT[1:-1]}|-?\d+)")[1]
        values[name] = literal if literal[0] not in "'\"" else unescaped(literal)
        cursor.take(r"[,/]")
    return values


def _columns(cursor: Cursor) -> list[Column]:
    columns = []
    while not cursor.take(r"\)"):
        name = cursor.need(r"(`[^`]+`|\w+)")[1].strip("`")
        try:
            kind, rest = parse_prefix(cursor.text)
        except ValueError as error:
            raise RefusedError(400, "ODPS-0130071", f"[1,1] Semantic analysis exception - {error}") from None
        cursor.text = rest.lstrip()
        nullable = not cursor.take(r"NOT\s+NULL")
        columns.append(Column(name, kind, cursor.string() if cursor.take("COMMENT") else "", nullable))
        cursor.take(",")
    return columns


def _check_names(names: list[str], pattern: str) -> None:
    """Names that MaxCompute does not take, and columns that differ by case alone."""
    for name in names:
        if not re.fullmatch(pattern, name):
            raise RefusedError(
                400, "ODPS-0130071", f"[1,1] Semantic analysis exception - invalid name {name}"
            )
    folded = [name.lower() for name in names]
    for name in names:
        if folded.count(name.lower()) > 1:
            raise RefusedError(
                400, "ODPS-0130071", f"[1,1] Semantic analysis exception - column name {name} is ambiguous"
            )


def unescaped(literal: str) -> str:
    """The text of a literal with its quotes."""
    return re.sub(
        r"\\(.)",
        lambda found: {"n": "\n", "t": "\t", "0": "\0"}.get(found[1], found[1]),
        literal[1:-1],
        flags=re.S,
    )
