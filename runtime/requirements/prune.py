"""Take the files that unused.txt names away from the packages of an image: `python prune.py [SITE_PACKAGES]`.

It needs nothing but Python, and `strip` of Debian's binutils, without which libraries keep their symbols.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

LIST = Path(__file__).with_name("unused.txt")
VERBS = ("remove", "keep", "strip")


def rules(text: str) -> Iterator[tuple[str, str]]:
    """Yield verb and pattern of each line. Raises ValueError for another line."""
    for number, line in enumerate(text.splitlines(), start=1):
        if not line or line.startswith("#"):
            continue
        verb, _, pattern = line.partition(" ")
        if verb not in VERBS or not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
            raise ValueError(f"line {number}: {line!r} is not one of {', '.join(VERBS)} and a pattern")
        yield verb, pattern


def prune(site: Path, text: str) -> None:
    """Remove and strip what the rules name in the folder site-packages."""
    found: dict[str, set[Path]] = {verb: set() for verb in VERBS}
    for verb, pattern in rules(text):
        found[verb].update(site.glob(pattern))
    for path in sorted(found["remove"] - found["keep"]):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)  # its folder was removed before it
    tool = shutil.which("strip")
    if tool is None:
        print("there is no strip (Debian's binutils): libraries keep their symbols", file=sys.stderr)
        return
    for path in sorted(found["strip"]):
        if path.is_file() and not path.is_symlink():
            _strip(tool, path)


def _strip(tool: str, path: Path) -> None:
    """Write the library anew without the symbols that no linker needs. Raises CalledProcessError if it is none."""
    new = path.with_name(f"{path.name}.new")
    subprocess.run([tool, "--strip-unneeded", "-o", new, path], check=True)  # noqa: S603 (a list)
    shutil.copystat(path, new)
    new.replace(path)


def main() -> None:
    """Prune the packages of this Python, or those of the folder that is named."""
    site = Path(sys.argv[1] if len(sys.argv) > 1 else sysconfig.get_path("purelib"))
    before = _size(site)
    prune(site, LIST.read_text(encoding="utf-8"))
    print(f"{site}: {before / 1e6:,.0f} MB, now {_size(site) / 1e6:,.0f} MB")


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
