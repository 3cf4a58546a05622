"""Volumes as folders of this machine. Where a container names a mount's path, it gets the folder's path instead."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.kubernetes import environment
from tests.kubernetes.access import Access
from tests.kubernetes.kinds import CONFIG_MAP, SECRET, SERVICE_ACCOUNT, Key, Object
from tests.kubernetes.store import Store


class File(NamedTuple):
    path: str
    content: bytes
    mode: int


class MountError(Exception):
    """As the node says it."""


class Volumes:
    """Of one pod, made before its containers start. `root`: of the node, where claims and pods have folders.

    MountError: something that is to be mounted is not there.
    """

    def __init__(self, store: Store, access: Access, pod: Object, root: Path, address: str) -> None:
        self._store, self._access, self._pod, self._address = store, access, pod, address
        self._folders: dict[str, Path] = {}
        for volume in pod["spec"].get("volumes", []):
            folder = self._folders[volume["name"]] = self._folder(volume, root)
            for path, content, mode in self._read(volume):
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
                file.chmod(mode)

    def place(self, container: Object, last_words: Path, text: str) -> str:
        """With the paths of this machine instead of those at which the container mounts something."""
        folders = {
            one["mountPath"]: str(self._folders[one["name"]] / one.get("subPath", ""))
            for one in container.get("volumeMounts", [])
        }
        folders[container["terminationMessagePath"]] = str(last_words)
        paths = "|".join(map(re.escape, sorted(folders, key=len, reverse=True)))
        return re.sub(rf"(?<![\w./-])({paths})(?![\w.-])", lambda match: folders[match[1]], text)

    def _folder(self, volume: Object, root: Path) -> Path:
        """One's own, unless it is a folder of the node or of a claim."""
        metadata = self._pod["metadata"]
        if "hostPath" in volume:
            return Path(volume["hostPath"]["path"])
        if "persistentVolumeClaim" in volume:
            folder = root / "claims" / metadata["namespace"] / volume["persistentVolumeClaim"]["claimName"]
        else:
            folder = root / metadata["uid"] / "volumes" / volume["name"]
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _read(self, volume: Object) -> list[File]:
        try:
            return list(self._files(volume))
        except environment.MissingError as missing:
            raise MountError(f'MountVolume.SetUp failed for volume "{volume["name"]}" : {missing}') from None

    def _files(self, volume: Object) -> Iterator[File]:
        for name in ("configMap", "secret", "downwardAPI"):
            if name in volume:
                yield from self._files_of(volume, volume[name]["defaultMode"])
        projected = volume.get("projected", {})
        for source in projected.get("sources", []):
            yield from self._files_of(source, projected["defaultMode"])

    def _files_of(self, source: Object, mode: int) -> Iterator[File]:
        namespace = self._pod["metadata"]["namespace"]
        if "configMap" in source:
            key = Key(CONFIG_MAP, namespace, source["configMap"]["name"])
            values = environment.values(self._store, key, source["configMap"])
            yield from _chosen(values, source["configMap"], mode, "config")
        if "secret" in source:
            secret = source["secret"]  # a projected one has a `name`
            key = Key(SECRET, namespace, secret.get("secretName") or secret["name"])
            values = environment.values(self._store, key, secret)
            yield from _chosen(values, secret, mode, "secret")
        for item in source.get("downwardAPI", {}).get("items", []):
            if "fieldRef" in item:
                value = environment.field(self._pod, item["fieldRef"]["fieldPath"], self._address)
                yield File(item["path"], value.encode(), item.get("mode", mode))
        if "serviceAccountToken" in source:
            account = Key(SERVICE_ACCOUNT, namespace, self._pod["spec"]["serviceAccountName"])
            yield File(source["serviceAccountToken"]["path"], self._access.token(account).encode(), mode)


def _chosen(values: dict[str, bytes], reference: Object, mode: int, what: str) -> Iterator[File]:
    if "items" not in reference:
        yield from (File(key, value, mode) for key, value in values.items())
    for item in reference.get("items", []):
        if item["key"] in values:
            yield File(item["path"], values[item["key"]], item.get("mode", mode))
        elif not reference.get("optional"):
            raise environment.MissingError(f"references non-existent {what} key: {item['key']}")
