"""Tables of Apache Iceberg as a data source, see `edl.extensions.lakes.lake`.

The URL names the folder of a table, one of its metadata files, or its name in a catalog of pyiceberg's configuration.
Every scan streams all columns of the files: pyiceberg applies the deletes and the changes of the schema.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any, ClassVar

from edl.errors import SourceError
from edl.extensions.lakes.lake import LakeSource
from edl.installation import install_extras

if TYPE_CHECKING:
    from pyiceberg.table import DataScan, Table

_METADATA = re.compile(r"(?:v|0*)(\d+)(?:-[\w-]+)?(?:\.gz)?\.metadata\.json")  # of Hadoop, of catalogs


class IcebergSource(LakeSource):
    """DuckDB database with a snapshot of an Iceberg table."""

    version_option = "snapshot"
    known_options: ClassVar[tuple[str, ...]] = (version_option, "catalog")

    @classmethod
    def _open(cls, location: str, version: int | None, options: dict[str, str]) -> tuple[int | None, Any]:
        try:
            import pyiceberg.exceptions as raised
        except ImportError:
            raise SourceError("iceberg:// needs pyiceberg", hint=install_extras("iceberg")) from None
        try:
            table = (
                _in_catalog(location, options["catalog"]) if "catalog" in options else _open_table(location)
            )
            if version is not None and table.snapshot_by_id(version) is None:
                raise SourceError(f"{location} has no snapshot {version}", hint=_known_snapshots(table))
            scan = table.scan(snapshot_id=version)  # without one, with the columns of now
            if version is None and (newest := table.current_snapshot()) is not None:
                version = newest.snapshot_id
            return version, _TableRows(scan)
        except (raised.NoSuchTableError, raised.NoSuchNamespaceError, raised.NoSuchIdentifierError):
            raise SourceError(
                f"there is no table {location} in the catalog {options.get('catalog', '')}",
                hint="write it as namespace.table",
            ) from None
        except (
            raised.RESTError,
            raised.ValidationError,  # of metadata, which is no ValueError
            raised.NotInstalledError,
            OSError,
            ValueError,
            KeyError,
        ) as error:
            raise _unreadable_error(location, error) from None

    @classmethod
    def _folder(cls, location: str, options: dict[str, str]) -> str:
        if "catalog" in options:
            return location.rpartition(".")[2]
        return location.rpartition("/metadata/")[0] if _is_metadata(location) else location


class _TableRows:
    """Rows of a scan by Arrow's PyCapsule interface: each call is a new pass over the files."""

    def __init__(self, scan: DataScan) -> None:
        self._scan = scan

    def __arrow_c_schema__(self) -> object:
        schema: object = self._scan.projection().as_arrow().__arrow_c_schema__()
        return schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._scan.to_arrow_batch_reader().__arrow_c_stream__(requested_schema)


def _in_catalog(name: str, catalog: str) -> Table:
    from pyiceberg.catalog import load_catalog

    return load_catalog(catalog).load_table(name)


def _open_table(location: str) -> Table:
    from pyiceberg.table import StaticTable

    file = location if _is_metadata(location) else _newest_metadata(location)
    return StaticTable.from_metadata(file, _store_options())


def _store_options() -> dict[str, str]:
    """Return the options of an object store that pyiceberg does not take from the environment, as deltalake does."""
    region = os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    settings = {"s3.endpoint": os.environ.get("AWS_ENDPOINT_URL"), "s3.region": region}
    return {name: value for name, value in settings.items() if value}


def _is_metadata(location: str) -> bool:
    return _METADATA.fullmatch(location.rpartition("/")[2]) is not None


def _newest_metadata(location: str) -> str:
    """Return the metadata file of the highest number. Raises SourceError if there is none, or are several."""
    from pyarrow import fs
    from pyiceberg.io.pyarrow import PyArrowFileIO

    scheme, account, folder = PyArrowFileIO.parse_location(location)
    files = PyArrowFileIO(_store_options()).fs_by_scheme(scheme, account)
    infos = files.get_file_info(fs.FileSelector(f"{folder}/metadata", allow_not_found=True))
    numbers = {
        info.base_name: int(name[1]) for info in infos if (name := _METADATA.fullmatch(info.base_name))
    }
    newest = [name for name, number in numbers.items() if number == max(numbers.values())]
    if not newest:
        raise SourceError(
            f"there is no Iceberg table at {location}",
            hint="name the folder that has metadata/*.metadata.json in it, or a table of a catalog:"
            " iceberg:namespace.table?catalog=NAME",
        )
    if len(newest) > 1:
        raise SourceError(
            f"{location} has {len(newest)} metadata files of its highest number, as after a failed commit",
            hint=f"name one, such as {min(newest)}, or the table in its catalog",
        )
    return f"{location}/metadata/{newest[0]}"


def _known_snapshots(table: Table) -> str:
    latest = [str(snapshot.snapshot_id) for snapshot in table.snapshots()[-3:]]
    return f"the latest are {', '.join(latest)}" if latest else "the table has none"


def _unreadable_error(location: str, error: Exception) -> SourceError:
    what = " ".join(str(error).split()) or repr(error)
    return SourceError(f"{location} cannot be read: {what[:200]}")
