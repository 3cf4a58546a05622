"""`sqlflow serve`: predictions of the models of a data source over HTTP."""

from __future__ import annotations

import argparse

from edl.logs import log
from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.models.listening import check_installed, say, token_for
from sqlflow_edl.cli.source import no_source


@report_errors
def serve(options: argparse.Namespace) -> int:
    """Run the command until SIGTERM or Ctrl-C, and return the exit code."""
    if not (options.source or options.model_store):
        return no_source(options)
    check_installed()
    from edl.models.registry.model_store import ModelStore
    from sqlflow_edl.extensions.serving.catalog import ModelCatalog
    from sqlflow_edl.extensions.serving.prediction_endpoint import Limits
    from sqlflow_edl.extensions.serving.server import listen, run

    token = token_for(options.host, options.token_file)
    listening = listen(options.host, options.port)
    catalog = ModelCatalog(ModelStore(options.source or "", options.model_store), options.model, log)
    with listening:
        catalog.start()
        limits = Limits(options.max_bytes, options.max_rows, options.timeout)
        try:
            run(listening, catalog, limits, token=token, poll=options.poll, log=log)
        except KeyboardInterrupt:  # also SIGTERM; requests under way have been answered
            say("ended")
    return exit_codes.OK
