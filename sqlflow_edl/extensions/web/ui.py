"""`sqlflow ui`: pages about the jobs of this user and the models of a data source."""

from __future__ import annotations

import argparse

from sqlflow_edl.cli import exit_codes
from sqlflow_edl.cli.errors import report_errors
from sqlflow_edl.cli.models.listening import check_installed, say, token_for


@report_errors
def ui(options: argparse.Namespace) -> int:
    """Run the command until SIGTERM or Ctrl-C, and return the exit code."""
    check_installed()
    from edl.models.registry.model_store import ModelStore
    from sqlflow_edl.extensions.serving.server import listen
    from sqlflow_edl.extensions.web.server import server_of

    token = token_for(options.host, options.token_file)
    source = options.model_store or options.source or ""
    store = ModelStore(options.source or "", options.model_store) if source else None
    if store is not None:
        store.check()
    with listen(options.host, options.port) as listening:
        server = server_of(listening, store, source, token)
        host, port = listening.getsockname()[:2]
        models = "" if source else "; --source URL shows models too"
        say(f"open http://{f'[{host}]' if ':' in host else host}:{port} in a browser{models}; Ctrl-C ends")
        try:
            server.run(sockets=[listening])
        except KeyboardInterrupt:  # also SIGTERM
            say("ended")
    return exit_codes.OK
