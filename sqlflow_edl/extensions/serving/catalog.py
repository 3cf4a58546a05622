"""Models that a server has loaded, and their replacement when a newer version is in the registry.

The registry is open only while it is read, and read again only when it may have changed. A model is replaced in one
step: requests that have begun end on the version that they began with.
"""

from __future__ import annotations

import tempfile
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from edl.errors import SemanticError, SQLFlowError, did_you_mean
from edl.models.registry.base import Registry
from edl.models.registry.model_store import Fingerprint, ModelStore
from edl.models.registry.records import ModelVersion, split_reference
from edl.spec import NO_FRAMEWORK
from sqlflow_edl.extensions.serving.model import ServedModel, load_model

MOST_OLD = 4  # versions in memory besides the current ones
Log = Callable[[str], None]


@dataclass(frozen=True)
class Loaded:
    """Version of a model in the registry, and the same in memory."""

    version: ModelVersion
    model: ServedModel


class ModelCatalog:
    """Models of a server by name. `look` may run in a thread; all else belongs to the event loop.

    wanted: names, or name@version for a version that is never replaced, or name@tag; none are all models of the
    registry.
    """

    def __init__(
        self, store: ModelStore, references: Sequence[str] = (), log: Log = lambda text: None
    ) -> None:
        self._store = store
        self._pins = dict(map(split_reference, references))
        self._log = log
        self._seen: Fingerprint | None = None
        self._refused: set[str] = set()  # versions that could not be loaded
        self._old: OrderedDict[str, Loaded] = OrderedDict()
        self.versions: dict[str, list[ModelVersion]] = {}
        self.loaded: dict[str, Loaded] = {}
        self.failures = 0

    def start(self) -> None:
        """Load the models. Raises SQLFlowError if there are none, or one that is wanted by name cannot be loaded."""
        with self._store.open() as registry:
            for name, selector in self._pins.items():
                registry.find(name if selector is None else f"{name}@{selector}")
        news = self.look()
        if news is not None:
            self.take(*news)
        if missing := [name for name in self._pins if name not in self.loaded]:
            raise SemanticError(f"model {missing[0]} cannot be served; the reason is above")
        if not self.loaded:
            raise SemanticError(
                "there is no model to serve", hint="train one: SELECT … TO TRAIN … INTO my_model"
            )

    def look(self) -> tuple[dict[str, list[ModelVersion]], dict[str, Loaded]] | None:
        """Read the registry and load what is new in it; return all versions and the new models.

        None if nothing can have changed. Raises SQLFlowError if the registry cannot be read.
        """
        state = self._store.fingerprint()
        if state is not None and state == self._seen:
            return None
        with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            with self._store.open() as registry:
                versions = self._list_versions(registry)
                current_versions = [
                    version for name in versions if (version := self._current(name, versions[name]))
                ]
                changed = [version for version in current_versions if self._is_new(version)]
                files = [_fetch_archive(registry, version, Path(folder), self._refuse) for version in changed]
            new = {
                version.name: loaded
                for version, file in zip(changed, files, strict=True)
                if file is not None and (loaded := self._load(version, file))
            }
        self._seen = state
        return versions, new

    def take(self, versions: dict[str, list[ModelVersion]], new: dict[str, Loaded]) -> None:
        """Serve what `look` found, and nothing that is dropped."""
        for name, loaded in new.items():
            before = self.loaded.get(name)
            if before is not None:
                self.keep(before)
            verb = "replaces" if before is not None else "is loaded"
            self._log(
                f"{loaded.version.reference} {verb}{f' version {before.version.version}' if before else ''}"
            )
        self.versions = versions
        self.loaded = {name: model for name, model in {**self.loaded, **new}.items() if name in versions}
        archives = {version.archive for version in chain.from_iterable(versions.values())}
        for reference, old in list(self._old.items()):
            if old.version.archive not in archives:
                del self._old[reference]

    def find(self, name: str, number: int | None = None) -> Loaded | None:
        """Return the model in memory, or None if that version must be loaded by `load_version`.

        Raises SemanticError if there is no such model.
        """
        current = self.loaded.get(name)
        if current is None and name not in self.versions:
            raise SemanticError(f"there is no model {name}", hint=did_you_mean(name, self.loaded))
        if current is not None and number in (None, current.version.version):
            return current
        self._version(name, number)
        reference = f"{name}@{number}"
        if reference in self._old:
            self._old.move_to_end(reference)
        return self._old.get(reference)

    def load_version(self, name: str, number: int) -> Loaded:
        """Load a version that is not the current one; `keep` it. Raises SQLFlowError if that is impossible."""
        version = self._version(name, number)
        with tempfile.TemporaryDirectory(prefix="sqlflow-edl-") as folder:
            file = Path(folder) / "model.zip"
            with self._store.open() as registry:
                registry.load(version.reference, file)
            return Loaded(version, load_model(file, version.reference))

    def in_memory(self) -> list[Loaded]:
        """Return the current models, and the old versions that are kept."""
        return [*self.loaded.values(), *self._old.values()]

    def keep(self, loaded: Loaded) -> None:
        """Keep an old version in memory, instead of the one that was not used for longest."""
        self._old[loaded.version.reference] = loaded
        while len(self._old) > MOST_OLD:
            self._old.popitem(last=False)

    def _version(self, name: str, number: int | None) -> ModelVersion:
        """Return a version that can be loaded. Raises SemanticError if there is none."""
        version = next(
            (candidate for candidate in self.versions.get(name, ()) if candidate.version == number), None
        )
        if version is None:
            numbers = ", ".join(str(candidate.version) for candidate in self.versions.get(name, ()))
            raise SemanticError(
                f"model {name} has no version {number}"
                if number is not None
                else f"model {name} is not loaded",
                hint=f"known: {numbers}",
            )
        return version

    def _list_versions(self, registry: Registry) -> dict[str, list[ModelVersion]]:
        """Return the ready versions of the models to be served, by name."""
        by_name: dict[str, list[ModelVersion]] = {}
        for version in registry.list():
            predicts = version.record.framework != NO_FRAMEWORK
            is_wanted = version.name in self._pins if self._pins else predicts
            if version.state == "ready" and is_wanted and version.is_selected(self._pins.get(version.name)):
                by_name.setdefault(version.name, []).append(version)
        return by_name

    def _current(self, name: str, versions: Sequence[ModelVersion]) -> ModelVersion | None:
        pinned = self._pins.get(name)
        return next((version for version in versions if (version.current if pinned is None else True)), None)

    def _is_new(self, version: ModelVersion) -> bool:
        before = self.loaded.get(version.name)
        is_served = before is not None and before.version.archive == version.archive
        return not is_served and version.archive not in self._refused

    def _load(self, version: ModelVersion, file: Path) -> Loaded | None:
        try:
            return Loaded(version, load_model(file, version.reference))
        except SQLFlowError as error:
            self._refuse(version, error)
            return None

    def _refuse(self, version: ModelVersion, error: SQLFlowError) -> None:
        self._refused.add(version.archive)
        self.failures += 1
        self._log(f"{version.reference} cannot be loaded: {error.message}")


def _fetch_archive(
    registry: Registry,
    version: ModelVersion,
    folder: Path,
    refuse: Callable[[ModelVersion, SQLFlowError], None],
) -> Path | None:
    """Return the archive of a version, or None if it is damaged."""
    file = folder / f"{version.archive}.zip"
    try:
        registry.load(version.reference, file)
    except SemanticError as error:  # dropped meanwhile
        refuse(version, error)
        return None
    return file
