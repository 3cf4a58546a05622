"""The tunnel: download sessions over a snapshot of rows, upload sessions of blocks."""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

import pyarrow as pa

from tests.maxcompute import arrow_frames, records
from tests.maxcompute.answers import Answer, Request, json_answer
from tests.maxcompute.column_types import Column
from tests.maxcompute.metadata import given_partition, session_schema
from tests.maxcompute.storage import Download, RefusedError, Table, Upload, World

_STRUCT = pa.struct([("sec", pa.int64()), ("nano", pa.int32())])


def table(world: World, found: Table, request: Request, part: float) -> Answer:
    """A call of the tunnel for a table. part: of the rows that are asked for."""
    options = request.options
    if request.method == "POST" and "downloads" in options:
        return _begin_download(world, found, request)
    if "data" in options:
        return download(world, request, part)
    if "downloadid" in options:
        return _tell_download(_session(world, request))
    if request.method == "POST" and "uploads" in options:
        return _begin_upload(world, found, request)
    upload = world.uploads.get(options.get("uploadid", ""))
    if upload is None:
        raise RefusedError(404, "NoSuchUpload", "The specified upload id does not exist.")
    if request.method == "PUT":
        return _write_block(upload, request)
    if request.method == "POST":
        with world.lock:
            upload.commit()
    return _tell_upload(upload)


def download(world: World, request: Request, part: float, *, of_instance: bool = False) -> Answer:
    """Rows of a session; only a part of them, when that is asked for, and the stream says nothing of it."""
    session = _session(world, request)
    match = re.fullmatch(r"\((\d+),(\d+)\)", request.options.get("rowrange", ""))
    if match is None:
        raise RefusedError(400, "InvalidRowRange", "The specified row range is not valid.")
    start, count = int(match[1]), int(match[2])
    wanted = tuple(name.lower() for name in request.options.get("columns", "").split(",") if name)
    key = (start, int(count * part), wanted, "arrow" in request.options)
    if key not in session.bodies:
        if len(session.bodies) > 64:
            session.bodies.clear()
        session.bodies[key] = _body(session, key, of_instance)
    return Answer(session.bodies[key], 200, {"Content-Type": "application/octet-stream"})


def _body(session: Download, key: tuple[int, int, tuple[str, ...], bool], of_instance: bool) -> bytes:
    start, count, wanted, arrow = key
    columns = list(session.columns)
    if wanted and arrow:  # the order of the table, whatever was asked for
        columns = [column for column in columns if column.name.lower() in wanted]
    elif wanted:
        by_name = {column.name.lower(): column for column in columns}
        columns = [by_name[name] for name in wanted if name in by_name]
    rows = session.rows.slice(start, count).select([column.name for column in columns])
    batches = rows.combine_chunks().to_batches(max_chunksize=8192)
    if not arrow:
        return records.encode(batches, columns)
    for column in columns:
        if column.type.name in ("json", "interval_day_time"):
            raise RefusedError(400, "MethodNotAllowed", f"the type {column.type} is not read as Arrow")
    return arrow_frames.frame(_as_structs(batch, columns) if of_instance else batch for batch in batches)


def _begin_download(world: World, found: Table, request: Request) -> Answer:
    if found.view:
        raise RefusedError(400, "InvalidArgument", f"{found.name} is a view")
    given = given_partition(request.options.get("partition", ""))
    if found.partition_columns and not given:
        raise RefusedError(
            400, "InvalidPartitionSpec", "The partition of a partitioned table is to be named."
        )
    session = Download(world.new_id(), found.columns, found.part(given), found.partition_columns)
    world.downloads[session.id] = session
    return _tell_download(session)


def _tell_download(session: Download) -> Answer:
    return json_answer(
        {
            "DownloadID": session.id,
            "Status": "normal",
            "RecordCount": session.rows.num_rows,
            "Schema": session_schema(session.columns, session.partition_columns),
            "QuotaName": "default",
        }
    )


def _session(world: World, request: Request) -> Download:
    session = world.downloads.get(request.options.get("downloadid", ""))
    if session is None:
        raise RefusedError(404, "NoSuchDownload", "The specified download id does not exist.")
    return session


def _begin_upload(world: World, found: Table, request: Request) -> Answer:
    spec = found.spec(given_partition(request.options.get("partition", "")))
    if spec not in found.parts:
        if "create_partition" not in request.options:
            raise RefusedError(404, "NoSuchPartition", "The specified partition does not exist.")
        found.put(spec, found.schema.empty_table(), overwrite=False)
    overwrite = request.options.get("overwrite") == "true"
    upload = Upload(world.new_id(), found, spec, overwrite)
    world.uploads[upload.id] = upload
    return _tell_upload(upload)


def _tell_upload(upload: Upload) -> Answer:
    return json_answer(
        {
            "UploadID": upload.id,
            "Status": upload.status,
            "UploadedBlockList": [{"BlockID": number} for number in sorted(upload.blocks)],
            "MaxFieldSize": 8 << 20,
            "Schema": session_schema(upload.table.columns),
            "QuotaName": "default",
        }
    )


def _write_block(upload: Upload, request: Request) -> Answer:
    """A block that comes again replaces the one that was there."""
    body = request.body
    if request.headers.get("content-encoding") == "deflate":
        body = zlib.decompress(body)
    try:
        if "arrow" in request.options:
            rows = arrow_frames.unframe(body, upload.table.schema)
        else:
            rows = records.decode(body, upload.table.columns)
    except records.DamagedError as error:
        raise RefusedError(400, "ChecksumError", str(error)) from None
    upload.blocks[int(request.options["blockid"])] = rows
    return Answer()


def _as_structs(batch: pa.RecordBatch, columns: Sequence[Column]) -> pa.RecordBatch:
    """The tunnel of an instance sends timestamps as seconds and nanoseconds."""
    arrays = []
    for array, column in zip(batch.columns, columns, strict=True):
        if column.type.name.startswith("timestamp"):
            numbers = array.cast(pa.int64()).to_pylist()
            pairs = [
                None if n is None else dict(zip(("sec", "nano"), divmod(n, 10**9), strict=True))
                for n in numbers
            ]
            array = pa.array(pairs, _STRUCT)
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)
