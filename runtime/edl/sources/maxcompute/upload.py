"""Upload of rows to a partition of MaxCompute: blocks by the tunnel, effective once all are uploaded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pyarrow as pa

from edl.sources.maxcompute import types
from edl.sources.maxcompute.client import ATTEMPTS, ERRORS, Client, may_pass, pause, utc
from edl.sources.maxcompute.download import Checksum

BLOCK_BYTES = 64 << 20


def upload(client: Client, table: str, partition: str | None, batches: Iterable[pa.RecordBatch]) -> int:
    """Replace the rows of a partition, or of a table without partitions, by these, in this order. Return their number.

    An error keeps the previous rows.
    """
    session = client.upload(table, partition)
    rows = waiting_bytes = block = 0
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(types.to_wire(batch, client.zone))
        rows += batch.num_rows
        waiting_bytes += batch.nbytes
        if waiting_bytes >= BLOCK_BYTES:
            _write_block(session, block, waiting)
            waiting, waiting_bytes, block = [], 0, block + 1
    if waiting:
        _write_block(session, block, waiting)
        block += 1
    session.commit(list(range(block)))
    return rows


def _write_block(session: Any, block: int, batches: list[pa.RecordBatch]) -> None:
    """Write a block with retries. A repeated block replaces the previous one."""
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with utc():
                writer = session.open_arrow_writer(block)
                writer._crc, writer._crccrc = Checksum(), Checksum()  # see `_ArrowReader`
                for batch in batches:
                    writer.write(batch)
                writer.close()
            return
        except (*ERRORS, OSError) as error:
            if attempt == ATTEMPTS or not may_pass(error):
                raise
        pause(attempt)
