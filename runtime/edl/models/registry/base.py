"""Model registry: the contract and the steps that all storages share.

`INTO a.b` is the *name* of a model. Every run adds a version; one version of a name is current: the one published
or activated last, and after that is dropped, the highest. A version number is never reused while its name is known,
neither after its version was dropped nor by two concurrent writers. Failed runs are versions too, with their reason.

Models are stored in their data source, or in a store of their own: a folder or an object store. Reading creates
nothing.
"""

from __future__ import annotations

import hashlib
import secrets
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from edl.errors import Advice, SemanticError, SourceError, SpecError, did_you_mean
from edl.models.registry.records import (
    ModelRecord,
    ModelVersion,
    Selector,
    State,
    check_name,
    check_tag,
    split_reference,
)

Versions = list[ModelVersion]  # defined here, because inside Registry `list` is its method

_STALE = timedelta(days=1)  # older uploads are abandoned


class Registry(ABC):
    """Models of one storage location. `url` is its URL, without secrets."""

    def __init__(self, url: str) -> None:
        self.url = url

    # Writing ---------------------------------------------------------------------------------------------

    def save(
        self, name: str, archive: Path, record: ModelRecord, *, once: str = "", current: bool = True
    ) -> int:
        """Store the archive as a new version of the model and make it `current`. Return the version's number.

        `once` is a unique key of at most 32 characters, which makes repeated calls idempotent, however far the first
        one came. Raises SemanticError for an invalid name, SourceError for errors of the storage. After an error the
        model is unchanged.
        """
        check_name(name)
        self._prepare()
        self._discard_stale(name)
        key = once or secrets.token_hex(16)
        if once and (earlier := self._find_published(name, key)):
            return earlier
        version = self._add(name, "saving", record, key=key)
        try:
            size, digest = self._upload(name, version, key, archive)
            self._publish(name, version, size, digest, current=current)
        except BaseException:
            with suppress(SourceError):  # a later save cleans up the rest
                self._discard(name, version, key)
            raise
        return version

    def check_save(self, name: str) -> None:
        """Raise SemanticError for an invalid name, SourceError if this account may not save models.

        Call it before the work. It creates the storage if there is none.
        """
        check_name(name)
        self._prepare()
        self._try_writing()

    def check_rights(self, name: str) -> None:
        """Raise as `check_save` does, as far as it shows without a change; nothing is created."""
        check_name(name)

    def record_failure(self, name: str, record: ModelRecord, reason: str, *, once: str = "") -> int:
        """Store a failed run as a version without an archive; the current version stays. Return its number.

        `once`: as in `save`.
        """
        check_name(name)
        self._prepare()
        for earlier in self._versions(name) if once else ():
            if earlier.state == "failed" and earlier.archive == once:
                return earlier.version
        return self._add(name, "failed", record, key=once, reason=reason)

    def activate(self, reference: str) -> ModelVersion:
        """Make the ready version `name@version` the current one of its name. Return it.

        Raises SemanticError as `find` does.
        """
        version = self.find(reference)
        if not version.current:
            self._activate(version.name, version.version)
        return self.find(version.reference)

    def tag(self, reference: str, tag: str) -> ModelVersion | None:
        """Make `name@tag` mean the ready version that the reference means. Return the version it meant before, or None.

        Raises SemanticError as `find` does, or for an invalid tag.
        """
        check_tag(tag)
        version = self.find(reference)
        before = next((other for other in self._versions(version.name) if tag in other.tags), None)
        self._tag(version.name, version.version, tag)
        return before

    def untag(self, name: str, tag: str) -> ModelVersion:
        """Remove the tag and return the version that it meant. Raises SemanticError if there is none."""
        version = self.look_up(f"{name}@{tag}")
        self._untag(version, tag)
        return version

    def describe(self, name: str, facts: Mapping[str, str]) -> None:
        """Keep facts for people with a model, such as a description. An empty text removes a fact; others stay.

        Raises SemanticError if there is no such model.
        """
        if not self._versions(name):
            raise self._unknown(name)
        self._prepare()
        self._describe(name, facts)

    def facts(self, name: str) -> dict[str, str]:
        """Return the facts that are kept with the model, by name."""
        return dict(sorted(self._facts(name).items()))

    def rename(self, name: str, new_name: str) -> int:
        """Give a model another name: all its versions, tags and facts, at once. Return the number of versions.

        Their numbers stay. Raises SemanticError if there is no such model, for an invalid name, and for the name of
        another model or of a training that is being saved.
        """
        check_name(new_name)
        if split_reference(name)[1] is not None:
            raise SemanticError(f"{name} is a version, and a model is renamed with all its versions")
        versions = self._versions(name)
        if not versions:
            raise self._unknown(name)
        if name == new_name or any(other.state != "dropped" for other in self._all_versions(new_name)):
            raise self._name_taken_error(new_name)
        self._prepare()
        self._discard_stale(name)
        if any(version.state == "saving" for version in self._all_versions(name)):
            raise SemanticError(
                f"a version of {name} is being saved", hint="rename it when its training has ended"
            )
        self._rename(name, new_name)
        return len(versions)

    @abstractmethod
    def drop(self, reference: str) -> int:
        """Drop a model, or one version of it. Return the number of dropped versions.

        Dropping the current version makes the highest ready one current. Raises SemanticError if there is no such
        model.
        """

    # Reading ---------------------------------------------------------------------------------------------

    def find(self, reference: str) -> ModelVersion:
        """Return the version named by `name`, `name@version` or `name@tag`.

        Raises SemanticError if it is unknown or failed.
        """
        version = self.look_up(reference)
        if version.state != "ready":
            raise SemanticError(f"the training of model {version.reference} failed: {version.reason}")
        return version

    def look_up(self, reference: str) -> ModelVersion:
        """Return the version like `find`, including failed ones. Raises SemanticError if it is unknown.

        A name means its current version, or else the last one.
        """
        name, selector = split_reference(reference)
        versions = self._versions(name)
        if selector is None:
            matches = [version for version in versions if version.current] or versions[-1:]
        else:
            matches = [version for version in versions if version.is_selected(selector)]
        if not matches:
            raise self._unknown(reference)
        return matches[0]

    def has(self, reference: str) -> bool:
        """Return True if there is such a model or version, including failed ones."""
        name, selector = split_reference(reference)
        return any(version.is_selected(selector) for version in self._versions(name))

    def version_with_key(self, name: str, key: str) -> ModelVersion | None:
        """Return the version, ready or failed, that was stored `once` with this key, or None.

        A training that failed and was resumed has both: the ready one counts.
        """
        versions = [version for version in self._versions(name) if version.archive == key]
        return max(versions, key=lambda version: version.state == "ready", default=None)

    def list(self, like: str | None = None) -> Versions:
        """List all versions, ready and failed, by name and number. `like` is a SQL LIKE pattern of the name."""
        return _visible(self._list_versions(like))

    def load(self, reference: str, to: Path) -> ModelVersion:
        """Write the version's archive to the file `to`. It appears once it is complete and checked.

        Raises SemanticError as `find` does, SpecError if the archive is damaged.
        """
        version = self.find(reference)
        to.parent.mkdir(parents=True, exist_ok=True)
        partial = to.with_name(f".{to.name}.{secrets.token_hex(4)}.partial")
        digest = hashlib.sha256()
        try:
            with partial.open("wb") as file:
                for chunk in self._download(version):
                    digest.update(chunk)
                    file.write(chunk)
            if digest.hexdigest() != version.sha256:
                raise SpecError(
                    f"the archive of model {version.reference} is damaged", hint="train the model again"
                )
            partial.replace(to)
        finally:
            partial.unlink(missing_ok=True)
        return version

    @contextmanager
    def fetch(self, reference: str) -> Iterator[tuple[ModelVersion, Path]]:
        """Yield the version and its archive, a temporary file; see `load`."""
        with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            file = Path(folder) / "model.zip"
            yield self.load(reference, file), file

    # Steps specific to a storage ---------------------------------------------------------------------------

    @abstractmethod
    def _prepare(self) -> None:
        """Create the storage if it does not exist. Raises SourceError if a user's object has its name."""

    @abstractmethod
    def _try_writing(self) -> None:
        """Raise SourceError if the account may not write, as far as that shows without a new version."""

    @abstractmethod
    def _add(self, name: str, state: State, record: ModelRecord, *, key: str = "", reason: str = "") -> int:
        """Add a version. Return its number, one more than the name's highest ever."""

    @abstractmethod
    def _upload(self, name: str, version: int, key: str, archive: Path) -> tuple[int, str]:
        """Write the archive of a version that is not visible yet. Return its size and digest."""

    @abstractmethod
    def _publish(self, name: str, version: int, size: int, digest: str, *, current: bool) -> None:
        """Make the version ready, and `current`. Raises SourceError if it was dropped meanwhile."""

    @abstractmethod
    def _activate(self, name: str, version: int) -> None:
        """Make a ready version current. Raises SemanticError if it was dropped meanwhile."""

    @abstractmethod
    def _tag(self, name: str, version: int, tag: str) -> None:
        """Make the tag mean the version, and no other. Raises SemanticError if it was dropped meanwhile."""

    @abstractmethod
    def _untag(self, version: ModelVersion, tag: str) -> None:
        """Remove the tag of the version. Idempotent."""

    @abstractmethod
    def _describe(self, name: str, facts: Mapping[str, str]) -> None:
        """Set facts of the model, at once; an empty text removes one."""

    @abstractmethod
    def _facts(self, name: str) -> dict[str, str]:
        """Return the facts of the model; empty if it has none."""

    @abstractmethod
    def _rename(self, name: str, new_name: str) -> None:
        """Give all versions and tags another name, at once, which has no versions that users may see.

        Raises SemanticError if another writer has renamed or dropped the model meanwhile, or taken the new name.
        """

    @abstractmethod
    def _discard(self, name: str, version: int, key: str) -> None:
        """Delete all but the number of a version. The number is not reused. Idempotent."""

    @abstractmethod
    def _all_versions(self, name: str) -> Versions:
        """Return the versions in any state, by number."""

    @abstractmethod
    def _list_versions(self, like: str | None) -> Versions:
        """Return the versions like `list`, in any state."""

    @abstractmethod
    def _download(self, version: ModelVersion) -> Iterator[bytes]:
        """Yield the archive of a ready version, as far as it exists."""

    # Steps -----------------------------------------------------------------------------------------------

    def _versions(self, name: str) -> Versions:
        """Return the versions that users may see, by number."""
        return _visible(self._all_versions(name))

    def _find_published(self, name: str, key: str) -> int:
        """Return the version published with this key, or 0 if there is none; discard unfinished ones with this key."""
        for other in self._all_versions(name):
            if other.archive == key and other.state == "ready":
                return other.version
            if other.archive == key and other.state == "saving":
                self._discard(name, other.version, key)
        return 0

    def _discard_stale(self, name: str) -> None:
        """Discard uploads of writers that died."""
        before = (datetime.now(UTC) - _STALE).isoformat(timespec="milliseconds")
        for version in self._all_versions(name):
            if version.state == "saving" and version.created < before:
                self._discard(name, version.version, version.archive)

    def _name_taken_error(self, name: str) -> SemanticError:
        return SemanticError(
            f"there is a model {name} already", hint=f"take another name, or DROP MODEL {name} first"
        )

    def _unknown(self, reference: str) -> SemanticError:
        name, selector = split_reference(reference)
        if versions := self._versions(name):
            return no_version(name, selector, versions)
        names = dict.fromkeys(version.name for version in self.list())
        return UnknownModelError(name, [*names])


class UnknownModelError(SemanticError):
    """The registry has no model of the name. known: the names that it has."""

    def __init__(self, name: str, names: Sequence[str]) -> None:
        super().__init__(f"there is no model {name}", hint=did_you_mean(name, names))
        self.name, self.known = name, names


def _visible(versions: Versions) -> Versions:
    return [version for version in versions if version.state in ("ready", "failed")]


def no_version(name: str, selector: Selector, versions: Iterable[ModelVersion]) -> SemanticError:
    """Make the error for a version or a tag that the model does not have. versions: those it has, of any number."""
    versions = list(versions)
    if not isinstance(selector, str):
        numbers = ", ".join(str(version.version) for version in versions)
        return SemanticError(
            f"model {name} has no version {selector}",
            hint=Advice(f"known: {numbers}", f"{name}@{versions[-1].version}"),
        )
    tags = sorted(tag for version in versions for tag in version.tags)
    how = f"SET MODEL {name} TAG {selector} {versions[-1].version} gives the version that tag"
    return SemanticError(
        f"model {name} has no tag {selector}", hint=did_you_mean(selector, tags) if tags else how
    )


def foreign_error(table: str) -> SourceError:
    return SourceError(
        f"the table {table} was not created by sqlflow-edl",
        hint="rename it; models are stored in a table of that name",
    )


def now() -> str:
    """Return the time in the format of records: UTC in ISO 8601."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")
