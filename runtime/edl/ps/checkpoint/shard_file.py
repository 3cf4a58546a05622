"""File of one server in a checkpoint: a safetensors file; data that is not an array is in its metadata.

    flat            float32 (1 + slots, size): the parameters, then each optimizer slot
    table.I.ids     int64 (n,), table.I.data float32 (n, dim x (1 + slots)): rows with their slots, in no order
    table.I.used    int64 (n,): the last step of each row
    table.I.counts  uint8: counts of ids without a row (`edl.embeddings.limits`), of size 0 for none
    table.I.gone    int64: ids of rows evicted after the file before; they may be there again
    first, state.I  float32: the initial state, and the state that each worker pushed last

User-defined names are in the metadata only, so that none can collide with these. A file is renamed to its final name
when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from edl.checkpoints.integrity import (
    PIECE,
    Part,
    check_data,
    check_size,
    checkpoint_error,
    read_error,
    write_file,
)
from edl.embeddings import TableCopy
from edl.embeddings.cut import CutRows
from edl.embeddings.table import Floats, Ids
from edl.errors import DamagedError
from edl.files import make_folders
from edl.models.weights import DTYPES, MOST_HEADER_BYTES, Kind, header
from edl.ps.checkpoint.content import ModelDefinition, Shard, Version
from edl.ps.dense import FlatCopy
from edl.ps.push_log import PushLogState
from edl.ps.replica import ReplicaSnapshot
from edl.ps.store import StoreCopy

_KEY = "edl"
_BY_CODE = {code: np.dtype(name) for name, code in DTYPES.items()}


class Header(msgspec.Struct, frozen=True):
    """Metadata of a shard file. `states` are names of instances, in the order of their arrays."""

    index: int
    servers: int
    at: Version
    definition: ModelDefinition
    flat_steps: int
    table_steps: tuple[int, ...]
    push_log: PushLogState
    states: tuple[str, ...]
    version: Literal[1] = 1


class _ShardEntry(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


def write(checkpoints: Path, name: str, snapshot: ReplicaSnapshot) -> Shard:
    """Write the file into the folder of the checkpoint and return its description. Raises OSError if that fails.

    Files that it follows are linked to, so that each checkpoint can be read and removed by itself; if they cannot be,
    the file is a whole one.
    """
    index, folder = snapshot.arranged.index, checkpoints / name
    make_folders(folder)
    earlier = _link_files(checkpoints, folder, snapshot)
    if not earlier:
        snapshot = snapshot._replace(store=snapshot.store.whole())
    _, pieces = contents(snapshot)
    part = write_file(folder / name_of(index, len(earlier)), pieces)
    return Shard(index, part.file, part.bytes, part.crc, earlier=earlier)


def _link_files(checkpoints: Path, folder: Path, snapshot: ReplicaSnapshot) -> tuple[Part, ...]:
    """Link to the files that the snapshot follows and return them, or nothing if that is not possible."""
    follows = snapshot.store.follows
    if follows is None:
        return ()
    linked: list[Path] = []
    try:
        for part in follows.shard.parts:
            os.link(checkpoints / follows.name / part.file, folder / part.file)
            linked.append(folder / part.file)
    except OSError:  # the checkpoint was removed, or the file system has no links
        for path in linked:
            path.unlink(missing_ok=True)
        return ()
    return follows.shard.parts


def name_of(index: int, earlier: int = 0) -> str:
    """Return the name of a server's file after so many earlier ones."""
    return f"server-{index}-{earlier}.safetensors" if earlier else f"server-{index}.safetensors"


def contents(snapshot: ReplicaSnapshot) -> tuple[int, Iterator[tuple[int, memoryview]]]:
    """Return the size of the file, and its parts in any order: where each begins, and its bytes.

    The rows of a table are in memory in pieces only.
    """
    tables, arrays = snapshot.store.tables, _arrays(snapshot)
    kinds = {name: Kind(array.dtype, array.shape) for name, array in arrays.items()}
    for number, table in enumerate(tables):
        for part, array in table.like._asdict().items():
            kinds[f"table.{number}.{part}"] = Kind(array.dtype, (table.rows, *array.shape[1:]))
    head, starts = header(kinds, {_KEY: msgspec.json.encode(_header(snapshot)).decode()})

    def parts() -> Iterator[tuple[int, memoryview]]:
        yield 0, memoryview(head)
        for name, array in arrays.items():
            yield from _pieces(starts[name], array)
        for number, table in enumerate(tables):
            ends = {part: starts[f"table.{number}.{part}"] for part in CutRows._fields}
            for rows in table.pieces():
                for part, array in rows._asdict().items():
                    yield from _pieces(ends[part], array)
                    ends[part] += array.nbytes

    return len(head) + sum(kind.bytes for kind in kinds.values()), parts()


def _pieces(start: int, array: Any) -> Iterator[tuple[int, memoryview]]:
    if array.size:
        data = memoryview(array).cast("B")
        yield from ((start + at, data[at : at + PIECE]) for at in range(0, len(data), PIECE))


def _header(snapshot: ReplicaSnapshot) -> Header:
    return Header(
        snapshot.arranged.index,
        len(snapshot.arranged.addresses),
        snapshot.version,
        snapshot.definition,
        snapshot.store.flat.steps,
        tuple(table.steps for table in snapshot.store.tables),
        snapshot.push_log,
        tuple(snapshot.states),
    )


def _arrays(snapshot: ReplicaSnapshot) -> dict[str, Any]:
    """Return the arrays of the file that are in memory."""
    return {
        **{f"table.{i}.counts": table.counts for i, table in enumerate(snapshot.store.tables)},
        **{f"table.{i}.gone": table.gone for i, table in enumerate(snapshot.store.tables)},
        "flat": snapshot.store.flat.data,
        "first": snapshot.first,
        **{f"state.{i}": state for i, state in enumerate(snapshot.states.values())},
    }


def open_shard(folder: Path, shard: Shard) -> ShardFiles:
    """Open the files of a shard as memory maps. Raises DamagedError if one is not as it was written."""
    files = []
    for part in shard.parts:
        path = folder / part.file
        try:
            check_size(path, part)  # an empty file cannot be mapped
            raw = np.memmap(path, np.uint8, "r")
        except DamagedError as error:
            raise checkpoint_error(folder, error) from None
        except OSError as error:
            raise checkpoint_error(folder, read_error(part.file, error)) from None
        files.append(ShardFile(path, raw, part))
    return ShardFiles(files)


class ShardFiles:
    """Files of a shard, the oldest first: a whole one, and those with the rows that changed after the one before.

    Everything but rows is in the last one.
    """

    def __init__(self, files: Sequence[ShardFile]) -> None:
        self.header = files[-1].header
        self._files = files

    def flat(self) -> FlatCopy:
        return self._files[-1].flat()

    def first(self) -> Floats:
        return self._files[-1].first()

    def states(self) -> dict[str, Floats]:
        return self._files[-1].states()

    def table(self, number: int) -> list[tuple[Ids, TableCopy]]:
        """Return the table with that index in the definition, by file: ids to remove, and then rows to set."""
        return [(file.evicted_ids(number), file.table(number)) for file in self._files]

    def visible(self, number: int) -> list[tuple[TableCopy, Ids]]:
        """Return the table by file: its rows, and the numbers of those that later files do not replace."""
        parts: list[tuple[TableCopy, Ids]] = []
        hidden = np.empty(0, np.int64)
        for gone, rows in reversed(self.table(number)):
            parts.append((rows, np.flatnonzero(np.isin(rows.ids, hidden, invert=True))))
            hidden = (
                np.union1d(hidden, np.concatenate([gone, rows.ids]))
                if len(parts) < len(self._files)
                else hidden
            )
        return parts[::-1]

    def store(self) -> StoreCopy:
        """Return a copy in arrays of its own, with the rows of the first file."""
        flat = self.flat()
        tables = []
        for number in range(len(self.header.definition.tables)):
            rows, last = self._files[0].table(number), self._files[-1].table(number)
            ids, data, used = np.array(rows.ids), np.array(rows.data), np.array(rows.used)
            tables.append(TableCopy(ids, data, last.steps, used, last.counts))
        return StoreCopy(FlatCopy(np.array(flat.data), flat.steps), tuple(tables))


class ShardFile:
    """File read from its bytes; its arrays are views of them. `path` names it in errors.

    Raises DamagedError if it is not as it was written.
    """

    def __init__(self, path: Path, raw: npt.NDArray[np.uint8], part: Part) -> None:
        try:
            length = int.from_bytes(raw[:8].tobytes(), "little")
            check_data(raw.data, part)
            if length > min(MOST_HEADER_BYTES, len(raw)):
                raise ValueError(f"a header of {length:,} bytes")
            entries = msgspec.json.decode(raw[8 : 8 + length].tobytes(), type=dict[str, msgspec.Raw])
            metadata = msgspec.json.decode(entries.pop("__metadata__"), type=dict[str, str])
            self.header = msgspec.json.decode(metadata[_KEY], type=Header)
            self._arrays = {name: _array(raw[8 + length :], entry) for name, entry in entries.items()}
        except DamagedError as error:
            raise checkpoint_error(path.parent, error) from None
        except (KeyError, ValueError, msgspec.MsgspecError) as error:
            raise checkpoint_error(path.parent, f"{part.file} is not readable: {error}") from None

    def flat(self) -> FlatCopy:
        return FlatCopy(self._arrays["flat"], self.header.flat_steps)

    def table(self, number: int) -> TableCopy:
        """Return the table with that index in the definition."""
        ids, data = self._arrays[f"table.{number}.ids"], self._arrays[f"table.{number}.data"]
        steps = self.header.table_steps[number]
        used, counts = self._arrays[f"table.{number}.used"], self._arrays[f"table.{number}.counts"]
        return TableCopy(ids, data, steps, used, counts)

    def evicted_ids(self, number: int) -> Ids:
        """Return the ids of rows evicted after the file before."""
        gone: Ids = self._arrays.get(f"table.{number}.gone", np.empty(0, np.int64))
        return gone

    def first(self) -> Floats:
        return np.array(self._arrays["first"])

    def states(self) -> dict[str, Floats]:
        return {name: np.array(self._arrays[f"state.{i}"]) for i, name in enumerate(self.header.states)}


def _array(data: Any, raw: msgspec.Raw) -> Any:
    entry = msgspec.json.decode(raw, type=_ShardEntry)
    start, end = entry.data_offsets
    return data[start:end].view(_BY_CODE[entry.dtype]).reshape(entry.shape)
