"""`sqlflow job ID`: what a job is, how far it is, and every process or pod of it."""

from __future__ import annotations

import argparse
import sys

import msgspec

from sqlflow_edl import jobs
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.reported import reported
from sqlflow_edl.display.output import write_rows
from sqlflow_edl.reports.jobs import INSTANCES, SERVERS, facts, instance_rows, report, server_rows


@reported
def job(options: argparse.Namespace) -> int:
    """The command; returns the exit code."""
    handle = jobs.find(options.id)
    found = report(handle.folder, handle.look())
    if options.format == "json":
        print(msgspec.json.format(msgspec.json.encode(found)).decode())
        return exit_codes.OK
    write_rows((("fact", False), ("value", False)), facts(found), sys.stdout)
    print()
    columns = ((name, kind is int) for name, kind in INSTANCES.items())
    write_rows(columns, instance_rows(found), sys.stdout)
    if servers := server_rows(found):
        print()
        write_rows(((name, number > 0) for number, name in enumerate(SERVERS)), servers, sys.stdout)
    return exit_codes.OK
