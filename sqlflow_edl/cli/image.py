"""`sqlflow image`: build, pack and push images for jobs on Kubernetes."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from sqlflow_edl.cli.arguments import Commands, subcommand
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.program.variables import setting
from sqlflow_edl.display.files import name_write_errors


def add_command(commands: Commands) -> None:
    """Add the parser of the command."""
    text = "build and push images for jobs on Kubernetes with docker, podman or buildah, or pack one without them"
    image = subcommand(commands, "image", text)
    actions = image.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    init = _action(actions, "init", "write a Dockerfile for packages and models of your own")
    init.add_argument("folder", metavar="DIR", type=Path, help="folder to write to, created if missing")
    build = _action(actions, "build", "build the image of a folder; the exit code is the builder's")
    build.add_argument(
        "folder",
        metavar="DIR",
        type=Path,
        nargs="?",
        default=Path(),
        help="folder of the Dockerfile (default: the current one)",
    )
    build.add_argument(
        "-t", "--tag", metavar="TAG", required=True, help="name of the image, such as registry/name:1"
    )
    build.add_argument(
        "-f", "--file", metavar="FILE", type=Path, help="Dockerfile to build (default: the one in DIR)"
    )
    build.add_argument(
        "--target", metavar="STAGE", default="", help="stage of the Dockerfile (default: the last)"
    )
    build.add_argument(
        "--build-arg", metavar="NAME=VALUE", type=setting, action="append", default=[], help="build argument"
    )
    pack = _action(actions, "pack", "make an image of a file system, without a builder")
    pack.add_argument(
        "folder", metavar="DIR", type=Path, help="root of the file system, which has the runtime in opt/edl"
    )
    pack.add_argument("-t", "--tag", metavar="TAG", required=True, help="name of the image")
    pack.add_argument(
        "-o", "--output", metavar="FILE", type=Path, required=True, help="archive that nodes import"
    )
    push = _action(actions, "push", "push an image to its registry; the exit code is the builder's")
    push.add_argument("tag", metavar="TAG")
    for action in (build, push):
        action.add_argument("--builder", choices=("docker", "podman", "buildah"), default="")


def _action(actions: Commands, name: str, text: str) -> argparse.ArgumentParser:
    parser = subcommand(actions, name, text)
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


@report_errors
def image(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return {"init": _init, "build": _build, "pack": _pack, "push": _push}[options.action](options)


def _init(options: argparse.Namespace) -> int:
    from sqlflow_edl.backends.images import builders
    from sqlflow_edl.cli import exit_codes

    with name_write_errors(options.folder):
        paths = builders.init(options.folder)
    print(*paths, sep="\n")
    say = f"""\
Put your modules into {options.folder / builders.MODELS}, and the packages that they import into requirements.txt; then
  sqlflow image build {options.folder} --tag REGISTRY/NAME:TAG
  sqlflow image push REGISTRY/NAME:TAG
  sqlflow run FILE --on kubernetes --image REGISTRY/NAME:TAG"""
    print(say, file=sys.stderr)
    return exit_codes.OK


def _build(options: argparse.Namespace) -> int:
    from sqlflow_edl.backends.images.builders import find_builder

    builder = find_builder(options.builder)
    print(f"building {options.tag} with {builder.name}", file=sys.stderr)
    return builder.build(
        options.folder,
        options.tag,
        file=options.file,
        target=options.target,
        arguments=dict(options.build_arg),
    )


def _pack(options: argparse.Namespace) -> int:
    from sqlflow_edl.backends.images import archive
    from sqlflow_edl.cli import exit_codes

    with name_write_errors(options.output):
        archive.pack(options.folder, options.tag, options.output)
    size = options.output.stat().st_size
    print(f"{options.output}: {options.tag}, {size / 1e6:,.0f} MB", file=sys.stderr)
    return exit_codes.OK


def _push(options: argparse.Namespace) -> int:
    from sqlflow_edl.backends.images.builders import find_builder

    return find_builder(options.builder).push(options.tag)
