"""What a container of a job finds mounted, as Kubernetes mounts it: links to a folder that is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

JOB = "20260101-120000-000000-abcdef"


def mounted(folder: Path, files: Mapping[str, bytes], secrets: Mapping[str, str]) -> dict[str, str]:
    """The variables of a container with these files and passwords."""
    _mount(folder / "files", files)
    contents = {"token": b"t0ken", "secrets.json": json.dumps(secrets).encode()}
    _mount(folder / "secrets", contents)
    return {
        "EDL_FILES": str(folder / "files"),
        "EDL_SECRETS": str(folder / "secrets"),
        "EDL_JOB": str(folder / "empty" / JOB),
        "EDL_MASTER": "name.space.svc:50001",
    }


def _mount(folder: Path, files: Mapping[str, bytes]) -> None:
    data = folder / "..2026_01_01"
    for name, content in files.items():
        path = data / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "..data").symlink_to(data.name)
    for name in {Path(name).parts[0] for name in files}:
        (folder / name).symlink_to(Path("..data", name))
