"""Settings of jobs on Kubernetes and their sources.

Later ones win: defaults, the configuration file and its profile, WITH of the statement, the command line. Mappings,
such as labels, are merged key by key. The table of all settings is `analysis.settings.kubernetes`.

    namespace = "team-a"            # of every job

    [gpu]                           # a profile: --on kubernetes:gpu
    worker_gpu = 1
    worker_node_selector = { pool = "gpu" }
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from edl.data.server_url import config_folder
from edl.errors import SemanticError, SQLFlowError, did_you_mean, raise_all
from sqlflow_edl.analysis.settings import values
from sqlflow_edl.analysis.settings.attribute_dictionary import PLACE, AttributeRow, Dictionary, check_plain
from sqlflow_edl.analysis.settings.kubernetes import KUBERNETES
from sqlflow_edl.analysis.settings.values import Setting
from sqlflow_edl.syntax import ast

Values = Mapping[str, Setting]  # by name, without the prefix of WITH

ROWS = {row.name.removeprefix(PLACE): row for row in KUBERNETES}
FILE = "kubernetes.toml"
NAME = "kubernetes"  # of the backend


@dataclass(frozen=True, slots=True)
class KubernetesSettings:
    """Settings of one job. Settings without a value are empty."""

    values: Values

    def text(self, name: str) -> str:
        value = self.values[name]
        return "" if value is None else str(value)

    def number(self, name: str) -> float:
        return float(self.values[name] or 0)  # type: ignore[arg-type]

    def true(self, name: str) -> bool:
        return self.values[name] is True

    def whole(self, name: str) -> int:
        return int(self.number(name))

    def texts(self, name: str) -> list[str]:
        value = self.values[name]
        return [str(item) for item in value] if isinstance(value, tuple) else []

    def with_image(self, image: str) -> KubernetesSettings:
        """Return the settings with an image in place of theirs; without one, these."""
        return replace(self, values={**self.values, "image": image}) if image else self

    @property
    def own_image(self) -> str:
        """Name of the image. Raises SemanticError if that is the stock image, which belongs to no registry."""
        image = self.text("image")
        if not image or image == ROWS["image"].default:
            raise SemanticError(
                "an image that is built needs a name", hint="--image REGISTRY/NAME:TAG, where nodes pull it"
            )
        return image

    def pairs(self, name: str) -> dict[str, str]:
        return _split(self.values[name])


@dataclass(frozen=True, slots=True)
class Configuration:
    """Settings for all statements: from the file, and from the command line."""

    file: Values = field(default_factory=dict)
    command: Values = field(default_factory=dict)

    def settings(self, attributes: Iterable[ast.Attribute] = ()) -> KubernetesSettings:
        """Return the settings of a job. Raises SQLFlowError with the source span if one is wrong.

        attributes: of its statement.
        """
        errors: list[SQLFlowError] = []
        place_attributes = [
            attribute for attribute in attributes if attribute.key.casefold().startswith(PLACE)
        ]
        resolved = Dictionary(KUBERNETES).resolve(place_attributes, errors, [])
        raise_all(errors)
        in_with = {
            name.removeprefix(PLACE): resolved_attribute.value
            for name, resolved_attribute in resolved.items()
        }
        result: dict[str, Setting] = {name: row.default for name, row in ROWS.items()}
        for layer in (self.file, in_with, self.command):
            result |= {name: _override_setting(name, result[name], value) for name, value in layer.items()}
        return KubernetesSettings(result)


def read_configuration(
    profile: str = "", file: Path | None = None, pairs: Iterable[tuple[str, str]] = ()
) -> Configuration:
    """Return the configuration of a file, by default the user's, and of name=value of the command line.

    Raises SemanticError if the file cannot be read or lacks the profile, or a setting is unknown or wrong.
    """
    return Configuration(_of_file(profile, file), dict(_of_command(*pair) for pair in pairs))


def place(on: str, settings: Mapping[str, str]) -> Configuration | None:
    """Return the configuration of `kubernetes` or `kubernetes:PROFILE`; None for an empty name, this machine."""
    if not on and not settings:
        return None
    name, colon, profile = on.partition(":")
    if name != NAME or (colon and not profile):
        raise SemanticError(f"jobs cannot run on {on!r}", hint=f"{NAME}, or {NAME}:PROFILE")
    return read_configuration(profile, pairs=settings.items())


def _override_setting(name: str, before: Setting, value: Setting) -> Setting:
    if ROWS[name].type != "pairs":
        return value
    return values.pairs({**_split(before), **_split(value)})


def _split(setting: Setting) -> dict[str, str]:
    parts = (str(item).partition("=") for item in (setting if isinstance(setting, tuple) else ()))
    return {name: value for name, _, value in parts}


# The command line ------------------------------------------------------------------------------------------


def _of_command(name: str, text: str) -> tuple[str, Setting]:
    try:
        row = _row(name, ROWS)
        return name, check_plain(row, _read_setting(row, text))
    except SemanticError as error:
        raise SemanticError(f"{name}={text}: {error.message}", hint=error.hint) from None


def _read_setting(row: AttributeRow, text: str) -> Setting:
    """Return a number if the setting is one."""
    if row.type in ("integer", "number"):
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
    return text


# The file --------------------------------------------------------------------------------------------------


def _of_file(profile: str, file: Path | None) -> dict[str, Setting]:
    path = file or config_folder() / FILE
    tables = _tables(path, needed=bool(file or profile))
    profiles = {name: table for name, table in tables.items() if name not in ROWS and isinstance(table, dict)}
    if profile and profile not in profiles:
        raise SemanticError(
            f"{path} has no profile {profile}",
            hint=did_you_mean(profile, profiles) or f"a profile begins with [{profile}]",
        )
    shared = {name: value for name, value in tables.items() if name not in profiles}
    result = _check_table(shared, str(path), path.parent)
    for name, value in _check_table(profiles.get(profile, {}), f"{path}, [{profile}]", path.parent).items():
        result[name] = _override_setting(name, result.get(name), value)
    return result


def _tables(path: Path, *, needed: bool) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if needed:
            raise SemanticError(f"there is no file {path}", hint="it holds settings and profiles") from None
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise SemanticError(f"cannot read {path}: {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise SemanticError(
            f"{path} is not valid TOML: {error}", hint='a setting looks like image = "…"'
        ) from None


def _check_table(table: Mapping[str, Any], place: str, folder: Path) -> dict[str, Setting]:
    result: dict[str, Setting] = {}
    for name, value in table.items():
        try:
            row = _row(name, ROWS)
            result[name] = check_plain(row, _to_setting(row, value))
        except SemanticError as error:
            raise SemanticError(f"{place}: {error.message}", hint=error.hint) from None
    if "pod_template" in result:
        result["pod_template"] = str(folder / str(result["pod_template"]))
    return result


def _to_setting(row: AttributeRow, value: Any) -> Setting:
    """Convert a value of TOML to a setting, or return None if it is none."""
    if isinstance(value, dict):
        return values.pairs({name: _to_setting(row, item) for name, item in value.items()})
    if isinstance(value, list):
        return tuple(value) if all(isinstance(item, str | int | float) for item in value) else None
    return value if isinstance(value, str | int | float) else None


def _row(name: str, rows: Mapping[str, AttributeRow]) -> AttributeRow:
    if name not in rows:
        raise SemanticError(
            f"unknown setting {name}",
            hint=did_you_mean(name, rows) or "sqlflow help attributes lists all settings",
        )
    return rows[name]
