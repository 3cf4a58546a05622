"""Volumes as folders of this machine. Where a container names a mount's path, it gets the folder's path instead."""

from __future__ import annotations

import re
from pathlib import Path

from tests.kubernetes import environment
from tests.kubernetes.access import Access
from tests.kubernetes.kinds import SERVICE_ACCOUNT, Key, Object
from tests.kubernetes.store import Store

Files = dict[str, bytes]


class Volumes:
    """Of one pod, made when its containers start."""

    def __init__(self, store: Store, access: Access, pod: Object, folder: Path, address: str) -> None:
        self._store, self._access, self._pod, self._address = store, access, pod, address
        self._folders: dict[str, Path] = {}
        for volume in pod["spec"].get("volumes", []):
            place = folder / "volumes" / volume["name"]
            place.mkdir(parents=True, exist_ok=True)
            self._folders[volume["name"]] = (
                Path(volume["hostPath"]["path"]) if "hostPath" in volume else place
            )
            for path, content in self._files(volume).items():
                file = place / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)

    def placed(self, container: Object) -> Object:
        """The container with the paths of this machine in its command, environment and working directory."""
        mounts = sorted(
            container.get("volumeMounts", []), key=lambda one: len(one["mountPath"]), reverse=True
        )
        folders = [(one["mountPath"], self._folders[one["name"]] / one.get("subPath", "")) for one in mounts]

        def place(text: str) -> str:
            for path, folder in folders:
                text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", str(folder), text)
            return text

        placed = dict(container)
        for name in ("command", "args"):
            placed[name] = [place(word) for word in container.get(name, [])]
        if "workingDir" in container:
            placed["workingDir"] = place(container["workingDir"])
        placed["env"] = [
            {**one, "value": place(one["value"])} if "value" in one else one
            for one in container.get("env", [])
        ]
        return placed

    def _files(self, source: Object) -> Files:
        namespace = self._pod["metadata"]["namespace"]
        for name in ("configMap", "secret"):
            if name in source:
                reference = source[name]
                if name == "secret" and "name" in reference:  # as a projected volume calls it
                    reference = {**reference, "secretName": reference["name"]}
                return _chosen(environment.values(self._store, namespace, reference) or {}, reference)
        if "downwardAPI" in source:
            items = source["downwardAPI"].get("items", [])
            return {one["path"]: self._field(one).encode() for one in items if "fieldRef" in one}
        if "serviceAccountToken" in source:
            account = Key(SERVICE_ACCOUNT, namespace, self._pod["spec"]["serviceAccountName"])
            return {source["serviceAccountToken"]["path"]: self._access.token(account).encode()}
        found: Files = {}
        for one in source.get("projected", {}).get("sources", []):
            found |= self._files(one)
        return found

    def _field(self, item: Object) -> str:
        return environment.field(self._pod, item["fieldRef"]["fieldPath"], self._address)


def _chosen(values: Files, reference: Object) -> Files:
    if "items" not in reference:
        return values
    return {one["path"]: values[one["key"]] for one in reference["items"] if one["key"] in values}
