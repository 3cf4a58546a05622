"""`sqlflow logs ID [INSTANCE]`: what the instances of a job have printed, and print."""

from __future__ import annotations

import argparse
import sys

from edl.errors import SemanticError, did_you_mean
from sqlflow_edl import jobs
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.handles import JobHandle


@reported
def logs(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    job = jobs.find(options.id)
    if options.instance is not None:
        _check(job, options.instance)
    with job.logs(options.instance, follow=options.follow) as lines:
        for name, line in lines:
            named = options.instance is None and len(lines.names) > 1
            before = f"{name:{max(map(len, lines.names))}} | " if named else ""
            sys.stdout.write(before + line)
            if options.follow:
                sys.stdout.flush()
    return exit_codes.OK


def _check(job: JobHandle, instance: str) -> None:
    known = job.look().logs
    if instance not in known:
        hint = did_you_mean(instance, known)
        raise SemanticError(f"job {job.folder.id} has no log of {instance}", hint=hint)
