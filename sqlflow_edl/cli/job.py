"""`sqlflow job ID`: what a job is, how far it is, and every process of it."""

from __future__ import annotations

import argparse
import sys

import msgspec

from edl.data import jobs
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.output import write_table
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.reports.jobs import facts_table, instances_table, report


@reported
def job(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    found = report(jobs.find(options.id))
    if options.format == "json":
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return exit_codes.OK
    write_table(facts_table(found), sys.stdout)
    print()
    write_table(instances_table(found), sys.stdout)
    return exit_codes.OK
