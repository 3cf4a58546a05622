"""Output of a job in ConfigMaps, for the client that waits for it: an archive, or the results of tasks. Of a job that
runs a script, what its workers tell each other through the master.

The client makes the ConfigMaps, empty, because the master may change only the ConfigMaps named in its Role. A file is
cut into parts, each a key FILE.part-NN-of-NN of any ConfigMap with room.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import APIRefusedError, APIUnreachableError, Calls
from edl.cluster.kubernetes.deployment import Deployment
from edl.errors import JobError
from edl.jobs.cluster_folder import OUTPUT, SCRIPT

if TYPE_CHECKING:
    from kubernetes.client import ApiClient

ROOM = 900_000  # bytes in a ConfigMap; Kubernetes permits 1 MiB
MAPS = 36  # per job with returned output: as much as its files may have
TOO_LARGE = "write it where pods keep it: --output pod:/edl/volume/…, with --set volume=CLAIM"
PATIENCE = 120.0  # seconds without the API server after which a file is refused
_PART = re.compile(r"(.+)\.part-(\d+)-of-(\d+)")


class OutputMaps:
    """Writer of the output. Not thread-safe: the store of arriving files calls it one at a time."""

    def __init__(self, api: ApiClient, deployment: Deployment) -> None:
        self._calls = Calls(api, PATIENCE)
        self._paths = paths(deployment)
        self._keys: list[dict[str, int]] = []  # key -> bytes, of each map

    def put(self, name: str, file: str, path: Path) -> None:
        """Store a file durably if it is of the output or of a script. Raises JobError if that fails."""
        if name not in (OUTPUT, SCRIPT) or not self._paths:
            return
        try:
            self._store(file, path.read_bytes())
        except (APIRefusedError, APIUnreachableError) as error:
            raise JobError(f"{file} cannot be stored in the job's ConfigMaps: {error.message}") from None

    def _store(self, file: str, content: bytes) -> None:
        pieces = [content[at : at + ROOM] for at in range(0, len(content), ROOM)] or [b""]
        if not self._keys:
            self._keys = [
                {key: len(content_of_key) for key, content_of_key in read_map(self._calls, map_).items()}
                for map_ in self._paths
            ]
        for number, piece in enumerate(pieces):
            key = f"{file}.part-{number:02}-of-{len(pieces):02}"
            self._put(self._place(key, len(piece)), key, piece)

    def restore(self, folder: Path) -> None:
        """Write the files that an earlier master has stored into the folder."""
        files = join_parts(
            {key: piece for path in self._paths for key, piece in read_map(self._calls, path).items()}
        )
        folder.mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            (folder / name).write_bytes(content)

    def close(self) -> None:
        self._calls.close()

    def _place(self, key: str, size: int) -> int:
        """Return the number of the map that has the key, else of the first one with room."""
        for number, keys in enumerate(self._keys):
            if key in keys:
                return number
        for number, keys in enumerate(self._keys):
            if sum(keys.values()) + size <= ROOM:
                return number
        raise JobError(
            f"the output of this job is larger than the {ROOM * MAPS / 1e6:.0f} MB that come back through the cluster",
            hint=TOO_LARGE,
        )

    def _put(self, number: int, key: str, piece: bytes) -> None:
        while True:
            config_map: dict[str, Any] = msgspec.json.decode(self._calls.ask("GET", self._paths[number]))
            data = {**(config_map.get("binaryData") or {}), key: base64.b64encode(piece).decode()}
            try:
                self._calls.ask("PUT", self._paths[number], {**config_map, "binaryData": data})
            except APIRefusedError as error:
                if error.status == 409:  # someone has changed its labels
                    continue
                raise
            self._keys[number][key] = len(piece)
            return


def paths(deployment: Deployment) -> list[str]:
    """Return the API paths of the job's ConfigMaps for output."""
    folder = f"/api/v1/namespaces/{deployment.namespace}/configmaps"
    return [f"{folder}/{names.output(deployment.name, number)}" for number in range(deployment.outputs)]


def read_map(calls: Calls, path: str) -> dict[str, bytes]:
    """Return the parts in one ConfigMap, by key."""
    entries = msgspec.json.decode(calls.ask("GET", path)).get("binaryData") or {}
    return {key: base64.b64decode(text) for key, text in entries.items()}


def join_parts(parts: dict[str, bytes]) -> dict[str, bytes]:
    """Return the files that are there with all their parts."""
    files: dict[str, dict[int, bytes]] = {}
    counts: dict[str, int] = {}
    for key, content in parts.items():
        if match := _PART.fullmatch(key):
            files.setdefault(match[1], {})[int(match[2])] = content
            counts[match[1]] = int(match[3])
    return {
        file: b"".join(pieces[number] for number in sorted(pieces))
        for file, pieces in files.items()
        if len(pieces) == counts[file]
    }
