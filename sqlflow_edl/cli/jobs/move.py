"""`sqlflow move ID --to PLACE`: continue a training at another place, from its last step.

The training is paused, its data source hands the checkpoint over, and it is resumed at the other place. It continues
there in the background; Ctrl-C stops following, not the job.
"""

from __future__ import annotations

import argparse
import sys

from edl.errors import SemanticError
from sqlflow_edl.backends import find
from sqlflow_edl.cli import backend, exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.jobs.attach import follow

LOCAL = "local"


@report_errors
def move_(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from sqlflow_edl.backends.moving import move  # loads more than other commands need

    place, _, profile = options.to.partition(":")
    if place not in (LOCAL, backend.KUBERNETES) or (place == LOCAL and profile):
        raise SemanticError(
            f"a job cannot move to {options.to!r}",
            hint=f"{LOCAL}, {backend.KUBERNETES}, or {backend.KUBERNETES}:PROFILE",
        )
    options.on = profile if place == backend.KUBERNETES else None
    if problem := backend.complaint(options):
        raise SemanticError(problem)
    handle = find.find(options.id)
    print(move(handle, backend.configuration(options)), file=sys.stderr)
    handle = find.find(handle.folder.id)  # another kind
    if options.detach:
        print(f"follow it with `sqlflow attach {handle.folder.id}`", file=sys.stderr)
        return exit_codes.OK
    return follow(handle)
