"""Images for jobs on Kubernetes, built and pushed with docker, podman or buildah.

The stock image runs every job of the package's own models. A folder that `init` made adds packages and models of the
user's own to it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import resources
from pathlib import Path

from edl.build import read_build
from edl.errors import ClusterError, SemanticError
from edl.installation import VERSION
from sqlflow_edl.backends.images.registry import LABEL, label_of

BUILDERS = ("docker", "podman", "buildah")  # in order of preference
STOCK = f"sqlflow-edl:{VERSION}"
FILES = ("Dockerfile", "Containerfile", "runtime/Dockerfile")  # the last one of a checkout of this project
MODELS = "models"  # the folder of a user's modules

# command that succeeds if the builder's daemon runs
_ASKED = {"docker": ("version", "--format", "{{.Server.Version}}")}
_TEMPLATES = {"Dockerfile": "dockerfile.jinja", "requirements.txt": "requirements.jinja"}
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = re.compile(
    rf"(?:[A-Za-z0-9.-]+(?::\d+)?/)?{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?"
)
_SECS = 30.0  # limit for that command


@dataclass(frozen=True, slots=True)
class Builder:
    """Image builder: one of BUILDERS, with its path."""

    name: str
    path: str

    def build(
        self,
        folder: Path,
        tag: str,
        *,
        file: Path | None = None,
        target: str = "",
        arguments: Mapping[str, str] | None = None,
    ) -> int:
        """Build the image from the folder, which is the build context; return the builder's exit code.

        file: the Dockerfile, by default the folder's own. target: a stage of it. Raises SemanticError if the tag is
        invalid or the Dockerfile is missing.
        """
        check_tag(tag)
        command = ["build", "--file", str(file or _file_of(folder)), "--tag", tag]
        command += ["--target", target] if target else []
        if (
            code := read_build(folder / "runtime" / "edl")
        ) is not None:  # else the base of the image has a label
            command += ["--label", f"{LABEL}={label_of(code)}"]
        for name, value in (arguments or {}).items():
            command += ["--build-arg", f"{name}={value}"]
        return self._run([*command, str(folder)])

    def push(self, tag: str) -> int:
        """Push the image to its registry; return the builder's exit code. Raises SemanticError for a bad tag."""
        check_tag(tag)
        return self._run(["push", tag])

    def why_not(self) -> str:
        """Return the error of its daemon if that does not answer; empty if it does, or none is needed."""
        if self.name not in _ASKED:
            return ""
        try:
            asked = subprocess.run(  # noqa: S603
                [self.path, *_ASKED[self.name]], capture_output=True, text=True, timeout=_SECS, check=False
            )
        except subprocess.TimeoutExpired:
            return f"no answer within {_SECS:g} s"
        lines = asked.stderr.strip().splitlines()
        return "" if asked.returncode == 0 else (lines[-1] if lines else f"exit code {asked.returncode}")

    def _run(self, arguments: Sequence[str]) -> int:
        return subprocess.run([self.path, *arguments], check=False).returncode  # noqa: S603


def find_builder(name: str = "") -> Builder:
    """Return the builder of that name, or the first that works. Raises ClusterError with the reasons if none does."""
    builders = list(_installed_builders((name,) if name else BUILDERS))
    if not builders:
        what = f"{name} is" if name else "docker, podman and buildah are"
        raise ClusterError(
            f"{what} not installed, and one is needed to build images",
            hint="install podman or buildah, which need no daemon; sqlflow image pack needs none: sqlflow help images",
        )
    refused = {}
    for builder in builders:
        why = builder.why_not()
        if not why:
            return builder
        refused[builder.name] = why
    said = "; ".join(f"{builder_name}: {why}" for builder_name, why in refused.items())
    raise ClusterError(
        f"no image builder works: {said}", hint="start its daemon, or install podman or buildah"
    )


def build_and_push(folder: Path, tag: str, say: Callable[[str], None]) -> None:
    """Build the image of a folder, and push it to the registry in its name. Raises ClusterError if that fails.

    A name without a registry or an account is not pushed: `say` gets that, and what is done.
    """
    builder = find_builder()
    check_tag(tag)
    steps = {"build": partial(builder.build, folder, tag)} | (
        {"push": partial(builder.push, tag)} if "/" in tag else {}
    )
    for name, step in steps.items():
        say(f"{name} of {tag} with {builder.name}")
        if code := step():
            raise ClusterError(
                f"the {name} of {tag} failed: {builder.name} ended with exit code {code}",
                hint="its messages are above",
            )
    if "/" not in tag:
        say(f"{tag} names no registry: the nodes must have the image themselves")


def init(folder: Path) -> list[Path]:
    """Make the folder of an image with the user's own packages and models: a Dockerfile, requirements.txt, models/.

    Return the written files. Raises SemanticError if one of them exists.
    """
    import jinja2

    paths = {folder / name: template for name, template in _TEMPLATES.items()}
    if existing := [path for path in (*paths, folder / "Containerfile") if path.exists()]:
        raise SemanticError(f"{existing[0]} exists already", hint="name another folder, or edit that file")
    (folder / MODELS).mkdir(parents=True, exist_ok=True)
    templates = resources.files("sqlflow_edl.codegen_templates") / "image"
    for path, template in paths.items():
        text = (templates / template).read_text(encoding="utf-8")
        parsed = jinja2.Template(text, keep_trailing_newline=True, undefined=jinja2.StrictUndefined)
        path.write_text(parsed.render(stock=STOCK, models=MODELS), encoding="utf-8")
    return list(paths)


def check_tag(tag: str) -> None:
    """Raise SemanticError unless the tag can name an image."""
    if _TAG.fullmatch(tag):
        return
    near = tag.lower() if _TAG.fullmatch(tag.lower()) else ""
    raise SemanticError(
        f"{tag!r} cannot name an image",
        hint=f"write {near}" if near else "write registry/name:tag, in lower case, such as team/models:1",
    )


def _installed_builders(names: Sequence[str]) -> Iterator[Builder]:
    for name in names:
        if path := shutil.which(name):
            yield Builder(name, path)


def _file_of(folder: Path) -> Path:
    for name in FILES:
        if (folder / name).is_file():
            return folder / name
    raise SemanticError(f"there is no Dockerfile in {folder}", hint=f"sqlflow image init {folder} writes one")
