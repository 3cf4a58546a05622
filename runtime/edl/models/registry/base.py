"""The registry of models: what every one of them does, wherever it keeps them.

`INTO a.b` is the *name* of a model. Every run adds a version; one version of a name is current: the one that was made
ready last, and when that is dropped, the highest. A version number is never given twice while its name is known, not
after its version was dropped and not by two writers at once. Failed runs are versions too, with their reason.

Models are kept in their data source, or in a store of their own: a folder or an object store. Reading makes nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

from edl.errors import SemanticError, SourceError, SpecError, did_you_mean
from edl.models.registry.records import ModelRecord, ModelVersion, State, check_name, split_reference

Versions = list[ModelVersion]  # named here, because inside Registry `list` is its method

_STALE = timedelta(days=1)  # an upload that took longer was given up


class Registry(ABC):
    """The models of one place. url: of that place, without secrets."""

    def __init__(self, url: str) -> None:
        self.url = url

    # Writing ---------------------------------------------------------------------------------------------

    def save(self, name: str, archive: Path, record: ModelRecord, *, once: str = "") -> int:
        """Keep the archive as a new version of the model, and make it the current one; the version's number.

        once: at most 32 characters that nobody else uses; a call that repeats them changes nothing, however far the
        first has come.
        SemanticError: the name. SourceError: the place. After an error the model is what it was.
        """
        check_name(name)
        self._prepare()
        self._discard_stale(name)
        key = once or secrets.token_hex(16)
        if once and (earlier := self._saved(name, key)):
            return earlier
        version = self._add(name, "saving", record, key=key)
        try:
            size, digest = self._upload(name, version, key, archive)
            self._publish(name, version, size, digest)
        except BaseException:
            with suppress(SourceError):  # what stays is cleaned up by a later save
                self._discard(name, version, key)
            raise
        return version

    def record_failure(self, name: str, record: ModelRecord, reason: str, *, once: str = "") -> int:
        """Keep a run that failed as a version without an archive; the current version stays. Its number.

        once: as in `save`.
        """
        check_name(name)
        self._prepare()
        for found in self._versions(name) if once else ():
            if found.state == "failed" and found.archive == once:
                return found.version
        return self._add(name, "failed", record, key=once, reason=reason)

    @abstractmethod
    def drop(self, reference: str) -> int:
        """Drop a model, or one version of it; how many versions are gone.

        Dropping the current version makes the highest ready one current. SemanticError: there is no such model.
        """

    # Reading ---------------------------------------------------------------------------------------------

    def find(self, reference: str) -> ModelVersion:
        """The version that `name` or `name@version` means. SemanticError: it is unknown, or it failed."""
        found = self.look_up(reference)
        if found.state != "ready":
            raise SemanticError(f"the training of model {found.reference} failed: {found.reason}")
        return found

    def look_up(self, reference: str) -> ModelVersion:
        """As `find`, a failed one too; of a name, the current version, else the last one. SemanticError: unknown."""
        name, version = split_reference(reference)
        versions = self._versions(name)
        if version is None:
            wanted = [found for found in versions if found.current] or versions[-1:]
        else:
            wanted = [found for found in versions if found.version == version]
        if not wanted:
            raise self._unknown(reference)
        return wanted[0]

    def has(self, reference: str) -> bool:
        """Whether there is such a model, or such a version, failed ones included."""
        name, version = split_reference(reference)
        return any(version in (None, found.version) for found in self._versions(name))

    def list(self, like: str | None = None) -> Versions:
        """All versions, ready and failed, by name and number. like: a pattern of SQL's LIKE on the name."""
        return _visible(self._listed(like))

    def load(self, reference: str, to: Path) -> ModelVersion:
        """Write the version's archive to the file `to`, which appears when it is complete and checked.

        SemanticError: see `find`. SpecError: the archive is damaged.
        """
        found = self.find(reference)
        to.parent.mkdir(parents=True, exist_ok=True)
        partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}.partial")
        digest = hashlib.sha256()
        try:
            with partial.open("wb") as file:
                for chunk in self._download(found):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != found.sha256:
                raise SpecError(
                    f"the archive of model {found.reference} is damaged", hint="train the model again"
                )
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)
        return found

    # What a place does in its own way ----------------------------------------------------------------------

    @abstractmethod
    def _prepare(self) -> None:
        """Make what models are kept in, where it is not there. SourceError: something of a user's has its name."""

    @abstractmethod
    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        """A new version; its number is one more than the name ever had."""

    @abstractmethod
    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
        """Write the archive of a version that nobody sees yet; its size and digest."""

    @abstractmethod
    def _publish(self, name: str, version: int, size: int, digest: str) -> None:
        """Make the version ready and the current one. SourceError: it was dropped meanwhile."""

    @abstractmethod
    def _discard(self, name: str, version: int, key: str) -> None:
        """Leave only the number of a version, which is not given again. It may be repeated."""

    @abstractmethod
    def _all_versions(self, name: str) -> Versions:
        """Those of any state, by number."""

    @abstractmethod
    def _listed(self, like: str | None) -> Versions:
        """As `list`, those of other states too."""

    @abstractmethod
    def _download(self, found: ModelVersion) -> Iterator[bytes]:
        """The archive of a version that is ready, as far as it is there."""

    # Steps -----------------------------------------------------------------------------------------------

    def _versions(self, name: str) -> Versions:
        """Versions that a user may see, by number."""
        return _visible(self._all_versions(name))

    def _saved(self, name: str, key: str) -> int:
        """The version that was made ready with this key, 0 if none was; what was begun with it is cleaned up."""
        for found in self._all_versions(name):
            if found.archive == key and found.state == "ready":
                return found.version
            if found.archive == key and found.state == "saving":
                self._discard(name, found.version, key)
        return 0

    def _discard_stale(self, name: str) -> None:
        """Clean up after writers that died in the midst of an upload."""
        before = (datetime.now(UTC) - _STALE).isoformat(timespec="milliseconds")
        for found in self._all_versions(name):
            if found.state == "saving" and found.created < before:
                self._discard(name, found.version, found.archive)

    def _unknown(self, reference: str) -> SemanticError:
        name, version = split_reference(reference)
        numbers = [str(found.version) for found in self._versions(name)]
        if numbers:
            return SemanticError(
                f"model {name} has no version {version}", hint=f"known: {', '.join(numbers)}"
            )
        names = dict.fromkeys(found.name for found in self.list())
        return SemanticError(f"there is no model {name}", hint=did_you_mean(name, names))


def _visible(versions: Versions) -> Versions:
    return [found for found in versions if found.state in ("ready", "failed")]


def foreign(table: str) -> SourceError:
    return SourceError(
        f"the table {table} is not the one that sqlflow-edl keeps its models in",
        hint="rename it; models are kept in a table of that name",
    )


def now() -> str:
    """The time as records keep it: UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
