"""Programs and models in images, run in a container of this machine by docker or podman.

A container of a program sees the rows of the query, read-only, and the folder of the results; one of a model sees the
folder of its job. It has no network, no environment of this process, and its user is this process's. Its standard input
ends with this process, and the program then ends.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from edl.errors import SemanticError
from edl.program.image_models import ImageSources, from_lines
from edl.runnable import VARIABLE, RunnablePlace

ENGINES = ("docker", "podman")
PERMITTED = "SQLFLOW_IMAGES"  # variable with the beginnings of images that statements may run here
STANDARD_INPUT = 0
ANSWER_SECONDS = 10.0  # limit for an engine to say that it works
START_SECONDS = 600.0  # limit for a container to list models; the engine may pull the image
BUILD_FROM = (
    "build it from this project's image, see sqlflow help images; its registry must be reachable from here"
)


def find_engine() -> str:
    """Return the path of docker or podman, of both the first that works; empty if neither is here."""
    engines = [path for path in map(shutil.which, ENGINES) if path]
    if len(engines) < 2:
        return next(iter(engines), "")
    return next(filter(_works, engines), engines[0])


@cache
def _works(engine: str) -> bool:
    """Return True if the engine answers: the command of docker may be there without its daemon."""
    asked = [engine, "info", "--format", "ok"]
    try:
        answer = subprocess.run(asked, capture_output=True, timeout=ANSWER_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


def is_permitted(image: str) -> bool:
    """Return True if the image begins with a text of the variable SQLFLOW_IMAGES."""
    beginnings = [text.strip() for text in os.environ.get(PERMITTED, "").split(",")]
    return any(image.startswith(text) for text in beginnings if text)


def check_image(image: str, *, elsewhere: str) -> None:
    """Raise SemanticError if the image cannot run on this machine. elsewhere: what to do instead."""
    if not find_engine():
        raise SemanticError(
            f"{image} is an image, which docker or podman runs, and neither is here", hint=elsewhere
        )
    if not is_permitted(image):
        raise SemanticError(
            f"no statement may run the image {image} here",
            hint=f"permit images by their beginnings: {PERMITTED}={image.partition(':')[0]}; or {elsewhere}",
        )


def write_command(
    engine: str, image: str, program: str, arguments: Sequence[str], place: RunnablePlace
) -> list[str]:
    """Return the command that runs a program of the image. program: its file in a folder of the image's model path."""
    rows, results = Path(place.rows).parent, Path(place.results)
    results.mkdir(parents=True, exist_ok=True)
    variables = {VARIABLE: msgspec.json.encode(place).decode()}
    module = ["edl.entrypoints.runnable", str(STANDARD_INPUT), program, *arguments]
    return _write_command(engine, image, module, variables, {rows: "ro", results: "rw"})


def write_job_command(
    engine: str, image: str, module: Sequence[str], job: Path, variables: Mapping[str, str]
) -> list[str]:
    """Return the command that runs a module of the runtime in the image, with the folder of a job."""
    return _write_command(engine, image, module, variables, {job: "rw"})


def read_sources(engine: str, image: str) -> ImageSources:
    """Return the models of an image, as a container of it lists them. Raises SemanticError if it does not run."""
    command = _write_command(engine, image, ["edl.entrypoints.image_sources"], {}, {})
    try:
        answer = subprocess.run(command, capture_output=True, timeout=START_SECONDS, check=False)  # noqa: S603
    except subprocess.TimeoutExpired:
        raise SemanticError(
            f"a container of {image} did not list its models within {START_SECONDS} s"
        ) from None
    if answer.returncode:
        last = (answer.stdout + answer.stderr).decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise SemanticError(f"{Path(engine).name} cannot run the image {image}: {last}", hint=BUILD_FROM)
    return from_lines(answer.stdout.decode("utf-8", "replace").split("\n"), image)


def _write_command(
    engine: str,
    image: str,
    module: Sequence[str],
    variables: Mapping[str, str],
    folders: Mapping[Path, str],
) -> list[str]:
    """Return the command that runs a module of the runtime. folders: at their own paths, with `ro` or `rw`."""
    user = f"--user={os.getuid()}:{os.getgid()}"
    keep = ["--userns=keep-id"] if Path(engine).name == "podman" and os.getuid() else []
    variables = {
        **variables,
        "PYTHONUNBUFFERED": "1",
        "HOME": "/tmp",  # noqa: S108 - the user has no other in the image
    }
    return [
        engine, "run", "--rm", "--interactive", "--network=none", "--security-opt=no-new-privileges", user, *keep,
        *(f"--volume={folder}:{folder}:{mode}" for folder, mode in folders.items()),
        *(f"--env={name}={value}" for name, value in variables.items()),
        "--entrypoint=python", image, "-P", "-m", *module,
    ]  # fmt: skip
