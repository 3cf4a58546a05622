"""Tables of Delta Lake as a data source, see `edl.extensions.lakes.lake`."""

from __future__ import annotations

from typing import Any, ClassVar

from edl.errors import SourceError
from edl.extensions.lakes.lake import LakeSource
from edl.installation import install_extras


class DeltaSource(LakeSource):
    """DuckDB database with a version of a Delta table."""

    version_option = "version"
    known_options: ClassVar[tuple[str, ...]] = (version_option,)

    @classmethod
    def _open(cls, location: str, version: int | None, options: dict[str, str]) -> tuple[int, Any]:
        try:
            from deltalake import DeltaTable
            from deltalake.exceptions import DeltaError, TableNotFoundError
        except ImportError:
            raise SourceError("delta:// needs deltalake", hint=install_extras("delta")) from None
        try:
            table = DeltaTable(location)
            if version is not None and version != (latest := table.version()):
                if version > latest:
                    raise SourceError(
                        f"{location} has no version {version}", hint=f"the latest version is {latest}"
                    )
                table.load_as_version(version)
            return table.version(), table.to_pyarrow_dataset()
        except TableNotFoundError:
            raise SourceError(
                f"there is no Delta table at {location}", hint="name the folder that has _delta_log in it"
            ) from None
        except (DeltaError, OSError, ValueError) as error:  # also a feature that deltalake does not read
            raise SourceError(f"{location} cannot be read: {str(error)[:200]}") from None
