"""Loop of the console: read, execute, show, until the user leaves."""

from __future__ import annotations

from edl.data import redacted
from edl.data.cells import format_count
from edl.errors import SQLFlowError
from edl.installation import VERSION
from edl.jobs.termination import TerminatedError
from sqlflow_edl.console.commands import Leave, find_command
from sqlflow_edl.console.completion import Completing
from sqlflow_edl.console.config import DEFAULTS, Config
from sqlflow_edl.console.connection import ConsoleConnection, Opener, UnopenedError
from sqlflow_edl.console.keys import Called, command
from sqlflow_edl.console.prompt import Prompt
from sqlflow_edl.console.screen import Screen
from sqlflow_edl.console.secrets import holds_secret
from sqlflow_edl.console.statements import Statements
from sqlflow_edl.errors.render import render


class Shell:
    """Console. opener: function that opens the session of a data source. debug: show errors with tracebacks."""

    def __init__(
        self, opener: Opener, source: str, screen: Screen, config: Config = DEFAULTS, *, debug: bool = False
    ) -> None:
        self.screen = screen
        self._opener = opener
        self._written = ""  # initial text of the next prompt
        self.connection = ConsoleConnection(opener, source)
        self._prompt = Prompt(
            lambda: self.connection.dialect,
            Completing(lambda: self.connection),
            self._toolbar,
            lambda: self.connection.source,
            config,
            lambda topic: self._call(Called("help", topic)),
        )
        self._statements = Statements(screen, self._prompt.agrees, debug=debug)
        self.last = ""  # text that ran last, commands excluded
        self._leaves = False  # on the next Ctrl-C

    def run(self) -> None:
        """Run until the user leaves. Raises SQLFlowError if the data source cannot be opened."""
        self.screen.say(f"sqlflow-edl {VERSION}: F1 or /help lists statements and commands, Ctrl-D leaves")
        try:
            while True:
                self._one()
        except (Leave, EOFError):
            pass
        except UnopenedError as error:
            raise error.error from None
        finally:
            self.screen.close()
            self.connection.close()

    def execute(self, text: str, name: str = "") -> bool:
        """Run statements; return True if all have run. name: name of the file with the text."""
        with self.connection.session():
            self._show_notes()
        return self._statements.run(text, self.connection, name)

    def agrees(self, question: str) -> bool:
        """Ask the user a yes-or-no question."""
        return self._prompt.agrees(question)

    def write(self, text: str) -> None:
        """Set the initial text of the next prompt."""
        self._written = text

    def use(self, source: str) -> None:
        """Change the data source. Raises SQLFlowError if it cannot be opened; the current one then stays."""
        fresh = ConsoleConnection(self._opener, source)
        fresh.open()
        try:
            fresh.opened.result()
        except UnopenedError as error:
            raise error.error from None
        self.connection.close()
        self.connection = fresh
        self._show_notes()

    def _one(self) -> None:
        typed, self._written = self._written, ""
        try:
            text = self._prompt.text(self.connection, self._show_notes, typed)
        except TerminatedError:
            raise
        except KeyboardInterrupt:
            self._on_interrupt()
            return
        self._leaves = False
        try:
            self._take(text)
        except TerminatedError:
            raise
        except KeyboardInterrupt:  # during a command
            pass

    def _on_interrupt(self) -> None:
        """Handle Ctrl-C at the prompt: the second one without input leaves."""
        if self._prompt.typed_text:
            self._leaves = False
            return
        if self._leaves:
            raise Leave
        self._leaves = True
        self.screen.say("Ctrl-C again or Ctrl-D leaves")

    def _take(self, text: str) -> None:
        """Execute the text."""
        if not holds_secret(text):
            self.screen.note_down(f"{self._prompt.get_text()}{text}\n")
        if called := command(text):
            self._call(called)
        elif text.strip():
            self.last = text
            self.execute(text)

    def _call(self, called: Called) -> None:
        try:
            find_command(called.name).run(self, called.argument)
        except SQLFlowError as error:
            self.screen.complain(render(error))

    def _show_notes(self) -> None:
        while self.connection.notes:
            self.screen.narrator.note(self.connection.notes.pop(0))

    def _toolbar(self) -> str:
        source = redacted(self.connection.source)
        if not self.connection.opened.done():
            return f" {source}: opening …"
        catalog = self.connection.catalog
        counts = (format_count(len(catalog.tables), "table"), format_count(len(catalog.models), "model"))
        return f" {source}: {', '.join(counts)}   F1 help"
