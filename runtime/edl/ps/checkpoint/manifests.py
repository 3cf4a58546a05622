"""Checkpoints on disk: the files of all servers, and a manifest that makes them one checkpoint.

    <checkpoints>/<name>/server-0.safetensors …   `edl.ps.checkpoint.shard_file`
    <checkpoints>/<name>/server-0-1.safetensors   changes after it, if the checkpoint is not a whole one
    <checkpoints>/<name>/manifest.json            written last: without it the checkpoint is incomplete

Any number of servers can restore a checkpoint: each reads its part of all files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from edl.checkpoints import DAMAGED, CheckpointStore
from edl.checkpoints.integrity import (
    check_file,
    check_json,
    checkpoint_error,
    read_error,
    seal_json,
    write_file,
)
from edl.embeddings import TableCopy
from edl.embeddings.table import Floats, Ids
from edl.errors import DamagedError, SpecError
from edl.files import make_folders, sync
from edl.models.weights import Kind, WeightStream, collect_arrays
from edl.ps.checkpoint.content import Manifest, Mode, ModelDefinition, Shard, Version
from edl.ps.checkpoint.merging import CHUNK, merge_rows, order_rows
from edl.ps.checkpoint.shard_file import ShardFiles, open_shard
from edl.ps.dense import FlatCopy
from edl.ps.messages import Arrange
from edl.ps.partitioning import Layout, Placement, owned_mask
from edl.ps.push_log import PushLog
from edl.ps.replica import ReplicaStart
from edl.ps.store import ParameterStore

MANIFEST = "manifest.json"
BEST = "best-"  # name prefix of checkpoints with the best weights, from which training does not resume


def manifest_of(name: str, at: Version, mode: Mode, shards: Sequence[Shard]) -> Manifest:
    """Return the manifest of the shards. Raises SpecError if one of them was not written."""
    for shard in shards:
        if shard.error:
            raise SpecError(f"the checkpoint {name} lacks {shard.file}: {shard.error}")
    ordered = tuple(sorted(shards, key=lambda shard: shard.index))
    version = 2 if any(shard.earlier for shard in ordered) else 1
    return Manifest(at, mode, ordered, version)


def write_manifest(store: CheckpointStore, name: str, manifest: Manifest) -> None:
    """Complete a checkpoint by its manifest. Raises OSError or SQLFlowError if it cannot be written."""
    folder = store.folder / name
    make_folders(folder)
    write_file(folder / MANIFEST, [(0, memoryview(seal_json(msgspec.json.encode(manifest))))])
    sync(store.folder)
    store.publish(name, MANIFEST)


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest. Raises DamagedError if it is missing or not as it was written, SpecError if it was written
    by another version.
    """
    try:
        data = (folder / MANIFEST).read_bytes()
        check_json(data, MANIFEST)
        version = msgspec.json.decode(data, type=dict[str, msgspec.Raw]).get("version")
        if version is None or bytes(version) not in (b"1", b"2"):
            number = bytes(version).decode() if version else "none"
            raise SpecError(f"the checkpoint {folder.name} has version {number}; this program reads 1 and 2")
        manifest = msgspec.json.decode(data, type=Manifest)
    except DamagedError as error:
        raise checkpoint_error(folder, error) from None
    except OSError as error:
        raise checkpoint_error(folder, read_error(MANIFEST, error)) from None
    except (msgspec.MsgspecError, UnicodeDecodeError):
        raise checkpoint_error(folder, f"{MANIFEST} is not readable") from None
    if [shard.index for shard in manifest.shards] != list(range(len(manifest.shards))) or not manifest.shards:
        raise checkpoint_error(folder, f"{MANIFEST} lacks files")
    return manifest


def verify_checkpoint(folder: Path) -> int:
    """Read all files in pieces; return the step.

    Raises DamagedError if one is not as it was written, SpecError if it was written by another version.
    """
    manifest = read_manifest(folder)
    try:
        for shard in manifest.shards:
            for part in shard.parts:
                check_file(folder / part.file, part)
    except DamagedError as error:
        raise checkpoint_error(folder, error) from None
    return manifest.at.step


def complete(checkpoints: Path) -> list[str]:
    """Return the names of complete checkpoints that training can resume from, the oldest first.

    A running job may remove some of them meanwhile.
    """
    if not checkpoints.is_dir():
        return []
    folders = [
        path.parent
        for path in checkpoints.glob(f"*/{MANIFEST}")
        if not (path.parent.name.startswith(BEST) or (path.parent / DAMAGED).exists())
    ]
    timed = [(time, folder.name) for folder in folders if (time := _completion_time(folder))]
    return [name for _, name in sorted(timed)]


def _completion_time(folder: Path) -> int:
    """Return the completion time of the checkpoint in ns, or 0 if it is incomplete or gone."""
    try:
        read_manifest(folder)
        return (folder / MANIFEST).stat().st_mtime_ns
    except (SpecError, FileNotFoundError):
        return 0


# Reading -----------------------------------------------------------------------------------------------------


def files_for(manifest: Manifest, index: int, servers: int) -> list[str]:
    """Return the names of the files of a checkpoint that server `index` of `servers` reads."""
    shards = [manifest.shards[index]] if len(manifest.shards) == servers else manifest.shards
    return [part.file for shard in shards for part in shard.parts]


def restore(folder: Path, manifest: Manifest, index: int, servers: int, *, same_leases: bool) -> ReplicaStart:
    """Return the initial state of server `index` of `servers`.

    `same_leases` is True if the same workers continue with the leases of the checkpoint. Raises SpecError if the
    checkpoint is damaged, or of another version.
    """
    if len(manifest.shards) == servers:
        return start_of(open_shard(folder, manifest.shards[index]), same_leases=same_leases)
    files = _files(folder, manifest)
    store = ParameterStore(files[0].header.definition, index, servers, None)
    store.flat.adopt(_read_flat(files, index, servers))
    for number, table in enumerate(store.tables.values()):
        for file in files:
            for gone, rows in file.table(number):
                table.drop(np.array(gone))
                for ids, data, used in _chunks(rows):
                    mine = owned_mask(ids, index, servers)
                    table.put(ids[mine], data[mine], used[mine])
            table.merge_counts(rows.counts)
        table.steps = max(file.header.table_steps[number] for file in files)
    push_log = _push_log(files[0], same_leases=False) if index == 0 else PushLog(np.empty(0, np.float32))
    return ReplicaStart(store, push_log, max(file.header.at.step for file in files))


def goes_on(asked: Arrange, manifest: Manifest) -> bool:
    """Return True if a server arranged with the checkpoint continues with the workers and leases of its time."""
    return asked.epoch > 0 and manifest.at.generation == asked.generation


def _chunks(rows: TableCopy) -> Iterator[tuple[Ids, Floats, Ids]]:
    for first in range(0, len(rows.ids), CHUNK):
        some = slice(first, first + CHUNK)
        yield np.array(rows.ids[some]), rows.data[some], rows.used[some]


def start_of(files: ShardFiles, *, same_leases: bool) -> ReplicaStart:
    """Return the initial state of a server from its own shard, for an unchanged number of servers."""
    header = files.header
    store = ParameterStore(header.definition, header.index, header.servers, None)
    store.adopt(files.store())
    for number, table in enumerate(store.tables.values()):
        for gone, rows in files.table(number)[1:]:
            table.drop(np.array(gone))
            for ids, data, used in _chunks(rows):
                table.put(ids, data, used)
    return ReplicaStart(store, _push_log(files, same_leases=same_leases), header.at.step)


def read_weights(folder: Path) -> dict[str, npt.NDArray[np.generic]]:
    """Return the weights that `stream_weights` yields, all in memory."""
    return collect_arrays(stream_weights(folder))


def stream_weights(folder: Path) -> WeightStream:
    """Return the weights of the model, named as in `edl.embeddings.model_tables.Tables.get_weights` and its adapter.

    Raises SpecError if the checkpoint is incomplete, damaged, or of another version.
    """
    files = _files(folder, read_manifest(folder))
    definition = files[0].header.definition
    arrays = {name: np.array(parameter[0]) for name, parameter in _parameters(files, definition).items()}
    arrays |= Layout(definition.state).unflat(_push_log(files[0], same_leases=False).state())
    kinds = {name: Kind(array.dtype, array.shape) for name, array in arrays.items()}
    tables = {
        spec: [part for file in files for part in file.visible(number)]
        for number, spec in enumerate(definition.tables)
    }
    for spec, parts in tables.items():
        rows = sum(len(numbers) for _, numbers in parts)
        kinds[f"{spec.name}:ids"] = Kind(np.dtype(np.int64), (rows,))
        kinds[f"{spec.name}:rows"] = Kind(np.dtype(np.float32), (rows, spec.dim))
        kinds[f"{spec.name}:seed"] = Kind(np.dtype(np.int64), (1,))

    def pieces() -> Iterator[tuple[str, npt.NDArray[np.generic]]]:
        yield from arrays.items()
        for spec, parts in tables.items():
            yield f"{spec.name}:seed", np.array([definition.seed], np.int64)
            for ids, rows in merge_rows([order_rows(part, numbers, spec.dim) for part, numbers in parts]):
                yield f"{spec.name}:ids", ids
                yield f"{spec.name}:rows", rows

    return WeightStream(kinds, pieces())


def _files(folder: Path, manifest: Manifest) -> list[ShardFiles]:
    files = [open_shard(folder, shard) for shard in manifest.shards]
    if any(file.header.definition != files[0].header.definition for file in files):
        raise SpecError(f"the files of the checkpoint {folder} are of different models")
    return files


def _parameters(files: Sequence[ShardFiles], definition: ModelDefinition) -> dict[str, list[Floats]]:
    """Return the value and the optimizer slots of each parameter."""
    placement = Placement(definition.dense, len(files))
    parts_of: dict[str, list[Floats]] = {}
    for server, file in enumerate(files):
        for vector in file.flat().data:
            for name, part in placement.unflat(vector, server).items():
                parts_of.setdefault(name, []).append(part)
    return parts_of


def _read_flat(files: Sequence[ShardFiles], index: int, servers: int) -> FlatCopy:
    """Return the flat parameters and slots of server `index`, from the files of any number of servers."""
    definition = files[0].header.definition
    parameters = _parameters(files, definition)
    layout = Placement(definition.dense, servers).layout(index)
    vectors = [
        layout.flat({name: parts[number] for name, parts in parameters.items()})
        for number in range(len(files[0].flat().data))
    ]
    return FlatCopy(np.stack(vectors), max(file.header.flat_steps for file in files))


def _push_log(file: ShardFiles, *, same_leases: bool) -> PushLog:
    push_log = PushLog(file.first())
    push_log.restore(file.header.push_log, file.states(), same_leases=same_leases)
    return push_log
