"""Rendering of Kubernetes objects from templates, and as YAML for users.

A value enters a template as JSON, which is valid YAML too, so that its content cannot change the structure.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable
from importlib import resources
from typing import Any

import jinja2

from edl.errors import ClusterError
from edl.installation import install_extras

Object = dict[str, Any]

_OTHER_LINE_ENDS = re.compile("[\r\x85\u2028\u2029]")  # not preserved in a YAML block
_BEYOND_ASCII = re.compile(r"[^\x20-\x7e]")


def render(template: str, **values: object) -> Object:
    """Render the object of that template with the values."""
    [document] = yaml_of(_environment().get_template(f"{template}.yaml.jinja").render(values))
    if not isinstance(document, dict):
        raise TypeError(f"the template {template} makes no object")
    return document


def yaml_of(text: str) -> list[Any]:
    """Return the documents of the text, without empty ones. Raises ClusterError if it is no valid YAML."""
    yaml = _yaml()
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast, if installed
    try:
        return [document for document in yaml.load_all(text, loader) if document is not None]
    except yaml.YAMLError as error:
        raise ClusterError(f"this is not valid YAML: {error}") from None


def format_yaml(objects: Iterable[Object]) -> str:
    """Return the objects as YAML, texts of several lines as blocks, with `---` between the objects."""
    yaml = _yaml()

    class Dumper(yaml.SafeDumper):  # type: ignore[name-defined, misc]
        def ignore_aliases(self, data: object) -> bool:
            return True

    def text(dumper: Any, value: str) -> Any:
        style = "|" if "\n" in value and not _OTHER_LINE_ENDS.search(value) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)

    Dumper.add_representer(str, text)
    documents = (
        yaml.dump(obj, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=110) for obj in objects
    )
    return "---\n".join(documents)


@functools.cache
def _environment() -> jinja2.Environment:
    folder = resources.files("sqlflow_edl.codegen_templates") / "kubernetes"
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda name: (folder / name).read_text(encoding="utf-8")),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 - the output is YAML; all values enter it through `tojson`
    )
    environment.policies["json.dumps_function"] = _json
    return environment


def _json(value: object, **_: object) -> str:
    """Encode as ASCII JSON with escapes that mean the same in YAML, which has no surrogate pairs."""

    def escaped(match: re.Match[str]) -> str:
        code = ord(match[0])
        return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"

    return _BEYOND_ASCII.sub(escaped, json.dumps(value, ensure_ascii=False))


def _yaml() -> Any:
    try:
        import yaml
    except ModuleNotFoundError:
        raise ClusterError("the package PyYAML is not installed", hint=install_extras("kubernetes")) from None
    return yaml
