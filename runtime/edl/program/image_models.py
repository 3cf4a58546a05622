"""Models of an image, `registry/team/models:1.2/MyModel`: a class of a module on the model path of that image.

A process of the image lists the sources of its model path (`edl.entrypoints.image_sources`); the client reads the class
in them, as it reads a module of this machine, and imports nothing. The job itself runs in the image.
"""

from __future__ import annotations

import base64
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from edl.build import ADVICE, Build, present_build
from edl.errors import ClusterError, SemanticError, SpecError, did_you_mean
from edl.program.user_model import PATH_VARIABLE, OwnModel, defined_names, find, search_path, searching

LINE = 4000  # characters of a line of encoded sources
MOST_BYTES = 8 << 20  # of sources
MARK = "edl-image-sources "


class ImageSources(msgspec.Struct, frozen=True):
    """Build of an image, and the sources of its model path by their path in it."""

    build: Build
    files: dict[str, str]

    def check_build(self, image: str) -> None:
        """Raise ClusterError if the image does not run jobs of this client."""
        client = present_build()
        if not client.is_compatible(self.build):
            raise ClusterError(
                f"the image {image} has {self.build}, which does not run jobs of {client}: the protocol of jobs is "
                f"{self.build.protocol} there, {client.protocol} here",
                hint=ADVICE,
            )

    def write(self, folder: Path) -> None:
        """Write the sources into a folder. Raises SpecError for a path that leaves it."""
        for name, text in self.files.items():
            path = (folder / name).resolve()
            if not path.is_relative_to(folder.resolve()):
                raise SpecError(f"the image names a source {name!r}, which is in no folder of its model path")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")


def split_name(name: str) -> tuple[str, str]:
    """Return the image and the class of a model's name; the image is empty for a model without one."""
    image, _, model = name.rpartition("/")
    return image, model


def list_sources() -> ImageSources:
    """Return the sources of the model path of this process. Raises SpecError if they are too many."""
    files: dict[str, str] = {}
    for folder in map(Path, search_path()):
        for path in sorted(folder.rglob("*.py")):
            files.setdefault(path.relative_to(folder).as_posix(), path.read_text("utf-8", errors="replace"))
    if sum(map(len, files.values())) > MOST_BYTES:
        raise SpecError(
            f"the model path {os.pathsep.join(search_path())} has more than {MOST_BYTES >> 20} MiB"
        )
    return ImageSources(present_build(), files)


def to_lines(sources: ImageSources) -> Iterator[str]:
    """Yield the sources as lines of text."""
    text = base64.b64encode(zlib.compress(msgspec.json.encode(sources))).decode()
    yield from (MARK + text[start : start + LINE] for start in range(0, len(text), LINE))


def from_lines(lines: Iterable[str], image: str) -> ImageSources:
    """Return the sources in the output of a process of the image. Raises SpecError if there are none."""
    text = "".join(line.removeprefix(MARK).strip() for line in lines if line.startswith(MARK))
    try:
        unpacked = zlib.decompressobj().decompress(base64.b64decode(text, validate=True), 4 * MOST_BYTES)
        return msgspec.json.decode(unpacked, type=ImageSources)
    except (ValueError, zlib.error, msgspec.MsgspecError):
        raise SpecError(f"the image {image} does not list its models", hint=ADVICE) from None


_folders: dict[str, TemporaryDirectory[str]] = {}  # with the sources of images, as long as this process runs


def is_known(image: str) -> bool:
    """Return True if this process knows the models of the image."""
    return image in _folders


def remember(image: str, sources: ImageSources) -> None:
    """Keep the sources of an image for `find_in_image`."""
    folder = TemporaryDirectory(prefix="sqlflow-edl-image-")
    sources.write(Path(folder.name))
    _folders[image] = folder


def is_on_model_path(image: str, model: str) -> bool:
    """Return True if a folder of SQLFLOW_MODEL_PATH has the model of an image, which is then known."""
    if not os.environ.get(PATH_VARIABLE):
        return False
    remember(image, list_sources())
    try:
        find_in_image(image, model)
    except SemanticError:
        del _folders[image]
        return False
    return True


def find_in_image(image: str, model: str) -> OwnModel | None:
    """Return a model of an image, None if the image is not known; see `find_in_folder`."""
    if image not in _folders:
        return None
    return replace(find_in_folder(Path(_folders[image].name), image, model), image=image)


def find_in_folder(folder: Path, image: str, model: str) -> OwnModel:
    """Return the model of an image. folder: with the sources of its model path.

    model: a class or function, with or without its module. Raises SemanticError if there is none, or several.
    """
    with searching(folder):
        if "." in model:
            return find(model)
        modules = {name: defined_names(path) for name, path in _modules(folder)}
        having = [module for module, names in modules.items() if model in names]
        if len(having) == 1:
            return find(f"{having[0]}.{model}")
    if having:
        raise SemanticError(
            f"several modules of the image {image} define {model}: {', '.join(having)}",
            hint=f"name one of them: {image}/{having[0]}.{model}",
        )
    known = [name for names in modules.values() for name in names if not name.startswith("_")]
    hint = did_you_mean(model, known, list_up_to=8) or "its model path has no module of that class"
    raise SemanticError(f"no module of the image {image} defines {model}", hint=hint)


def _modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the modules of a folder by their dotted names."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder).with_suffix("").parts
        parts = parts[:-1] if parts[-1] == "__init__" else parts
        if parts and all(part.isidentifier() for part in parts):
            yield ".".join(parts), path
