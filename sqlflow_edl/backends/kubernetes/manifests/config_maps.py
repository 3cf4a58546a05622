"""Files of a job as ConfigMaps, none of them larger than Kubernetes allows.

Text stays text, so that `kubectl get configmap -o yaml` shows the program. A file that is too large for one ConfigMap
is cut into PATH.part-00, PATH.part-01 …, which the entry point of the container joins.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from edl.errors import ClusterError

LARGEST = 900_000  # bytes in a ConfigMap; Kubernetes limits it to 1 MiB
MOST = 32_000_000  # bytes of all files of a job

_REMEDIES = dict.fromkeys(("rows", "zoo"), "put data on a volume, and name them as pod:/edl/volume/…")


@dataclass(frozen=True, slots=True)
class MapPart:
    """File, or a part of one, in a ConfigMap. key: in its data. path: of the file in the pods."""

    key: str
    path: str
    content: bytes


@dataclass(slots=True)
class Map:
    """Content of one ConfigMap."""

    parts: list[MapPart] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(len(part.content) for part in self.parts)

    @property
    def items(self) -> list[dict[str, str]]:
        """Items of a volume: the file of each key."""
        return [{"key": part.key, "path": part.path} for part in self.parts]

    @property
    def data(self) -> dict[str, str]:
        texts = ((part.key, _text(part.content)) for part in self.parts)
        return {key: text for key, text in texts if text is not None}

    @property
    def binary_data(self) -> dict[str, str]:
        others = (part for part in self.parts if _text(part.content) is None)
        return {part.key: base64.b64encode(part.content).decode() for part in others}


def pack(files: Mapping[str, bytes]) -> list[Map]:
    """Pack the files, by their path in the job folder, into as few ConfigMaps as hold them in their order.

    Raises ClusterError if they are too large to send with a job.
    """
    total = sum(map(len, files.values()))
    if total > MOST:
        largest = max(files, key=lambda path: len(files[path]))
        raise ClusterError(
            f"the files of this job are {total / 1e6:.0f} MB, and the limit is {MOST / 1e6:.0f} MB",
            hint=f"the largest is {largest} with {len(files[largest]) / 1e6:.0f} MB; "
            + _REMEDIES.get(largest.partition("/")[0], "hash categories with many values"),
        )
    maps = [Map()]
    keys: set[str] = set()
    for path, content in _parts(files.items()):
        if maps[-1].parts and maps[-1].size + len(content) > LARGEST:
            maps.append(Map())
        key = _key(path, keys)
        keys.add(key)
        maps[-1].parts.append(MapPart(key, path, content))
    return maps


def _parts(files: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    for path, content in files:
        if len(content) <= LARGEST:
            yield path, content
            continue
        for number, part in enumerate(_cut(content)):
            yield f"{path}.part-{number:02}", part


def _cut(content: bytes) -> Iterator[bytes]:
    """Cut into pieces of at most LARGEST bytes, between two characters of a text."""
    start = 0
    while start < len(content):
        end = start + LARGEST
        while end < len(content) and end > start + LARGEST - 4 and content[end] & 0xC0 == 0x80:
            end -= 1
        yield content[start:end]
        start = end


def _key(path: str, taken: set[str]) -> str:
    """Return a unique key similar to the path, of the characters that Kubernetes allows."""
    key = re.sub(r"[^\w.-]", "_", path.replace("/", "."), flags=re.ASCII)[-200:]
    number, unique = 1, key
    while unique in taken:
        number += 1
        unique = f"{key}-{number}"
    return unique


def _text(content: bytes) -> str | None:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
