"""Command `sqlflow`: one subcommand per way to use it. Data goes to stdout, narration to stderr.

Nothing heavy is imported here, so that `sqlflow --help` answers before a database driver or a parser could
load.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from edl.cli import checkpoint_arguments
from edl.cli.streams import discard_writes, open_missing
from edl.data import pandas_later
from edl.errors import SemanticError
from edl.extension_loader import ExtensionError, load
from edl.jobs.cores import limit_cores
from edl.jobs.termination import TerminatedError, terminating
from sqlflow_edl.cli import backend, completion, config, exit_codes, image, init
from sqlflow_edl.cli import help as help_pages
from sqlflow_edl.cli.arguments import (
    Commands,
    Parser,
    add_command,
    display,
    duration,
    index,
    model_packages,
    model_store,
    parse_arguments,
    positive,
    priority,
    seconds,
    subcommand,
    threads,
    variables,
    workers,
)
from sqlflow_edl.cli.models import export_options, listening
from sqlflow_edl.cli.program import run_options
from sqlflow_edl.cli.source import ask_password, password_prompt
from sqlflow_edl.display.output import FORMATS

EPILOG = f"""\
The data source is a URL such as duckdb:///demo.duckdb, given by --source or the variable SQLFLOW_SOURCE.

exit codes:
{exit_codes.HELP}
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return the exit code."""
    open_missing()
    parser = _parser()
    typed = sys.argv[1:] if argv is None else argv
    arguments = run_options.complete_arguments(typed, at_terminal=sys.stdin.isatty())
    options = parse_arguments(parser, arguments)
    options.arguments, options.done = arguments[1:], {}
    _set_environment(options)
    at_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if options.command is None and at_terminal and config.is_source_set():
        options = parser.parse_args(["console"])
    if options.command is None:
        parser.print_help()
        return exit_codes.USAGE
    if not config.apply_file(options):
        return exit_codes.USAGE
    try:
        if getattr(options, "threads", None):
            limit_cores(options.threads)
        with terminating(cancels=getattr(options, "on_term", "") == "cancel"), password_prompt(at_terminal):
            if getattr(options, "password", False) and (wrong := ask_password(options)):
                print(f"sqlflow {options.command}: {wrong}", file=sys.stderr)
                return exit_codes.USAGE
            return _load(options.command)(options)
    except (TerminatedError, SemanticError, ExtensionError) as error:
        print(error.report, file=sys.stderr)
        in_environment = not isinstance(error, TerminatedError)
        return exit_codes.USAGE if in_environment else exit_codes.TERMINATED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED
    except BrokenPipeError:  # the reader of our output, such as `head`, has exited
        discard_writes(sys.stdout)
        return exit_codes.OK


def _set_environment(options: argparse.Namespace) -> None:
    """Set the variables that options stand for, which every process of a job inherits."""
    if getattr(options, "no_color", False):
        os.environ |= {"NO_COLOR": "1", "FORCE_COLOR": ""}
    if getattr(options, "model_packages", None) is not None:
        from edl.program.model_packages import VARIABLE

        os.environ[VARIABLE] = options.model_packages


# Subcommand -> module.function. Only the called one is imported.
COMMANDS = {
    "run": "cli.program.run.run",
    "retry": "cli.program.retry.retry",
    "console": "cli.console.console",
    "compile": "cli.program.compile.compile_",
    "export": "cli.models.export.export",
    "samples": "cli.samples.samples",
    "init": "cli.init.init",
    "jobs": "cli.jobs.jobs.jobs",
    "job": "cli.jobs.job.job",
    "logs": "cli.jobs.logs.logs",
    "attach": "cli.jobs.attach.attach",
    "pause": "cli.jobs.pause.pause_",
    "move": "cli.jobs.move.move_",
    "resume": "cli.jobs.resume.resume_",
    "checkpoints": "cli.jobs.checkpoints.checkpoints_",
    "scale": "cli.jobs.scale.scale_",
    "cancel": "cli.jobs.cancel.cancel",
    "image": "cli.image.image",
    "serve": "extensions.serving.serve.serve",
    "ui": "extensions.web.ui.ui",
    "report": "extensions.web.report.report",
    "copy": "cli.models.copy.copy",
    "import": "extensions.imported.command.import_",
    "retrain": "cli.models.retrain.retrain",
    "lint": "cli.program.lint.lint",
    "fmt": "cli.program.fmt.fmt",
    "language-server": "extensions.editor.language_server.language_server",
    "doctor": "cli.doctor.doctor",
    "help": "cli.help.help_",
    "config": "cli.config.config",
    "completion": "cli.completion.completion",
}


def _load(command: str) -> Callable[[argparse.Namespace], int]:
    pandas_later.postpone()
    module, _, function = COMMANDS[command].rpartition(".")
    loaded: Callable[[argparse.Namespace], int] = load(f"sqlflow_edl.{module}", function)
    return loaded


def _parser() -> argparse.ArgumentParser:
    from edl.installation import VERSION

    parser: argparse.ArgumentParser = Parser(
        prog="sqlflow",
        description="Train, use and measure models with SQL.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"sqlflow-edl {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    _add_run(commands)
    display(subcommand(commands, "retry", "run what has not succeeded of the last failed program"))
    _add_console(commands)
    _add_compile(commands)
    _add_export(commands)
    _add_serve(commands)
    _add_ui(commands)
    _add_report(commands)
    _add_copy(commands)
    _add_import(commands)
    _add_retrain(commands)
    _add_lint(commands)
    _add_fmt(commands)
    _add_language_server(commands)
    add_command(commands, "samples", "write sample tables to a database; creates a missing database file")
    display(init.add_command(commands))
    _add_job_commands(commands)
    image.add_command(commands)
    _add_doctor(commands)
    help_pages.add_command(commands)
    config.add_command(commands)
    completion.add_command(commands)
    return parser


def _add_run(commands: Commands) -> None:
    run = add_command(commands, "run", "run the statements of a program")
    run_options.add_options(run)
    _results(run)
    variables(run)
    model_store(run)
    model_packages(run)
    _add_ways(run)


def _add_console(commands: Commands) -> None:
    """Add the prompt. Without a terminal it is `run -` with that command's defaults."""
    console = add_command(commands, "console", "open a prompt for statements, see sqlflow help console")
    _results(console)
    model_store(console)
    model_packages(console)
    _add_ways(console)
    run_options.set_defaults(console)


def _results(command: argparse.ArgumentParser) -> None:
    command.add_argument("--create", action="store_true", help="create a missing database file")
    command.add_argument(
        "--format",
        choices=tuple(FORMATS),
        help="format of result sets (default: table, or with -o the format of the file's suffix)",
    )


def _add_ways(run: argparse.ArgumentParser) -> None:
    """Add the options of how and where jobs run."""
    threads(run)
    run.add_argument(
        "--workers",
        metavar="N",
        type=workers,
        help="run every job with a master and N worker processes on this machine; 0: in one process",
    )
    run.add_argument(
        "--quota",
        metavar="DIR",
        type=Path,
        help="folder of slots that jobs with workers share, see edl quota (default: EDL_QUOTA)",
    )
    run.add_argument(
        "--priority",
        metavar="P",
        type=priority,
        help="priority of the jobs in their quota: low, normal, high or a number; higher is more urgent",
    )
    run.add_argument(
        "--deadline",
        metavar="TIME",
        type=duration,
        default=0.0,
        help="stop a job that is still running after this time, such as 90m or 2h; a training can be resumed",
    )
    run.add_argument(
        "--on-term",
        choices=("keep", "cancel"),
        default="keep",
        help="what SIGTERM does to jobs: keep (default) a training, to be resumed; or cancel it",
    )
    backend.add_options(run)


def _add_compile(commands: Commands) -> None:
    compile_ = add_command(
        commands, "compile", "write the training programs of a .sql file without running them"
    )
    compile_.add_argument("files", nargs="+", metavar="FILE", help="a .sql file; - is standard input")
    compile_.add_argument("-o", "--output", metavar="DIR", required=True, help="folder for the programs")
    compile_.add_argument(
        "--schema",
        metavar="FILE",
        help="read columns, and rows if it has some, from the CREATE and INSERT statements of a file; the data source "
        "is named in the programs and not opened",
    )
    variables(compile_)
    model_store(compile_)
    model_packages(compile_)


def _add_export(commands: Commands) -> None:
    command = add_command(commands, "export", "write a trained model for use without this package")
    command.add_argument("model", metavar="MODEL", help="name of the model, or name@version")
    export_options.add_options(command)
    model_store(command)
    model_packages(command)


def _add_serve(commands: Commands) -> None:
    serve = add_command(
        commands, "serve", "answer requests for predictions over HTTP, see sqlflow help serving"
    )
    serve.add_argument(
        "--model",
        metavar="MODEL",
        action="append",
        default=[],
        help="name of a model, or name@version, which is never replaced by a newer one, or name@tag; may be repeated "
        "(default: all)",
    )
    listening.add_options(serve, 8000, "requests must send as a bearer token")
    limits = serve.add_argument_group("limits of a request")
    limits.add_argument(
        "--max-bytes", metavar="N", type=positive, default=64 << 20, help="of its body (64 MiB)"
    )
    limits.add_argument("--max-rows", metavar="N", type=positive, default=1_000_000, help="rows (1,000,000)")
    limits.add_argument(
        "--timeout", metavar="SECONDS", type=seconds, default=30.0, help="until its answer (30)"
    )
    serve.add_argument(
        "--poll",
        metavar="SECONDS",
        type=seconds,
        default=5.0,
        help="between two looks for newer versions (5)",
    )
    threads(serve)
    model_store(serve)
    model_packages(serve)


def _add_ui(commands: Commands) -> None:
    ui = add_command(commands, "ui", "show jobs and models in a browser, see sqlflow help ui")
    listening.add_options(ui, 8080, "visitors sign in with")
    model_store(ui)


def _add_report(commands: Commands) -> None:
    report = add_command(commands, "report", "write a page about a model as one HTML file")
    report.add_argument("model", metavar="MODEL", help="name of the model, or name@version")
    report.add_argument("-o", "--output", metavar="FILE", type=Path, help="by default MODEL.html")
    model_store(report)


def _add_copy(commands: Commands) -> None:
    copy = add_command(
        commands, "copy", "copy a trained model to another data source or model store, or to a file and back"
    )
    copy.add_argument(
        "model",
        metavar="MODEL",
        help="name of the model, name@version, name@tag, or FILE.zip, which copy wrote",
    )
    copy.add_argument(
        "--to",
        metavar="URL",
        required=True,
        help="data source, such as sqlite:///shop.sqlite; folder or URL of a model store; or a new FILE.zip",
    )
    copy.add_argument("--as", dest="name", metavar="NAME", help="name of the copy (default: the model's)")
    copy.add_argument(
        "--keep-current",
        action="store_true",
        help="if there is a model of that name, its current version stays the current one",
    )
    copy.add_argument("--create", action="store_true", help="create a missing database file")
    model_store(copy)


def _add_import(commands: Commands) -> None:
    command = add_command(
        commands, "import", "store a model that was trained elsewhere: a file of ONNX, LightGBM or XGBoost"
    )
    command.add_argument("file", metavar="FILE", help="the file, see sqlflow help imported")
    command.add_argument("--as", dest="name", metavar="NAME", required=True, help="name of the model")
    command.add_argument(
        "--input-columns",
        metavar="COLUMNS",
        help="columns that it reads, in the order of its training, with commas; if the file does not name them",
    )
    command.add_argument("--label", metavar="COLUMN", help="column that it predicts (default: prediction)")
    command.add_argument(
        "--classes", metavar="CLASSES", help="its classes, in the order of its scores, with commas"
    )
    command.add_argument("--output", metavar="OUTPUT", help="output of an ONNX file that predicts")
    command.add_argument(
        "--output-kind",
        choices=("number", "probabilities", "logits", "class"),
        help="what that output has, if the file does not tell",
    )
    command.add_argument("--rounds", metavar="N", type=positive, help="rounds of XGBoost that predict")
    command.add_argument("--create", action="store_true", help="create a missing database file")
    model_store(command)


def _add_retrain(commands: Commands) -> None:
    """Add the command; it runs the statement with the defaults of `run`."""
    retrain = add_command(
        commands, "retrain", "run the statement that trained a model again, as a new version"
    )
    retrain.add_argument("model", metavar="MODEL", help="name of the model, or name@version")
    retrain.add_argument(
        "--if-rows",
        metavar="N",
        type=positive,
        help="only if its query has at least N rows more than when it was trained; if not, the exit code is 3",
    )
    retrain.add_argument(
        "--if-drift",
        action="store_true",
        help="only if a column of its query has drifted from the rows it was trained on; if not, the exit code is 3",
    )
    retrain.add_argument(
        "--drift-limit",
        metavar="PSI",
        type=index,
        help="population stability index from which on a column has drifted (default 0.25); implies --if-drift",
    )
    retrain.add_argument(
        "--if-better",
        action="store_true",
        help="make the new version the current one only if it is at least as good (train.activate = better)",
    )
    model_store(retrain)
    model_packages(retrain)
    _add_ways(retrain)
    run_options.set_defaults(retrain)
    retrain.set_defaults(create=False, format=None)
    retrain.add_argument(
        "--dry-run", action="store_true", help="show the plan; nothing is trained or written"
    )
    retrain.add_argument("--json", action="store_true", help="write a JSON object, as `sqlflow run` does")
    retrain.add_argument("--quiet", action="store_true", help="show errors only, no progress")


def _add_lint(commands: Commands) -> None:
    lint = add_command(commands, "lint", "report errors and warnings of programs, which do not run")
    lint.add_argument("files", nargs="+", metavar="FILE", help="a .sql file; - is standard input")
    lint.add_argument("--json", action="store_true", help="print a list of objects")
    lint.add_argument(
        "--schema",
        metavar="FILE",
        help="check columns against the tables that the CREATE statements of a file make in memory, without a "
        "data source",
    )
    variables(lint)
    model_store(lint)
    model_packages(lint)


def _add_fmt(commands: Commands) -> None:
    fmt = add_command(commands, "fmt", "lay out programs in place; their queries stay as they are written")
    fmt.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="a .sql file; - is standard input, written to standard output",
    )
    fmt.add_argument(
        "--check", action="store_true", help="write nothing; exit code 1 if a layout would change"
    )
    fmt.add_argument("--diff", action="store_true", help="write nothing; print what would change")


def _add_language_server(commands: Commands) -> None:
    server = add_command(
        commands,
        "language-server",
        "serve errors, completion and layout to an editor, see sqlflow help editor",
    )
    model_store(server)
    model_packages(server)


def _add_doctor(commands: Commands) -> None:
    doctor = subcommand(
        commands,
        "doctor",
        "report what is installed and what can run",
        "Report versions, the machine, libraries, and what can run with them. The data source is tried if it is given.",
    )
    doctor.add_argument(
        "--source",
        metavar="URL",
        default=os.environ.get("SQLFLOW_SOURCE"),
        help="URL of a data source to try",
    )
    doctor.add_argument("--format", choices=("table", "csv", "json"), default="table")


def _add_job_commands(commands: Commands) -> None:
    jobs = _job_command(commands, "jobs", "list the jobs, oldest first", of_one=False)
    jobs.add_argument("--format", choices=("table", "csv", "json"), default="table")
    jobs.add_argument(
        "--clean",
        action="store_true",
        help="first remove the rows and checkpoints of jobs that failed or died, which then cannot be resumed",
    )
    jobs.add_argument(
        "--remove-after",
        metavar="TIME",
        type=duration,
        help="first remove the folders and logs of jobs that ended at least this long ago, such as 30d",
    )
    job = _job_command(commands, "job", "show the progress of a job, with its tasks and processes")
    job.add_argument("--format", choices=("table", "json"), default="table")
    job.add_argument("--watch", action="store_true", help="show it on the whole terminal until it ends")
    logs = _job_command(commands, "logs", "print the output of the instances of a job")
    logs.add_argument("instance", nargs="?", metavar="INSTANCE", help="such as worker-0 (default: all)")
    logs.add_argument("-f", "--follow", action="store_true", help="follow the output until the job ends")
    _job_command(commands, "attach", "follow a job until it ends; Ctrl-C leaves it running")
    _job_command(commands, "pause", "stop a job after a checkpoint, so that it can be resumed")
    resume = _job_command(
        commands,
        "resume",
        "continue a paused job, or a training that failed or died, from its last checkpoint; or store the model of one "
        "that could not do it",
    )
    resume.add_argument("--detach", action="store_true", help="do not follow the job")
    move = _job_command(commands, "move", "continue a training at another place, from its last step")
    move.add_argument(
        "--to",
        metavar="PLACE",
        required=True,
        help="local, kubernetes or kubernetes:PROFILE; with --namespace another namespace of the cluster",
    )
    move.add_argument("--detach", action="store_true", help="do not follow the job")
    backend.add_settings(move.add_argument_group("jobs on Kubernetes"))
    checkpoint_arguments.add_arguments(
        _job_command(
            commands, "checkpoints", "list the checkpoints of a job, verify them, or write one as a model"
        )
    )
    scale = _job_command(
        commands, "scale", "change the number of workers, or of parameter servers, of a running job"
    )
    for name, what in (("--workers", "workers"), ("--servers", "parameter servers")):
        scale.add_argument(
            name, metavar="N", type=partial(workers, least=1), default=None, help=f"number of {what}"
        )
    _job_command(commands, "cancel", "cancel a running job; its log is kept, but not on Kubernetes")


def _job_command(commands: Commands, name: str, text: str, *, of_one: bool = True) -> argparse.ArgumentParser:
    """Add a command on jobs of this machine, which needs no data source."""
    parser = subcommand(commands, name, text)
    if of_one:
        parser.add_argument("id", metavar="ID", help="id of the job; its beginning or end is enough")
    display(parser)
    return parser


if __name__ == "__main__":
    sys.exit(main())
