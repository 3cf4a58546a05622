"""What the double holds, in memory: projects of tables, and the sessions of their tunnels.

The rows of a table or partition are an Arrow table that nobody changes: a download session keeps the one that was there
when it began, and so reads a snapshot.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from tests.maxcompute.column_types import Column, arrow_schema

Spec = tuple[str, ...]  # the values of a partition's columns; () where a table has none


class RefusedError(Exception):
    """An answer that says no. code: a name of `odps.errors`, or the ODPS number of an SQL error."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


@dataclass
class Table:
    name: str
    columns: list[Column]
    partition_columns: list[Column] = field(default_factory=list)
    comment: str = ""
    lifecycle: int = -1
    view: str = ""  # its query
    parts: dict[Spec, pa.Table] = field(default_factory=dict)
    created: float = field(default_factory=time.time)
    modified: float = field(default_factory=time.time)

    def __post_init__(self) -> None:
        if not self.partition_columns and not self.view:
            self.parts[()] = self.schema.empty_table()

    @property
    def schema(self) -> pa.Schema:
        return arrow_schema(self.columns)

    @property
    def rows(self) -> int:
        return sum(part.num_rows for part in self.parts.values())

    @property
    def bytes(self) -> int:
        return sum(part.nbytes for part in self.parts.values())

    def spec(self, given: Mapping[str, str]) -> Spec:
        """The values in the order of the partition columns."""
        known = {name.lower(): value for name, value in given.items()}
        names = [column.name.lower() for column in self.partition_columns]
        if sorted(known) != sorted(names):
            raise RefusedError(400, "InvalidPartitionSpec", f"{self.name} is partitioned by {names}")
        return tuple(known[name] for name in names)

    def part(self, given: Mapping[str, str]) -> pa.Table:
        spec = self.spec(given)
        if spec not in self.parts:
            raise RefusedError(404, "NoSuchPartition", "The specified partition does not exist.")
        return self.parts[spec]

    def put(self, spec: Spec, rows: pa.Table, *, overwrite: bool) -> None:
        there = self.parts.get(spec)
        if there is not None and not overwrite:
            rows = pa.concat_tables([there, rows])
        self.parts[spec] = rows.combine_chunks()
        self.modified = time.time()


@dataclass
class Project:
    name: str
    tables: dict[str, Table] = field(default_factory=dict)

    def table(self, name: str) -> Table:
        found = self.tables.get(name.lower())
        if found is None:
            raise RefusedError(404, "NoSuchTable", f"Table not found - {self.name}.{name}")
        return found


@dataclass
class Download:
    id: str
    columns: Sequence[Column]
    rows: pa.Table
    partition_columns: Sequence[Column] = ()
    bodies: dict[object, bytes] = field(default_factory=dict)  # as they were encoded


@dataclass
class Upload:
    id: str
    table: Table
    spec: Spec
    overwrite: bool
    blocks: dict[int, pa.Table] = field(default_factory=dict)
    status: str = "normal"

    def commit(self) -> None:
        """The blocks in the order of their numbers; a second time changes nothing."""
        if self.status == "closed":
            return
        rows = [self.blocks[number] for number in sorted(self.blocks)]
        self.table.put(
            self.spec, pa.concat_tables([self.table.schema.empty_table(), *rows]), overwrite=self.overwrite
        )
        self.status = "closed"


@dataclass
class World:
    """All of one double."""

    projects: dict[str, Project] = field(default_factory=dict)
    downloads: dict[str, Download] = field(default_factory=dict)
    uploads: dict[str, Upload] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    numbers: itertools.count[int] = field(default_factory=itertools.count)

    def project(self, name: str) -> Project:
        """Every project is there; a test has one of its own when it names it."""
        return self.projects.setdefault(name.lower(), Project(name))

    def new_id(self) -> str:
        """As MaxCompute writes them, different in every run."""
        return f"{time.strftime('%Y%m%d%H%M%S', time.gmtime())}{time.time_ns() % 10**9:09d}{next(self.numbers):06d}"
