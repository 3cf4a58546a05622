"""Places other than this machine where jobs of the `edl` command run: `--on NAME[:PROFILE]`.

A place is an entry point of the group `edl.places`: a function of a profile and settings, which returns a `JobPlace`.
So this package needs no client of any cluster.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from edl.errors import SemanticError, did_you_mean
from edl.installation import install_extras
from edl.jobs import job_folder as jobs
from edl.jobs.events import JobEvent
from edl.jobs.job_folder import JobFolder
from edl.jobs.outcome import Outcome
from edl.spec import JobSpec

GROUP = "edl.places"
IN_PODS = "pod:"  # begins a path that only the job's instances see
_NEEDS_PLACE = ("namespace", "image", "build", "set", "detach", "dry_run")
_INSTEAD = {
    "quota": "a cluster has quotas of its own, and queues",
    "threads": "--set worker_cpu=N gives each worker N cores",
    "resume": "sqlflow resume ID continues a paused job there",
    "program": "--model_def names a hand-written module; sqlflow run submits programs of SQL",
}


class Listener(Protocol):
    """Receiver of the events of a job, and of notes for the user."""

    def __call__(self, event: JobEvent) -> None: ...

    def note(self, text: str) -> None: ...


class JobPlace(Protocol):
    """Place where jobs run. Raises ClusterError if it refuses one, SemanticError for a wrong setting."""

    @property
    def most(self) -> int:
        """Largest size in bytes of all files of a job together."""

    def check(self) -> None:
        """Check access."""

    def build_image(self, folder: Path) -> None:
        """Build the image of a folder under the name in the settings, and push it."""

    def objects(self, job: JobFolder, spec: JobSpec) -> str:
        """Return a description of all that the job would make there."""

    def start(self, job: JobFolder, spec: JobSpec, listener: Listener) -> None:
        """Submit the job in its complete folder, and return when it runs; an interrupt cancels it."""

    def lines(self, job: JobFolder) -> AbstractContextManager[Iterable[tuple[str, str]]]:
        """Return the lines of the logs of a submitted job's instances until its end, each with the instance."""

    def follow(self, job: JobFolder, listener: Listener, *, cancels: bool) -> Outcome:
        """Follow a submitted job to its end, and place its output into the folder.

        cancels: an interrupt cancels the job, and does not only end the wait.
        """


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("jobs elsewhere")
    group.add_argument(
        "--on", metavar="kubernetes[:PROFILE]", help="run the job on Kubernetes, see sqlflow help kubernetes"
    )
    group.add_argument("--namespace", metavar="NAME", help="namespace (default: the context's)")
    group.add_argument("--image", metavar="IMAGE", help="image of every container")
    group.add_argument(
        "--build",
        type=Path,
        metavar="DIR",
        help="build the image of this folder first, and push it; see sqlflow help images",
    )
    group.add_argument(
        "--set",
        type=_assignment,
        action="append",
        metavar="NAME=VALUE",
        help="a setting such as worker_memory=4Gi, see sqlflow help kubernetes; may be repeated",
    )
    group.add_argument(
        "--detach", action="store_true", help="return when the job runs; edl fetch ID gets its output"
    )
    group.add_argument("--dry-run", action="store_true", help="print the job's objects, and submit nothing")


def check(options: argparse.Namespace) -> None:
    """Raise SemanticError if options conflict with the place of the job."""
    if options.on is None:
        for name in ("training_data", "validation_data", "prediction_data", "weights", "output"):
            if str(getattr(options, name, "")).startswith(IN_PODS):
                raise SemanticError(
                    f"--{name} names a path of pods, and the job has none", hint="add --on kubernetes"
                )
        for name in _NEEDS_PLACE:
            if getattr(options, name, None):
                flag = f"--{name.replace('_', '-')}"
                raise SemanticError(f"{flag} applies to jobs elsewhere", hint="add --on kubernetes")
        return
    for name, instead in _INSTEAD.items():
        if getattr(options, name, None) is not None:
            raise SemanticError(f"--{name} applies to jobs on this machine, not to --on", hint=instead)


def open_place(options: argparse.Namespace) -> JobPlace:
    """Return the place that the options name; unless this is a dry run, access to it is checked."""
    name, _, profile = options.on.partition(":")
    named = [
        (option, getattr(options, option)) for option in ("namespace", "image") if getattr(options, option)
    ]
    place = place_named(name, profile, [*named, *(options.set or ())])
    if not options.dry_run:
        place.check()
        if options.build is not None:
            place.build_image(options.build)
    return place


def place_named(name: str, profile: str = "", settings: Iterable[tuple[str, str]] = ()) -> JobPlace:
    """Return the place. Raises SemanticError if nothing installed offers it."""
    places = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in places:
        hint = did_you_mean(name, places) or f"{install_extras('kubernetes')} offers kubernetes"
        raise SemanticError(f"jobs cannot run on {name!r}", hint=hint)
    opened = cast(Callable[[str, list[tuple[str, str]]], JobPlace], places[name].load())
    return opened(profile, [*settings])


@contextmanager
def new_job(kind: jobs.Kind, statement: str) -> Iterator[JobFolder]:
    """Make the folder of a job. It is removed at the end if the job was not submitted."""
    job = jobs.create(kind, statement)
    try:
        yield job
    finally:
        if not job.status().place:
            job.remove()


def submit(
    job: JobFolder,
    spec: JobSpec,
    place: JobPlace,
    options: argparse.Namespace,
    listener: Listener,
    *,
    later: str,
) -> bool:
    """Submit the job in its complete folder, or print its objects if this is a dry run.

    Return True if the command is to follow the job. `later` tells the user of `--detach` what to do with the job.
    """
    if options.dry_run:
        print(place.objects(job, spec), end="")
        return False
    place.start(job, spec, listener)
    print(f"job {job.id}", file=sys.stderr)
    if options.detach:
        print(f"it continues; {later}", file=sys.stderr)
    return not options.detach


def _assignment(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, not {text!r}")
    return name, value
