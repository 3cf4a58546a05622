"""The REST calls about tenants, projects, tables and partitions."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Sequence
from typing import Any
from xml.sax.saxutils import escape

from tests.maxcompute.answers import Answer, Request, cdata, http_date, json_answer, xml
from tests.maxcompute.column_types import Column
from tests.maxcompute.storage import Project, RefusedError, Spec, Table

_TENANT = {
    "Name": "double",
    "TenantId": "0",
    "TenantState": "NORMAL",
    "Parameters": {"odps.namespace.schema": "false"},
}


def tenant() -> Answer:
    return json_answer({"Tenant": _TENANT})


def project(found: Project) -> Answer:
    text = f"<Project><Name>{escape(found.name)}</Name><Type>managed</Type><Properties/></Project>"
    now = http_date(time.time())
    return xml(text, x_odps_owner="owner", x_odps_creation_time=now, Last_Modified=now)


def tables(found: Project, request: Request) -> Answer:
    wanted = request.options.get("name", "").lower()
    rows = "".join(
        f"<Table><Name>{escape(table.name)}</Name><Owner>owner</Owner><Type>{_kind(table)}</Type></Table>"
        for name, table in sorted(found.tables.items())
        if name.startswith(wanted)
    )
    return xml(f"<Tables><Marker/><MaxItems>1000</MaxItems>{rows}</Tables>")


def table(found: Table, request: Request) -> Answer:
    """A table, its partitions, one of them, or a look at its rows."""
    if "data" in request.options:
        return _look(found, request)
    if "partitions" in request.options:
        return _partitions(found, request)
    if "partition" in request.options:
        return _partition(found, request)
    schema: dict[str, Any] = {
        "columns": [_column(column) for column in found.columns],
        "partitionKeys": [_column(column) for column in found.partition_columns],
        "comment": found.comment,
        "owner": "owner",
        "createTime": int(found.created),
        "lastModifiedTime": int(found.modified),
        "lastDDLTime": int(found.created),
        "isVirtualView": bool(found.view),
        "lifecycle": found.lifecycle,
        "size": found.bytes,
        "recordNum": found.rows,
    }
    if "extended" in request.options:
        schema["Reserved"] = json.dumps({"Transactional": "false"})
    return xml(
        f'<Table format="Json"><Name>{escape(found.name)}</Name><TableId>0</TableId>'
        f'<Schema format="Json">{cdata(json.dumps(schema))}</Schema><Comment>{escape(found.comment)}</Comment>'
        f"<Owner>owner</Owner><CreationTime>{http_date(found.created)}</CreationTime>"
        f"<LastModifiedTime>{http_date(found.modified)}</LastModifiedTime><Type>{_kind(found)}</Type></Table>"
    )


def given_partition(text: str) -> dict[str, str]:
    """`pt='a',hour=1`, with `/` between them too."""
    return dict(re.findall(r"(\w+)\s*=\s*'?([^',/]*)'?", text))


def session_schema(columns: Sequence[Column], partitions: Sequence[Column] = ()) -> dict[str, Any]:
    """As the tunnel's sessions tell it."""
    return {
        "columns": [
            {"column_id": str(i), "name": c.name, "type": str(c.type), "nullable": c.nullable, "comment": ""}
            for i, c in enumerate(columns)
        ],
        "partitionKeys": [_column(column) for column in partitions],
    }


def _column(column: Column) -> dict[str, Any]:
    return {
        "name": column.name,
        "type": str(column.type),
        "comment": column.comment,
        "label": "",
        "isNullable": column.nullable,
    }


def _kind(found: Table) -> str:
    return "VIRTUAL_VIEW" if found.view else "MANAGED_TABLE"


def _partitions(found: Table, request: Request) -> Answer:
    given = given_partition(request.options.get("partition", ""))
    wanted = {name.lower(): value for name, value in given.items()}
    rows = ""
    for spec, part in sorted(found.parts.items()):
        named = _named(found, spec)
        if any(named.get(name) != value for name, value in wanted.items()):
            continue
        columns = "".join(f'<Column Name="{name}" Value="{escape(value)}"/>' for name, value in named.items())
        rows += (
            f"<Partition>{columns}<CreationTime>{int(found.created)}</CreationTime>"
            f"<LastDDLTime>{int(found.created)}</LastDDLTime><LastModifiedTime>{int(found.modified)}</LastModifiedTime>"
            f"<PartitionSize>{part.nbytes}</PartitionSize><PartitionRecordCount>{part.num_rows}</PartitionRecordCount></Partition>"
        )
    return xml(f"<Partitions><Marker/><MaxItems>1000</MaxItems>{rows}</Partitions>")


def _partition(found: Table, request: Request) -> Answer:
    part = found.part(given_partition(request.options["partition"]))
    facts = {
        "createTime": int(found.created),
        "lastDDLTime": int(found.created),
        "lastModifiedTime": int(found.modified),
        "partitionSize": part.nbytes,
        "partitionRecordNum": part.num_rows,
    }
    return xml(f"<Partition><Schema>{cdata(json.dumps(facts))}</Schema></Partition>")


def _named(found: Table, spec: Spec) -> dict[str, str]:
    return dict(zip((column.name.lower() for column in found.partition_columns), spec, strict=True))


def _look(found: Table, request: Request) -> Answer:
    if found.partition_columns and "partition" not in request.options:
        raise RefusedError(400, "InvalidArgument", "a partition is needed")
    rows = found.part(given_partition(request.options.get("partition", "")))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(rows.column_names)
    for row in rows.slice(0, int(request.options["linenum"])).to_pylist():
        writer.writerow([r"\N" if value is None else value for value in row.values()])
    return Answer(text.getvalue().encode(), 200, {"Content-Type": "text/csv"})
