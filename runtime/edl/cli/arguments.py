"""Arguments of `edl train | evaluate | predict --model_def`, with ElasticDL's names where they still apply.

Arguments cannot be abbreviated. An unknown one is an error with the most similar one. `foreign_options` has the
other ones of ElasticDL, which silently ignored unknown arguments.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from edl.errors import SemanticError, nearest
from edl.spec.job import MOST_COUNT, Precision

FUNCTIONS = (
    "feed",
    "dataset",
    "stream",
    "loss",
    "optimizer",
    "eval_metrics_fn",
    "callbacks",
    "custom_data_reader",
)
DATA = {
    "train": "training_data",
    "evaluate": "validation_data",
    "predict": "prediction_data",
    "export": "prediction_data",
}

_DATA = "a file, folder, pattern or URL: RecordIO, CSV or Parquet"

# Arguments of model-zoo jobs only.
ZOO_ONLY = (
    "model_zoo", "model_params", "framework", "training_data", "validation_data", "prediction_data",
    "data_reader_params", *FUNCTIONS, "embedding_threshold", "num_minibatches_per_task", "max_step", "evaluation_steps",
    "evaluation_start_delay_secs", "evaluation_throttle_secs", "log_loss_steps", "job_name", "precision",
)  # fmt: skip


def add_model(parser: argparse.ArgumentParser, kind: str) -> None:
    """Add the arguments that name a hand-written module and its data."""
    group = parser.add_argument_group("module of a model zoo")
    group.add_argument(
        "--model_def",
        metavar="NAME",
        help="function or class that makes the model: package.module.custom_model",
    )
    group.add_argument("--model_zoo", type=Path, metavar="DIR", help="folder of the package (default: .)")
    group.add_argument(
        "--model_params", metavar="K=V;…", help="parameters of custom_model, such as: units=[16, 8]; kind='x'"
    )
    group.add_argument(
        "--framework", choices=("keras", "torch"), help="framework (default: the one that the module imports)"
    )
    if kind == "train":
        group.add_argument("--training_data", metavar="DATA", help=_DATA)
    if kind in ("train", "evaluate"):
        group.add_argument(
            "--validation_data",
            metavar="DATA",
            help=_DATA if kind == "evaluate" else "validation rows, in the same forms",
        )
    if kind in ("predict", "export"):
        rows = f"{_DATA}{'; some rows show the input' * (kind == 'export')}"
        group.add_argument("--prediction_data", metavar="DATA", help=rows)
    group.add_argument(
        "--data_reader_params", metavar="K=V;…", help="parameters of the module's custom_data_reader"
    )
    for name in FUNCTIONS:
        group.add_argument(
            f"--{name}",
            metavar="NAME",
            help=f"name of the {name} function (default: {name}); may be module.function",
        )
    group.add_argument(
        "--job_name", metavar="NAME", help="name of the job: letters, digits, dots, dashes and underscores"
    )


def add_training(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that only `edl train` has."""
    group = parser.add_argument_group("training of a module of a model zoo")
    group.add_argument(
        "--precision",
        choices=get_args(Precision),
        help="precision of a network's arithmetic (default: float32)",
    )
    group.add_argument(
        "--embedding_threshold",
        type=positive,
        metavar="BYTES",
        help="Keras: embedding layers of more bytes become row tables, which parameter servers share",
    )
    group.add_argument("--num_minibatches_per_task", type=positive, metavar="N", help="minibatches per task")
    group.add_argument("--max_step", type=positive, metavar="N", help="limit of optimizer steps")
    steps = "measure --validation_data every N steps, in addition to the end of each epoch"
    group.add_argument("--evaluation_steps", type=positive, metavar="N", help=steps)
    group.add_argument(
        "--evaluation_throttle_secs",
        type=seconds,
        metavar="S",
        help="measure --validation_data also every S seconds",
    )
    group.add_argument(
        "--evaluation_start_delay_secs",
        type=seconds,
        metavar="S",
        help="seconds before the first of these measurements",
    )
    group.add_argument("--log_loss_steps", type=positive, metavar="N", help="print the loss every N steps")


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


def waiting_steps(text: str) -> int:
    number = positive(text)
    if number > MOST_COUNT:
        raise argparse.ArgumentTypeError(f"{number} is above {MOST_COUNT}, up to which steps are counted")
    return number


def seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number < float("inf"):
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds")
    return number


def check_flags(arguments: Sequence[str], command: argparse.ArgumentParser) -> None:
    """Raise SemanticError for an option that the command does not have, with the most similar one."""
    flags = list_flags(command)
    for argument in arguments:
        flag = argument.partition("=")[0]
        if not flag.startswith("--") or flag == "--" or flag in flags:
            continue
        near = nearest(flag, flags)
        raise SemanticError(
            f"there is no argument {flag}", hint=f"did you mean {near}?" if near else "see --help"
        )


def list_flags(command: argparse.ArgumentParser) -> list[str]:
    """Return the long options of a command."""
    return [flag for flag in command._option_string_actions if flag.startswith("--")]


def check_use(options: argparse.Namespace) -> None:
    """Raise SemanticError unless the options name one program, or one module with its data."""
    if (options.program is None) == (options.model_def is None):
        raise SemanticError(
            "name what to run: either --program or --model_def",
            hint="--program DIR is a program folder, --model_def package.module.custom_model a hand-written module",
        )
    if options.program is not None:
        zoo_only = [name for name in ZOO_ONLY if getattr(options, name, None) is not None]
        if zoo_only:
            raise SemanticError(
                f"--{zoo_only[0]} is for hand-written modules; a program defines it itself",
                hint="edit job.json or model.py of the program, or name a module with --model_def",
            )
        return
    data = DATA[options.kind]
    if getattr(options, data) is None:
        raise SemanticError(f"--{data} is required: {_DATA}")
    if options.kind == "train" and options.validation_data is None:
        timed = ("evaluation_steps", "evaluation_throttle_secs", "evaluation_start_delay_secs")
        for name in timed:
            if getattr(options, name) is not None:
                raise SemanticError(f"--{name} needs --validation_data", hint="it names the rows to measure")


_OF_RESUME = ("--resume", "--output", "--debug", "--log_loss_steps")


def check_resume(arguments: Sequence[str]) -> None:
    """Raise SemanticError if an argument beside --resume would change the job."""
    for flag in (argument.partition("=")[0] for argument in arguments if argument.startswith("--")):
        if flag not in _OF_RESUME:
            raise SemanticError(
                f"{flag} cannot be changed: --resume continues a job as it was started",
                hint=f"with --resume you may give {', '.join(_OF_RESUME[1:])}",
            )
