"""SQL in the cells of a notebook, in Jupyter and in IPython: `%load_ext sqlflow_edl.notebook`.

    %sqlflow_connect duckdb:///demo.duckdb

    %%sqlflow
    SELECT * FROM iris TO TRAIN DNNClassifier LABEL species INTO irises

The statements of a cell run in the session of its connection. The session and its training process are kept
until the kernel ends. Importing this module loads nothing heavy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl.errors import SQLFlowError
from edl.extension_loader import load
from edl.installation import install_extras

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the magics. Raises SQLFlowError if IPython or the extension is not installed."""
    try:
        cell_completion = load("sqlflow_edl.extensions.notebook.completion", "CellCompletion")
        sqlflow_magics = load("sqlflow_edl.extensions.notebook.magics", "SQLFlowMagics")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "IPython":
            raise
        raise SQLFlowError("IPython is not installed", hint=install_extras("notebook")) from None
    magics = sqlflow_magics(shell)
    shell.register_magics(magics)
    completion = cell_completion(magics.connections, shell.user_ns)
    _forget_matcher(shell)
    shell.Completer.custom_matchers = [*shell.Completer.custom_matchers, completion.matcher()]
    shell.events.register("post_run_cell", completion.cell_has_run)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Close the connections."""
    magics = shell.magics_manager.registry.get("SQLFlowMagics")
    if magics is not None:
        magics.connections.close_all()
    _forget_matcher(shell)


def _forget_matcher(shell: InteractiveShell) -> None:
    """Remove the completion of an earlier load."""
    matchers = shell.Completer.custom_matchers
    kept = [matcher for matcher in matchers if getattr(matcher, "matcher_identifier", "") != "sqlflow"]
    shell.Completer.custom_matchers = kept
