"""The `edl` command: run a program folder or a hand-written module, without SQL.

    edl train    --program DIR [--output FILE]
    edl evaluate --program DIR --weights ARCHIVE
    edl predict  --program DIR --weights ARCHIVE [--output FILE]
    edl train    --resume DIR [--output FILE]
    edl export   --program DIR --weights ARCHIVE --output FILE.keras|FOLDER|FILE.pt2|FILE.onnx
    edl train    --model_zoo DIR --model_def package.module.custom_model --training_data DATA [--output FILE]
    edl evaluate --model_zoo DIR --model_def … --validation_data DATA --weights ARCHIVE
    edl predict  --model_zoo DIR --model_def … --prediction_data DATA --weights ARCHIVE [--output FILE]
    edl export   --model_zoo DIR --model_def … --prediction_data DATA --weights ARCHIVE --output FILE
    edl train    --on kubernetes[:PROFILE] --model_zoo DIR --model_def … --training_data DATA [--output FILE]
    edl fetch    JOB [--output FILE]
    edl checkpoints JOB [--verify | --export STEP FILE]
    edl run      [--workers N] [--max_restarts N] script.py [argument …]
    edl quota    DIR [--slots N]

A module's rows are read from files (see `edl.data.files`), or by its own reader. A program's are pinned by its
own reader.py, `pin(folder, *, seed, shuffle)`, and validation rows with a query of their own by its
`pin_held_out(folder)`. Metrics and predictions are written to standard output, progress and messages to standard
error. Nothing heavy is imported before the arguments are checked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from traceback import format_exception
from typing import NoReturn, get_args

from edl import exit_codes
from edl.cli import checkpoint_arguments, place, quota, script
from edl.cli.arguments import (
    add_model,
    add_training,
    check_flags,
    check_resume,
    check_use,
    list_flags,
    positive,
    waiting_steps,
)
from edl.cli.cluster_arguments import add_servers, add_workers
from edl.cli.foreign_options import DLROVER, ELASTICDL, TORCHRUN, translate_options
from edl.cli.streams import outlasting_readers
from edl.errors import SQLFlowError
from edl.installation import VERSION
from edl.jobs.outcome import JobCancelledError, JobInterruptedError
from edl.jobs.termination import TerminatedError, terminating
from edl.spec.job import Device

_CODES: Mapping[type[SQLFlowError], int] = {
    JobCancelledError: exit_codes.INTERRUPTED,
    JobInterruptedError: exit_codes.TERMINATED,
}


def main(arguments: Sequence[str] | None = None) -> int:
    try:
        options = _options(sys.argv[1:] if arguments is None else arguments)
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        return exit_codes.USAGE
    try:
        with outlasting_readers():
            return _run(options)
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        return exit_codes.FAILED


def run_program(file: str) -> NoReturn:
    """Run the program of a file in its folder, as its job.json says, with the arguments of this process; then exit."""
    from edl.program import read_spec

    folder = Path(file).absolute().parent
    try:
        kind = read_spec(folder).kind
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        sys.exit(exit_codes.FAILED)
    sys.exit(main([kind, "--program", str(folder), *sys.argv[1:]]))


def _run(options: argparse.Namespace) -> int:
    """Run the command, and report its errors. Return the exit code."""
    try:
        with terminating(cancels=getattr(options, "on_term", "") == "cancel"):
            _command(options.kind)(options)
    except SQLFlowError as error:
        if getattr(options, "debug", False):
            traceback = getattr(error, "traceback", "") or "".join(format_exception(error))
            print(traceback.rstrip(), file=sys.stderr)
        print(error.report, file=sys.stderr)
        return _CODES.get(type(error), exit_codes.FAILED)
    except TerminatedError as error:
        print(error.report, file=sys.stderr)
        return exit_codes.TERMINATED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED
    return exit_codes.OK


def _command(kind: str) -> Callable[[argparse.Namespace], None]:
    if kind == "quota":
        return quota.run
    if kind == "run":
        return script.run
    if kind == "checkpoints":
        from edl.cli import checkpoints

        return checkpoints.run
    from edl.cli.commands import run_command

    return run_command


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """Parse the options. Raises SemanticError for an unknown argument or an inconsistent combination."""
    parser, commands = _parser()
    command = commands.get(arguments[0]) if arguments else None
    if command is not None:
        arguments = [
            arguments[0],
            *_translate_arguments(arguments[1:], command, is_script=arguments[0] == "run"),
        ]
    options = parser.parse_args(arguments)
    if options.kind in _OF_ROWS:
        place.check(options)
    if getattr(options, "resume", None) is not None:
        check_resume(arguments[1:])
    elif options.kind in _OF_MODULES:
        check_use(options)
    return options


def _translate_arguments(
    arguments: Sequence[str], command: argparse.ArgumentParser, *, is_script: bool
) -> list[str]:
    """Return the arguments with options of other projects in our words. Raises SemanticError for unknown ones."""
    origins = (TORCHRUN, DLROVER) if is_script else (ELASTICDL,)
    ours = script.before_script(arguments, command, origins) if is_script else arguments
    translated, notes = translate_options(ours, origins, list_flags(command))
    check_flags(translated, command)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    return [*translated, *arguments[len(ours) :]]


def _parser() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    """Return the main parser, and the parser of each command."""
    parser = argparse.ArgumentParser(
        prog="edl",
        description="Train, evaluate or predict with a program folder (model.py, job.json and reader.py), or with a "
        "hand-written module of a model zoo.",
        epilog=f"exit codes:\n{exit_codes.HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"edl {VERSION}")
    parsers = parser.add_subparsers(dest="kind", required=True, metavar="COMMAND")
    commands = {
        name: parsers.add_parser(name, help=help_, allow_abbrev=False) for name, help_ in _COMMANDS.items()
    }
    for name, command in commands.items():
        if name not in _OF_NO_PROGRAM:
            _add_common(command, name)
        if name in _OF_MODULES:
            add_model(command, name)
        if name in _OF_ROWS:
            place.add_arguments(command)
    _add_train(commands["train"])
    quota.add_arguments(commands["quota"])
    script.add_arguments(commands["run"])
    output = "a .csv, .parquet or .arrow file (default: CSV on standard output)"
    commands["predict"].add_argument("--output", type=Path, metavar="FILE", help=output)
    commands["fetch"].add_argument("job", metavar="JOB", help="its id, or the end of it")
    output = "archive of a training, or file of predictions (default: as the job had it; model.zip, standard output)"
    commands["fetch"].add_argument("--output", type=Path, metavar="FILE", help=output)
    commands["checkpoints"].add_argument("job", metavar="JOB", help="its id, the end of it, or its folder")
    checkpoint_arguments.add_arguments(commands["checkpoints"])
    output = "FILE.keras or a folder (Keras), FILE.pt2 or FILE.onnx (PyTorch)"
    commands["export"].add_argument("--output", type=Path, metavar="FILE", required=True, help=output)
    return parser, commands


_COMMANDS = {
    "train": "train a model and write its archive",
    "evaluate": "evaluate a trained model",
    "predict": "predict with a trained model",
    "export": "write a trained model for use without this package",
    "fetch": "write the output of a job with --on, after its end, or of one here that could not write it",
    "checkpoints": "list the checkpoints of a job, verify them, or write one as a model",
    "run": "run a script in several workers, with the variables that torchrun sets, and restart them",
    "quota": "create or resize a quota of slots that jobs share, and list the jobs with their slots",
}
_OF_NO_PROGRAM = ("checkpoints", "fetch", "quota", "run")
_OF_ROWS = ("train", "evaluate", "predict")
_OF_MODULES = (*_OF_ROWS, "export")


def _add_common(parser: argparse.ArgumentParser, kind: str) -> None:
    parser.add_argument("--program", type=Path, metavar="DIR", help="program folder")
    if kind != "export":
        add_workers(parser, kind)
    parser.add_argument(
        "--threads",
        type=positive,
        metavar="N",
        help="threads of the framework (default: the number of cores)",
    )
    if kind != "export":
        parser.add_argument(
            "--device",
            choices=get_args(Device),
            help="device of a network (default: auto, a GPU if there is one)",
        )
    parser.add_argument(
        "--debug",
        action="store_true",
        help="print the traceback of an error; for an error in your code, only its own frames",
    )
    parser.add_argument(
        "--weights",
        "--checkpoint_dir_for_init",
        type=Path,
        required=kind != "train",
        metavar="FILE",
        help=f"{'initial ' * (kind == 'train')}weights: a model's archive, its weights.safetensors, or a checkpoint",
    )


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help="archive of the model (default: model.zip; with --resume the file that the job was to write)",
    )
    parser.add_argument(
        "--resume",
        metavar="DIR",
        help="continue a training that was interrupted, failed or died: its job folder, or its id in sqlflow jobs",
    )
    parser.add_argument(
        "--epochs",
        "--num_epochs",
        type=positive,
        metavar="N",
        help="number of epochs (default for programs: that of job.json)",
    )
    parser.add_argument(
        "--batch-size", "--minibatch_size", type=positive, metavar="N", help="rows per optimizer step"
    )
    parser.add_argument(
        "--seed", type=int, metavar="N", help="random seed (default for programs: that of job.json)"
    )
    for name, text in (
        ("embedding_min_count", "steps that train with an id before it gets a row in a row table"),
        ("embedding_max_rows", "rows of a row table, beyond which the least recently trained are dropped"),
        ("embedding_ttl_steps", "steps after which a row that none of them has trained is dropped"),
    ):
        kind = waiting_steps if name == "embedding_min_count" else positive
        parser.add_argument(f"--{name}", type=kind, metavar="N", help=text)
    parser.add_argument(
        "--checkpoint_steps",
        type=positive,
        metavar="N",
        help="write a checkpoint every N steps",
    )
    parser.add_argument(
        "--keep_checkpoint_max",
        type=int,
        metavar="N",
        help="checkpoints to retain, at least 2; 0 for all",
    )
    add_servers(parser)
    add_training(parser)


if __name__ == "__main__":
    sys.exit(main())
