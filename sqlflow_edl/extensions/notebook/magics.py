"""Magics: %sqlflow and %%sqlflow run statements; %sqlflow_connect and %sqlflow_close manage data sources."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from IPython.core.magic import Magics, line_cell_magic, line_magic, magics_class, no_var_expand

from edl.data.cells import format_count
from edl.errors import SemanticError, SQLFlowError, UserCodeError
from sqlflow_edl.errors.render import render
from sqlflow_edl.extensions.notebook.arguments import Options, check_names, split_name, split_options, whole
from sqlflow_edl.extensions.notebook.connections import Connections, ConnectionSettings
from sqlflow_edl.extensions.notebook.errors import CellError
from sqlflow_edl.extensions.notebook.live import Bundle, CellScreen, Live, Terminal

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from sqlflow_edl.extensions.notebook.result_set import ResultSet
    from sqlflow_edl.session.session import Session

OF_A_CELL = {"source": "URL or alias", "o": "NAME", "workers": "N", "persist": "FRAME", "debug": ""}
OF_A_CONNECTION = {
    "alias": "NAME",
    "create": "",
    "dialect": "NAME",
    "workers": "N",
    "model-store": "URL",
    "on": "kubernetes[:PROFILE]",
    "debug": "",
}


@magics_class
class SQLFlowMagics(Magics):
    """Magics for SQL in cells, with models to train and use."""

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.connections = Connections()
        atexit.register(self.connections.close_all)

    @no_var_expand
    @line_cell_magic
    def sqlflow(self, line: str, cell: str | None = None) -> ResultSet | None:
        """Run SQL statements, TRAIN, PREDICT, EVALUATE and EXPLAIN among them.

        %sqlflow [options] SELECT …          one line
        %%sqlflow [options]                  a cell of statements, separated by semicolons
        %sqlflow name << SELECT …            keeps the result as `name`, and shows nothing

        --source URL   the data source: a URL, or an alias of %sqlflow_connect
        -o NAME        also keep the result of the last statement as NAME
        --workers N    run the jobs of this cell with a master and N workers
        --debug        show the traceback of an error
        --persist FRAME [AS table]   write a data frame to a table, and run nothing

        FROM frame reads a data frame of the notebook, if the data source has no such table.
        {{ name }} inserts the text of a variable, :name its value as a quoted literal.
        """
        with _errors_shown() as context:
            options, rest = split_options(line, OF_A_CELL)
            context.debug = "debug" in options
            if "persist" in options:
                self._persist(options, rest)
                return None
            name, text = split_name(rest if cell is None else f"{rest}\n{cell}")
            if not text.strip():
                self._only_connect(options)
                return None
            workers = _workers(options)
            names = [frame_name for frame_name in (name, options.get("o", "")) if frame_name]
            check_names(names)
            session = self.connections.session(options.get("source", ""))
            result = self._run(session, text, workers, context)
            self._shell.user_ns.update(dict.fromkeys(names, result))
            return None if name else result

    @no_var_expand
    @line_magic
    def sqlflow_connect(self, line: str) -> None:
        """Open a data source and make it the current one.

        %sqlflow_connect [URL] [options]     URL defaults to SQLFLOW_SOURCE

        --alias NAME        name for cells, as in --source NAME
        --create            create a missing database file
        --workers N         run all jobs with a master and N workers
        --model-store URL   folder or object store that keeps models instead of the data source
        --on PLACE          where jobs run: kubernetes, or kubernetes:PROFILE
        --dialect NAME      SQL dialect (default: the database's)
        """
        with _errors_shown() as context:
            options, rest = split_options(line, OF_A_CONNECTION)
            url, _, rest = rest.strip().partition(" ")
            more, rest = split_options(rest, OF_A_CONNECTION)
            if rest.strip():
                raise SemanticError(
                    f"unexpected argument {rest.strip()}", hint="%sqlflow_connect URL --alias NAME"
                )
            context.debug = "debug" in (options := options | more)
            print("connected to", self._connect_session(url, options).source.url)

    @no_var_expand
    @line_magic
    def sqlflow_close(self, line: str) -> None:
        """Close a data source, the current one or `%sqlflow_close URL or alias`, and end its training process."""
        with _errors_shown():
            self.connections.close(line.strip())

    def _persist(self, options: Options, rest: str) -> None:
        from sqlflow_edl.extensions.notebook.frames import persist, target

        name = options["persist"]
        if name not in self._shell.user_ns:
            raise SemanticError(f"there is no variable {name}")
        table = target(rest, name)
        session = self.connections.session(options.get("source", ""))
        print(f"wrote {format_count(persist(session.source, self._shell.user_ns[name], table))} to {table}")

    def _only_connect(self, options: Options) -> None:
        if "source" not in options:
            raise SemanticError(
                "the cell has no statement", hint="%sqlflow SELECT …, or a cell below %%sqlflow"
            )
        self.connections.use(options["source"])

    def _connect_session(self, url: str, options: Options) -> Session:
        url = url or os.environ.get("SQLFLOW_SOURCE", "")
        if not url:
            raise SemanticError("no data source is given", hint="%sqlflow_connect duckdb:///demo.duckdb")
        settings = ConnectionSettings(
            url,
            dialect=options.get("dialect"),
            create="create" in options,
            workers=_workers(options),
            model_store=options.get("model-store", os.environ.get("SQLFLOW_MODEL_STORE", "")),
            on=options.get("on", ""),
        )
        return self.connections.connect(settings, options.get("alias", ""))

    def _run(self, session: Session, text: str, workers: int | None, context: _Context) -> ResultSet | None:
        from sqlflow_edl.extensions.notebook import cell
        from sqlflow_edl.extensions.notebook.frames import named_frames
        from sqlflow_edl.extensions.notebook.variables import fill_variables

        context.text = text
        context.text = fill_variables(text, self._shell.user_ns, session.dialect)
        of_session = session.workers
        session.workers = of_session if workers is None else workers
        try:
            with named_frames(session, context.text, self._shell.user_ns):
                return cell.run_statements(session, context.text, self._screen(), self._show)
        finally:
            session.workers = of_session

    # What is shown ---------------------------------------------------------------------------------------

    @property
    def _shell(self) -> InteractiveShell:
        if self.shell is None:
            raise RuntimeError("magics are made with a shell")
        return self.shell

    def _screen(self) -> CellScreen:
        terminal = sys.modules.get("IPython.terminal.interactiveshell")
        if terminal is not None and isinstance(self._shell, terminal.TerminalInteractiveShell):
            return Terminal(sys.stderr)
        return Live(self._publish)

    def _publish(self, bundle: Bundle, output: str, is_there: bool) -> None:
        self._shell.display_pub.publish(bundle, transient={"display_id": output}, update=is_there)

    def _show(self, result: ResultSet) -> None:
        bundle = {"text/plain": repr(result), "text/html": result._repr_html_()}
        self._shell.display_pub.publish(bundle)


def _workers(options: Options) -> int | None:
    if "workers" not in options:
        return None
    from sqlflow_edl.analysis.settings.uses import MOST_WORKERS

    return whole("workers", options["workers"], MOST_WORKERS)


@dataclass(slots=True)
class _Context:
    """Context of a cell for reporting its error."""

    text: str = ""
    debug: bool = False


@contextmanager
def _errors_shown() -> Iterator[_Context]:
    """Report errors as a notebook shows them: with the cell's text, and under --debug with a traceback."""
    context = _Context()
    try:
        yield context
    except SQLFlowError as error:
        if context.debug and isinstance(error, UserCodeError) and error.traceback:
            print(error.traceback, file=sys.stderr)
        elif context.debug:
            print(render(error, context.text, "<cell>"), file=sys.stderr)
            raise
        raise CellError(error, context.text) from error
