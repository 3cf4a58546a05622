"""Commands of the console, each a row of one table."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from edl.data import redacted
from edl.errors import SemanticError, SQLFlowError, did_you_mean
from edl.installation import VERSION
from sqlflow_edl.console import favourites
from sqlflow_edl.console.help import help_
from sqlflow_edl.console.screen import arguments, default_pager, ignore_signal
from sqlflow_edl.display.files import format_of, path_of
from sqlflow_edl.display.output import TEXT_FORMATS
from sqlflow_edl.session.texts import sql_files
from sqlflow_edl.syntax.dialects import dialect_named

if TYPE_CHECKING:
    from sqlflow_edl.console.shell import Shell


class Leave(Exception):  # noqa: N818 - not an error
    """Request of the user to leave the console."""


@dataclass(frozen=True, slots=True)
class Command:
    """Command of the console.

    usage: form of its argument. run: handler, which receives the argument as one text.
    """

    usage: str
    doc: str
    run: Callable[[Shell, str], None]


def _help(shell: Shell, topic: str) -> None:
    if topic.startswith(("/", "\\")):
        command = find_command(topic[1:])
        shell.screen.say(f"{command.usage}: {command.doc}".removeprefix(": "))
        return
    if topic:
        with shell.screen.page() as page:
            page.write(help_(topic))
        return
    rows = [
        (f"/{name} {listed_command.usage}".rstrip(), listed_command.doc)
        for name, listed_command in LISTED.items()
    ]
    shell.screen.table(("command", "description"), rows)
    shell.screen.say(
        "/help TRAIN: its syntax and an example; also PREDICT, EVALUATE, EXPLAIN, COLUMN, WITH, SHOW, …"
    )


def _tables(shell: Shell, _: str) -> None:
    with shell.connection.session() as session:
        names = session.source.tables()
    shell.screen.table(("table",), [(name,) for name in names])


def _databases(shell: Shell, _: str) -> None:
    with shell.connection.session() as session:
        names = session.source.databases()
    shell.screen.table(("database",), [(name,) for name in names])


def _columns(shell: Shell, table: str) -> None:
    if not table:
        raise SemanticError("the name of a table is missing", hint="/d TABLE; /dt lists them")
    with shell.connection.session() as session:
        types = session.source.column_types(table)
    shell.screen.table(("column", "type"), types)


def _models(shell: Shell, pattern: str) -> None:
    like = f" LIKE '{pattern.replace(chr(39), chr(39) * 2)}'" if pattern else ""
    shell.execute(f"SHOW MODELS{like};")


def _model(shell: Shell, name: str) -> None:
    if not name:
        raise SemanticError("the name of a model is missing", hint="/model NAME; /models lists them")
    shell.execute(f"DESCRIBE MODEL {name};")


def _jobs(shell: Shell, _: str) -> None:
    from sqlflow_edl.backends.find import summaries
    from sqlflow_edl.backends.report import list_rows
    from sqlflow_edl.display.job import write_jobs

    with shell.screen.page() as page:
        footer = write_jobs(list(list_rows(summaries())), page, "a wider terminal has room")
    shell.screen.say(footer)


JOB_ACTIONS = ("log", "pause", "resume", "cancel")


def _job(shell: Shell, text: str) -> None:
    from sqlflow_edl.backends.find import cancel, find, logs
    from sqlflow_edl.backends.report import report
    from sqlflow_edl.display.job import write_job, write_logs

    match text.split():
        case [job_id]:
            handle = find(job_id)
            with shell.screen.page() as page:
                write_job(report(handle.folder, handle.details()), page)
        case [job_id, "log", *instance] if len(instance) < 2:
            log_lines = logs(find(job_id), *instance)
            with log_lines as lines, shell.screen.page() as page:
                write_logs(lines, page, named=not instance)
        case [job_id, "pause"]:
            shell.screen.say(find(job_id).pause())
        case [job_id, "resume"]:
            shell.screen.say(find(job_id).resume())
        case [job_id, "cancel"]:
            job = find(job_id)
            agreed = shell.agrees(f"{job.folder.id} ends, and its progress is lost. Cancel it?")
            shell.screen.say(cancel(job) if agreed else "not cancelled")
        case []:
            raise SemanticError("the id of a job is missing", hint="/job ID; /jobs lists them")
        case _:
            raise SemanticError(
                "unknown action on a job",
                hint="/job ID, /job ID log [INSTANCE], /job ID pause, /job ID resume or /job ID cancel",
            )


def _estimators(shell: Shell, name: str) -> None:
    from sqlflow_edl.analysis.catalog import MODELS

    if not name:
        rows = [(entry.name, entry.doc) for entry in MODELS.entries.values()]
        shell.screen.table(("estimator", "description"), rows)
        return
    entry = MODELS.get(name, None)
    shell.screen.say(f"{entry.name}: {entry.doc}")
    if entry.params:
        shell.screen.table(("attribute", "description"), [(row.name, row.doc) for row in entry.params])


def _source(shell: Shell, name: str) -> None:
    shell.execute(sql_files.read(path_of(name)), name)


def _edit(shell: Shell, name: str) -> None:
    editor = arguments(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with TemporaryDirectory(prefix="sqlflow-edl-") as folder:
        path = path_of(name) if name else Path(folder) / "statement.sql"
        if not name:
            path.write_text(shell.last, encoding="utf-8")
        _run([*editor, str(path)], "set EDITOR to an installed editor")
        shell.write(sql_files.read(path).rstrip("\n"))


def _system(shell: Shell, text: str) -> None:
    if not text:
        raise SemanticError("the name of a program is missing", hint="/system ls -l")
    code = _run(arguments(text))
    if code:
        shell.screen.say(f"exit code {code}" if code > 0 else f"terminated by {signal.Signals(-code).name}")


def _run(command: Sequence[str], hint: str | None = None) -> int:
    """Run a program in the terminal, where Ctrl-C is its own; return its exit code.

    Raises SQLFlowError if it cannot start.
    """
    try:
        with subprocess.Popen(command) as process, ignore_signal(signal.SIGINT):  # noqa: S603
            return process.wait()
    except OSError as error:
        raise SQLFlowError(f"cannot start {command[0]}: {error.strerror}", hint=hint) from None


_WATCH = 5.0  # seconds between the end of a run and the next one
_SECONDS = re.compile(r"(?P<seconds>\d+(?:\.\d+)?)(?:\s+|\Z)")


def _watch(shell: Shell, text: str) -> None:
    """Repeat a statement until it fails or the user interrupts it."""
    timed = _SECONDS.match(text)
    seconds = float(timed["seconds"]) if timed else _WATCH
    statement = (text[timed.end() :] if timed else text) or shell.last
    if not statement:
        raise SemanticError("there is no statement to repeat", hint="/watch 2 SELECT count(*) FROM t")
    if not seconds:
        raise SemanticError("the time between two runs must be above 0", hint="/watch 0.5")
    shell.last = statement
    with shell.screen.without_pager():
        while True:
            shell.screen.say(f"{datetime.now():%H:%M:%S}, every {seconds:g} s, Ctrl-C ends")
            if not shell.execute(statement):
                return
            time.sleep(seconds)


def _favourite(shell: Shell, text: str) -> None:
    name, *rest = text.split(maxsplit=1)[:2] or [""]
    if not name:
        rows = list(favourites.favourites().items())
        shell.screen.table(("name", "statement"), rows)
        shell.screen.say("/f NAME ARGUMENT … runs one" if rows else "none yet; /fs NAME STATEMENT makes one")
        return
    statement = favourites.find(name)
    with shell.connection.session() as session:
        dialect = dialect_named(session.dialect)
    shell.last = favourites.fill_parameters(statement, favourites.arguments("".join(rest)), dialect)
    shell.screen.say(shell.last)
    shell.execute(shell.last)


def _save_favourite(shell: Shell, text: str) -> None:
    name, *rest = text.split(maxsplit=1)[:2] or [""]
    statement = rest[0] if rest else shell.last
    if not name or not statement:
        raise SemanticError(
            "the name or the statement is missing",
            hint="/fs top SELECT * FROM t LIMIT $1; without a statement, the last one is taken",
        )
    favourites.save(name, statement)
    needed = favourites.parameters(statement, dialect_named(shell.connection.dialect))
    shell.screen.say(f"/f {name}{''.join(f' ${i + 1}' for i in range(needed))} runs it")


def _drop_favourite(shell: Shell, name: str) -> None:
    if not name:
        raise SemanticError("the name of a favourite is missing", hint="/fd NAME; /f lists them")
    favourites.remove(name)
    shell.screen.say(f"removed {name}")


def _use(shell: Shell, url: str) -> None:
    if not url:
        raise SemanticError("the URL of a data source is missing", hint="/use duckdb:///other.duckdb")
    shell.use(url)
    shell.screen.say(f"using {redacted(url)}")


def _format(shell: Shell, name: str) -> None:
    if name and name not in TEXT_FORMATS:
        raise SemanticError(f"there is no format {name}", hint=did_you_mean(name, TEXT_FORMATS))
    shell.screen.format = name or shell.screen.format
    shell.screen.say(f"format {shell.screen.format}")


def _pager(shell: Shell, text: str) -> None:
    shell.screen.pager = arguments(text) or default_pager()
    shell.screen.say(f"pager {shlex.join(shell.screen.pager)}" if shell.screen.pager else "no pager")


def _no_pager(shell: Shell, _: str) -> None:
    shell.screen.pager = ()
    shell.screen.say("no pager")


def _types(shell: Shell, _: str) -> None:
    shell.screen.types = not shell.screen.types
    shell.screen.say(f"types {'on' if shell.screen.types else 'off'}")


def _once(shell: Shell, name: str) -> None:
    path = path_of(name) if name else None
    shell.screen.once(path)
    as_ = format_of(path) or shell.screen.format if path else ""
    shell.screen.say(f"the next rows are written to {path} as {as_}" if path else "the next rows are shown")


def _tee(shell: Shell, name: str) -> None:
    shell.screen.tee(path_of(name) if name else None)
    shell.screen.say(f"input and output are written to {name} too" if name else "no longer writing to a file")


def _timing(shell: Shell, _: str) -> None:
    shell.screen.timing = not shell.screen.timing
    shell.screen.say(f"timing {'on' if shell.screen.timing else 'off'}")


def _rehash(shell: Shell, _: str) -> None:
    shell.connection.refresh()


def _status(shell: Shell, _: str) -> None:
    with shell.connection.session() as session:
        rows = [
            ("sqlflow-edl", VERSION),
            ("source", session.source.url),
            ("dialect", session.dialect),
            ("models in", session.registry.url),
        ]
    catalog = shell.connection.catalog
    rows += [
        ("tables", f"{len(catalog.tables):,}"),
        ("models", f"{len(catalog.models):,}"),
        ("format", shell.screen.format),
        ("pager", shlex.join(shell.screen.pager)),
        ("timing", "on" if shell.screen.timing else "off"),
        ("types", "on" if shell.screen.types else "off"),
    ]
    shell.screen.table(("fact", "value"), rows)


def _quit(shell: Shell, _: str) -> None:
    raise Leave


LISTED = {
    "help": Command("[TOPIC]", "this list, or the syntax of a statement or clause", _help),
    "l": Command("", "the databases", _databases),
    "dt": Command("", "the tables", _tables),
    "d": Command("TABLE", "the columns of a table", _columns),
    "models": Command("[PATTERN]", "the models, all versions; p% selects names that begin with p", _models),
    "model": Command("NAME", "all facts about a model", _model),
    "jobs": Command("", "the jobs, oldest first", _jobs),
    "job": Command(
        "ID [log [INSTANCE] | pause | resume | cancel]",
        "progress of a job; its output; stop, resume, end it",
        _job,
    ),
    "estimators": Command("[NAME]", "the estimators of TRAIN, or the attributes of one", _estimators),
    "source": Command("FILE", "run the statements of a file", _source),
    "watch": Command("[SECONDS] [STATEMENT]", "repeat a statement, or the last one, until Ctrl-C", _watch),
    "f": Command("[NAME [ARGUMENT …]]", "list the favourites, or run one", _favourite),
    "fs": Command("NAME [STATEMENT]", "keep a statement, or the last one, as a favourite", _save_favourite),
    "fd": Command("NAME", "remove a favourite", _drop_favourite),
    "edit": Command("[FILE]", "edit the next statement with $EDITOR, starting from the last one", _edit),
    "system": Command("PROGRAM …", "run a program, without a shell", _system),
    "use": Command("URL", "change the data source", _use),
    "format": Command("[NAME]", f"format of rows: {', '.join(TEXT_FORMATS)}", _format),
    "types": Command("", "show or hide the types of columns", _types),
    "once": Command(
        "[FILE]", "write the next rows to a file, in the format of its suffix: .csv, .json, …", _once
    ),
    "tee": Command("[FILE]", "write input and output to a file too; without FILE, stop", _tee),
    "pager": Command("[COMMAND]", "set the pager for results that are taller than the terminal", _pager),
    "nopager": Command("", "show results without a pager", _no_pager),
    "timing": Command("", "show or hide the duration of statements", _timing),
    "rehash": Command("", "refresh the tables, columns and models for completion", _rehash),
    "status": Command("", "the data source and the settings", _status),
    "quit": Command("", "leave; also exit and Ctrl-D", _quit),
}
COMMANDS = LISTED | {"q": LISTED["quit"], "exit": LISTED["quit"], "?": LISTED["help"], "h": LISTED["help"]}


def find_command(name: str) -> Command:
    """Find the command of that name. Raises SQLFlowError if there is none."""
    if command := COMMANDS.get(name):
        return command
    hint = (
        did_you_mean(f"/{name}", [f"/{command_name}" for command_name in COMMANDS], list_up_to=0)
        or "/help lists them"
    )
    raise SQLFlowError(f"there is no command /{name}", hint=hint)
