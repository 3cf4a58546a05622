"""Command `sqlflow language-server`: serve an editor on standard input and output; see `.editor`."""

from __future__ import annotations

import argparse
from importlib.util import find_spec

from edl.errors import SQLFlowError
from edl.installation import install_extras
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors


@report_errors
def language_server(options: argparse.Namespace) -> int:
    """Run the command: serve until the editor ends. Return the exit code."""
    if find_spec("pygls") is None:
        raise SQLFlowError("pygls is not installed", hint=install_extras("editor"))
    from sqlflow_edl.extensions.editor.editor import serving

    serving(options).start_io()
    return exit_codes.OK
