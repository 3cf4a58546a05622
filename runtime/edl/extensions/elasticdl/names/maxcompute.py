"""Writer of predictions into a table of MaxCompute, and the question if its environment variables are set."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from edl.errors import SourceError
from edl.extensions.elasticdl.names.constants import MaxComputeConfig


def is_odps_configured() -> bool:
    """Return True if the environment has all that a connection to MaxCompute needs."""
    needed = (
        MaxComputeConfig.PROJECT_NAME,
        MaxComputeConfig.ACCESS_ID,
        MaxComputeConfig.ACCESS_KEY,
        MaxComputeConfig.ENDPOINT,
    )
    return all(os.environ.get(name) for name in needed)


class ODPSWriter:
    """Writer of rows into a table, one partition for each worker."""

    def __init__(
        self,
        project: str,
        access_id: str,
        access_key: str,
        endpoint: str,
        table: str,
        columns: Sequence[str] | None = None,
        column_types: Sequence[str] | None = None,
        options: Any = None,
    ) -> None:
        from odps import ODPS

        tunnel = os.environ.get(MaxComputeConfig.TUNNEL_ENDPOINT)
        self._client = ODPS(access_id, access_key, project, endpoint, tunnel_endpoint=tunnel)
        self._table = table
        self._columns = list(columns or ())
        self._types = list(column_types or ())

    def from_iterator(self, rows: Iterable[Sequence[Any]], worker_index: int) -> None:
        """Append the rows. Raises SourceError if there is no such table and its columns are not known."""
        if not self._client.exist_table(self._table):
            if not self._columns or len(self._columns) != len(self._types):
                raise SourceError(f"there is no table {self._table}, and its columns and types are not named")
            described = ", ".join(
                f"{name} {kind}" for name, kind in zip(self._columns, self._types, strict=True)
            )
            self._client.create_table(self._table, (described, "worker string"), if_not_exists=True)
        partition = f"worker={worker_index}"
        with self._client.get_table(self._table).open_writer(
            partition=partition, create_partition=True
        ) as writer:
            writer.write(_each(rows))


def _each(rows: Iterable[Sequence[Any]]) -> Iterator[list[Any]]:
    for row in rows:
        yield list(row)
