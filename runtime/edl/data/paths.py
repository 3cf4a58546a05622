"""Data files of a job: resolution of a path, a folder, a pattern or a URL, and of the format.

    digits/train-*.recordio      a pattern                digits/                    all files of a folder
    csv:///census.csv?delim=;    a URL with options       recordio:digits/train-00   a format given by the scheme

Without a scheme the format follows from the name's suffix, or else from the file's first bytes.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from edl.data.url import SourceURL, parse_files
from edl.errors import SourceError, did_you_mean

# format -> module of its reader, imported on first use
FORMATS = {
    "csv": "edl.data.files.csv_ranges",
    "parquet": "edl.data.files.parquet_ranges",
    "recordio": "edl.data.files.recordio_ranges",
}
_ENDINGS = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".recordio": "recordio", ".rio": "recordio"}
_MAGICS = {b"PAR1": "parquet", b"\x04\x03\x02\x01": "recordio"}
_PACKED = (".gz", ".zst", ".bz2", ".xz", ".zip")


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Files of one format, sorted by name. `url` is the user's, with the format as its scheme."""

    format: str
    paths: tuple[str, ...]
    options: tuple[tuple[str, str], ...]
    url: SourceURL


def found_files(text: str) -> DataFiles:
    """Resolve the files that a user names. Raises SourceError if there are none, or if their formats differ."""
    url = parse_files(text)
    location = os.path.abspath(Path(url.location).expanduser())  # noqa: PTH100 - a pattern, and links stay
    paths = _paths(location)
    for path in paths:
        if path.lower().endswith(_PACKED):
            raise SourceError(
                f"{path} is compressed as a whole, so ranges of its rows cannot be read",
                hint="decompress it, or convert it to Parquet",
            )
    name = url.scheme or _format(paths)
    return DataFiles(name, tuple(paths), url.options, SourceURL(name, location, url.options))


def _paths(location: str) -> list[str]:
    if Path(location).is_file():
        return [location]
    if Path(location).is_dir():
        paths = _data_files(str(path) for path in Path(location).iterdir())
        if not paths:
            raise SourceError(f"the folder {location} holds no files")
        return paths
    paths = _data_files(glob.glob(location, recursive=True))  # noqa: PTH207 - the pattern is absolute
    if not paths:
        folder = Path(location).parent
        names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
        hint = did_you_mean(Path(location).name, names, list_up_to=0) or "check the path"
        raise SourceError(f"there is no file {location}", hint=hint)
    return paths


def _data_files(paths: Iterable[str]) -> list[str]:
    """Sort files by name and drop files with a leading dot or underscore: they are no data (_SUCCESS, .crc)."""
    return sorted(path for path in paths if Path(path).is_file() and Path(path).name[0] not in "._")


def _format(paths: list[str]) -> str:
    by_format = {_format_of(path): path for path in reversed(paths)}
    if len(by_format) > 1:
        shown = " and ".join(f"{path} ({name})" for name, path in sorted(by_format.items()))
        raise SourceError(f"the files are of several formats: {shown}", hint="name those of one format")
    return next(iter(by_format))


def _format_of(path: str) -> str:
    ending = Path(path).suffix.lower()
    if ending in _ENDINGS:
        return _ENDINGS[ending]
    try:
        with Path(path).open("rb") as file:
            head = file.read(4)
    except OSError as error:
        raise SourceError(f"cannot read {path}: {error.strerror}") from None
    if head in _MAGICS:
        return _MAGICS[head]
    raise SourceError(
        f"neither the name of {path} nor its first bytes identify its format",
        hint=f"put one in front: {', '.join(f'{name}:' for name in FORMATS)} as in csv:{Path(path).name}",
    )
