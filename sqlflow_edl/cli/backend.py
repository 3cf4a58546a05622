"""Options of where jobs run: `--on kubernetes[:PROFILE]` and its settings."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from sqlflow_edl.cli.arguments import duration
from sqlflow_edl.cli.program.variables import setting

if TYPE_CHECKING:
    from sqlflow_edl.backends.kubernetes.settings import Configuration

KUBERNETES = "kubernetes"

_NEEDS_PLACE = (
    "namespace",
    "build",
    "image",
    "wait_limit",
    "min_workers",
    "set",
    "kubernetes_config",
)  # options that have no effect here
_OF_THIS_MACHINE = ("quota",)


def add_options(command: argparse.ArgumentParser) -> None:
    options = command.add_argument_group("jobs on Kubernetes")
    options.add_argument(
        "--on",
        metavar="kubernetes[:PROFILE]",
        type=_place,
        help="run the jobs on Kubernetes, with the settings of a profile; see sqlflow help kubernetes",
    )
    options.add_argument(
        "--build",
        metavar="DIR",
        type=Path,
        help="build the image of this folder first, and push it; see sqlflow help images",
    )
    add_settings(options)


def add_settings(options: argparse._ArgumentGroup) -> None:
    """Add the options of a place that is Kubernetes."""
    options.add_argument("--namespace", metavar="NAME", help="namespace (default: the context's)")
    options.add_argument("--image", metavar="IMAGE", help="image of every container, see sqlflow image")
    options.add_argument(
        "--wait-limit",
        metavar="TIME",
        type=duration,
        default=0.0,
        help="end a job that has waited for its pods for this time, such as 30m (default: no limit)",
    )
    options.add_argument(
        "--min-workers",
        metavar="N",
        type=int,
        default=0,
        help="begin a job when so many of its workers are ready (default: with the first one)",
    )
    options.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=setting,
        action="append",
        default=[],
        help="a setting such as worker_memory=4Gi, like kubernetes.worker_memory in WITH",
    )
    options.add_argument(
        "--kubernetes-config",
        metavar="FILE",
        type=Path,
        help="TOML file with settings and profiles (default: sqlflow-edl/kubernetes.toml in the configuration folder)",
    )


def complaint(options: argparse.Namespace) -> str:
    """Describe a conflict between the options; empty if there is none."""
    needs = _NEEDS_PLACE if options.on is None else ()
    for name in needs:
        if getattr(options, name, None):
            return f"--{name.replace('_', '-')} applies to jobs on Kubernetes; add --on {KUBERNETES}"
    for name in () if options.on is None else _OF_THIS_MACHINE:
        if getattr(options, name, None):
            return f"--{name} applies to jobs on this machine, not on Kubernetes"
    return ""


def configuration(options: argparse.Namespace) -> Configuration | None:
    """Return the configuration of jobs on Kubernetes, or None on this machine.

    Raises SemanticError for a wrong setting.
    """
    if options.on is None:
        return None
    from sqlflow_edl.backends.kubernetes.settings import read_configuration

    named = [(name, getattr(options, name)) for name in ("namespace", "image") if getattr(options, name)]
    if options.wait_limit:
        named.append(("wait_secs", str(options.wait_limit)))
    if options.min_workers:
        named.append(("min_workers", str(options.min_workers)))
    read = read_configuration(options.on, options.kubernetes_config, [*named, *options.set])
    if getattr(options, "build", None) is not None:
        _build_image(read.settings().own_image, options)
    return read


def _build_image(image: str, options: argparse.Namespace) -> None:
    from sqlflow_edl.backends.images.builders import build_and_push

    if not getattr(options, "dry_run", False):
        build_and_push(options.build, image, lambda text: print(text, file=sys.stderr, flush=True))


def _place(text: str) -> str:
    """Return the profile, or an empty string for none."""
    name, colon, profile = text.partition(":")
    if name != KUBERNETES or (colon and not profile):
        raise argparse.ArgumentTypeError(f"expected {KUBERNETES} or {KUBERNETES}:PROFILE, not {text!r}")
    return profile
