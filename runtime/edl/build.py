"""Build of the runtime: which code this is, and whether jobs of another build run in it.

Client and image of a job on Kubernetes have the runtime each, and builds of one version differ. A digest of the
installed modules tells them apart. It is computed where a job is submitted and where its pods start, so that no step of
a build can forget it. `python -m edl.build` shows it.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path

import msgspec

from edl.installation import VERSION

# Raise it with a change after which an earlier build would misread jobs of this one without an error, or the reverse:
# in messages between processes, in the files of a job, in variables of its pods. An addition that earlier builds refuse
# by its name, or may ignore, needs no other number.
PROTOCOL = 2
SHOWN = 12  # hexadecimal digits of a digest
ADVICE = (
    "build the image from the code that is installed where the job is submitted, or install there the code of the "
    "image; `sqlflow doctor` there and `python -m edl.build` in the image show the builds"
)
_VERSION = re.compile(r'^VERSION = "([^"]*)"', re.MULTILINE)
_PROTOCOL = re.compile(r"^PROTOCOL = (\d+)$", re.MULTILINE)


class Build(msgspec.Struct, frozen=True):
    """Build of the runtime. `digest` is empty and `protocol` 0 for builds that did not tell them."""

    version: str = ""
    digest: str = ""
    protocol: int = 0

    def __str__(self) -> str:
        return f"sqlflow-edl {self.version or 'of another version'}, build {self.digest or 'unknown'}"

    def is_compatible(self, other: Build) -> bool:
        """Return False if jobs of one do not run in the other; True may still mean that one lacks a feature."""
        return not (self.protocol and other.protocol) or self.protocol == other.protocol


@cache
def present_build() -> Build:
    """Return the build of this process; the first call reads all modules of the runtime, in about 25 ms."""
    return Build(VERSION, compute_digest(Path(__file__).parent)[:SHOWN], PROTOCOL)


def read_build(folder: Path) -> Build | None:
    """Return the build of the modules of a runtime in another folder, without running them; None if it has none."""
    try:
        version = _VERSION.search((folder / "installation.py").read_text(encoding="utf-8"))
        protocol = _PROTOCOL.search((folder / "build.py").read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    digest = compute_digest(folder)[:SHOWN]
    return Build(version[1] if version else "", digest, int(protocol[1]) if protocol else 0)


def compute_digest(folder: Path) -> str:
    """Return a hexadecimal digest of the modules in a folder: their paths and bytes, and nothing else of it."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        code = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(code)}\n".encode())
        digest.update(code)
    return digest.hexdigest()


if __name__ == "__main__":
    print(f"{present_build()}, protocol {PROTOCOL}")
