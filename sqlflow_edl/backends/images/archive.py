"""Image archives made of a file system, without a builder.

An archive has the layout of the OCI image specification, and beside it the index of `docker save`: so docker, podman,
containerd and skopeo load it. It has one layer, with all files of the folder.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from edl.build import Build, read_build
from edl.errors import SemanticError
from sqlflow_edl.analysis.settings.kubernetes import USER
from sqlflow_edl.backends.images.builders import check_tag
from sqlflow_edl.backends.images.registry import LABEL, label_of

NEEDED = ("opt/edl/bin/python", "opt/edl/code/edl/entrypoints/pod.py")  # of the folder
# Folders that enter the image empty: those of the running system, those that apt fills again, and translations,
# manuals and the sources of locales. The locale C.UTF-8 is in usr/lib, and licences are in usr/share/doc, which stays.
EMPTIED = (
    *("dev", "proc", "sys", "run", "tmp", "build"),
    *("var/cache/apt", "var/lib/apt/lists"),
    *("usr/share/i18n", "usr/share/info", "usr/share/locale", "usr/share/man"),
)
# as in runtime/Dockerfile
ENVIRONMENT = {
    "PATH": "/opt/edl/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "EDL_KERNELS": "/opt/edl/kernels",
    "SQLFLOW_MODEL_PATH": "/opt/models",
}
_MACHINES = {"x86_64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
_OCI = "application/vnd.oci.image"


@dataclass(frozen=True, slots=True)
class _Blob:
    digest: str
    size: int

    @property
    def name(self) -> str:
        return f"blobs/sha256/{self.digest}"

    def describe(self, kind: str) -> dict[str, Any]:
        return {"mediaType": f"{_OCI}.{kind}", "digest": f"sha256:{self.digest}", "size": self.size}


def pack(folder: Path, tag: str, archive: Path) -> None:
    """Write the archive of an image with the files of the folder, and the settings of the stock image.

    Needs space for the files beside the archive, meanwhile. Raises SemanticError if the tag cannot name an image, or
    the folder has no runtime.
    """
    check_tag(tag)
    for path in NEEDED:
        if not os.path.lexists(folder / path):
            raise SemanticError(
                f"{folder} has no {path}",
                hint="sqlflow help images lists the steps that put the runtime there",
            )
    if archive.resolve().is_relative_to(folder.resolve()):
        raise SemanticError(f"{archive} is in {folder}, which it is to hold", hint="name a file elsewhere")
    name = tag if ":" in tag.rpartition("/")[2] else f"{tag}:latest"
    partial = archive.with_name(f"{archive.name}.partial")
    try:
        with _layer(folder, archive) as (file, layer), tarfile.open(partial, "w") as image:
            _write(image, name, file, layer, read_build(folder / "opt/edl/code/edl"))
        partial.replace(archive)
    finally:
        partial.unlink(missing_ok=True)


def _write(image: tarfile.TarFile, name: str, file: IO[bytes], layer: _Blob, code: Build | None) -> None:
    _add(image, layer.name, file, layer.size)
    config = _add_json(image, _config(layer, code))
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{_OCI}.manifest.v1+json",
        "config": config.describe("config.v1+json"),
        "layers": [layer.describe("layer.v1.tar")],
    }
    descriptor = _add_json(image, manifest).describe("manifest.v1+json")
    names = {"io.containerd.image.name": _full_name(name), "org.opencontainers.image.ref.name": name}
    index = {"schemaVersion": 2, "manifests": [{**descriptor, "annotations": names}]}
    saved = [{"Config": config.name, "RepoTags": [name], "Layers": [layer.name]}]
    for path, content in (
        ("index.json", index),
        ("manifest.json", saved),
        ("oci-layout", {"imageLayoutVersion": "1.0.0"}),
    ):
        data = json.dumps(content).encode()
        _add(image, path, io.BytesIO(data), len(data))


def _config(layer: _Blob, code: Build | None) -> dict[str, Any]:
    now = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    settings = {
        "User": f"{USER}:{USER}",
        "Env": [f"{name}={value}" for name, value in ENVIRONMENT.items()],
        "WorkingDir": "/tmp",  # noqa: S108 - of the container
        "Labels": {LABEL: label_of(code)} if code is not None else {},
    }
    return {
        "created": now,
        "architecture": _MACHINES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": settings,
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}"]},
        "history": [{"created": now, "created_by": "sqlflow image pack"}],
    }


def _full_name(name: str) -> str:
    """Return the name with its registry, as nodes look it up."""
    first, slash, _ = name.partition("/")
    if slash and (first == "localhost" or "." in first or ":" in first):
        return name
    return f"docker.io/{name}" if slash else f"docker.io/library/{name}"


@contextmanager
def _layer(folder: Path, archive: Path) -> Iterator[tuple[IO[bytes], _Blob]]:
    """Yield the tar file of the folder, with its digest and size, as long as the context lasts."""
    path = archive.with_name(f"{archive.name}.layer")
    try:
        with path.open("w+b") as file:
            with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as layer:
                for source, name in _files(folder):
                    layer.add(source, name, recursive=False, filter=_drop_owner)
            size = file.tell()
            file.seek(0)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            file.seek(0)
            yield file, _Blob(digest, size)
    finally:
        path.unlink(missing_ok=True)


def _drop_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Drop the names of owners, because they belong to this machine; their numbers count."""
    entry.uname = entry.gname = ""
    return entry


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """Yield each file and folder, in order, with its name in the image; of what is mounted there, the folder alone."""
    emptied = {folder / name for name in EMPTIED}
    for place, folders, names in os.walk(folder):
        folders.sort()
        here = Path(place)
        for name in sorted([*folders, *names]):
            yield here / name, str((here / name).relative_to(folder))
        folders[:] = [
            name for name in folders if here / name not in emptied and not os.path.ismount(here / name)
        ]


def _add_json(image: tarfile.TarFile, content: dict[str, Any]) -> _Blob:
    data = json.dumps(content).encode()
    blob = _Blob(hashlib.sha256(data).hexdigest(), len(data))
    _add(image, blob.name, io.BytesIO(data), blob.size)
    return blob


def _add(image: tarfile.TarFile, name: str, file: IO[bytes], size: int) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = size, 0o644
    image.addfile(entry, file)
