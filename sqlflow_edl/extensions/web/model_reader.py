"""Models as the pages show them, read from the registry when they may have changed."""

from __future__ import annotations

import tempfile
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from edl.errors import SemanticError, SourceError, did_you_mean
from edl.models.archive import Archive, read_archive
from edl.models.registry.base import no_version
from edl.models.registry.model_store import Fingerprint, ModelStore
from edl.models.registry.records import ModelVersion, split_reference
from sqlflow_edl.reports.description import describe
from sqlflow_edl.reports.importances import Shares, shares
from sqlflow_edl.reports.reasons import usual_values

MOST = 64  # models in memory

Sections = Mapping[str, Sequence[tuple[str, str]]]


@dataclass(frozen=True)
class ModelDetails:
    """One version of a model. archive: without weights and program; None for a failed training. sections: as in
    DESCRIBE MODEL, each with names and values. versions: of the same name, the latest first. usual: usual values of
    the columns, as text.
    """

    version: ModelVersion
    archive: Archive | None
    sections: Sections
    importances: Shares | None
    versions: tuple[ModelVersion, ...]
    usual: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Read:
    """Parts of a version's archive that the pages show."""

    archive: Archive
    importances: Shares | None
    sections: Sections
    usual: Mapping[str, str]


@dataclass(frozen=True)
class ModelListing:
    """Versions in the registry, by name and number. problem: the reason why they are of an earlier time."""

    versions: tuple[ModelVersion, ...] = ()
    url: str = ""
    read: datetime | None = None
    problem: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(version.name for version in self.versions))

    def of(self, name: str) -> tuple[ModelVersion, ...]:
        """Return the versions of a model, the latest first."""
        return tuple(version for version in reversed(self.versions) if version.name == name)

    def latest(self) -> list[ModelVersion]:
        """Return the version of each name that its name means, the last trained first."""
        newest = [
            next((version for version in self.of(name) if version.current), self.of(name)[0])
            for name in self.names
        ]
        return sorted(newest, key=lambda version: version.created, reverse=True)

    def find(self, reference: str) -> ModelVersion:
        """Return the version of `name` or `name@version`. Raises SemanticError that names the nearest model."""
        name, selector = split_reference(reference)
        versions = self.of(name)
        if selector is None and versions:
            return next((version for version in versions if version.current), versions[0])
        for version in versions:
            if version.is_selected(selector):
                return version
        if versions:
            raise no_version(name, selector, versions)
        raise SemanticError(f"there is no model {reference}", hint=did_you_mean(name, self.names))


class ModelReader:
    """Reader of a store, for several threads. A version never changes, so it is read once."""

    def __init__(self, store: ModelStore) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._listing = ModelListing()
        self._seen: Fingerprint | None = None
        self._archives: OrderedDict[str, _Read] = OrderedDict()

    def listing(self) -> ModelListing:
        """Return the versions: the last ones read if the registry cannot be read now, as while a training has it open.

        Raises SourceError if none have been read before.
        """
        with self._lock:
            try:
                state = self.store.fingerprint()
                if state is not None and state == self._seen and not self._listing.problem:
                    return self._listing
                with self.store.open() as registry:
                    versions, url = tuple(registry.list()), registry.url
            except SourceError as error:
                if self._listing.read is None:
                    raise
                self._listing = replace(self._listing, problem=error.message)
            else:
                self._seen = state
                self._listing = ModelListing(versions, url, datetime.now(UTC))
            return self._listing

    def model(self, reference: str) -> ModelDetails:
        """Return a version with its archive. Raises SemanticError if there is none, SourceError if it cannot be read,
        SpecError if it is damaged.
        """
        listing = self.listing()
        version = listing.find(reference)
        versions = listing.of(version.name)
        if version.state != "ready":
            return ModelDetails(version, None, _sections(describe(version, None)), None, versions)
        with self._lock:
            if version.archive not in self._archives:
                self._archives[version.archive] = self._read(version)
                while len(self._archives) > MOST:
                    self._archives.popitem(last=False)
            self._archives.move_to_end(version.archive)
            read = self._archives[version.archive]
        sections = {**read.sections}
        current = f"{version.version}{', current' if version.current else ''}"
        sections["model"] = [
            (name, current if name == "version" else value) for name, value in sections["model"]
        ]
        return ModelDetails(version, read.archive, sections, read.importances, versions, read.usual)

    def _read(self, version: ModelVersion) -> _Read:
        with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            file = Path(folder) / "model.zip"
            with self.store.open() as registry:
                registry.load(version.reference, file)
            archive = read_archive(file)
            sections = _sections(describe(version, archive))
            return _Read(replace(archive, program={}), shares(archive), sections, usual_values(archive))


def _sections(rows: Sequence[tuple[str, str, str]]) -> dict[str, list[tuple[str, str]]]:
    sections: dict[str, list[tuple[str, str]]] = {}
    for section, name, value in rows:
        sections.setdefault(section, []).append((name, value))
    return sections
