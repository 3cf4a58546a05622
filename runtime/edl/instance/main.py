"""The `edl` command: run a program folder by hand, with no SQL.

    edl train    --program DIR [--output FILE]
    edl evaluate --program DIR --weights ARCHIVE
    edl predict  --program DIR --weights ARCHIVE [--output FILE]
    edl export   --program DIR --weights ARCHIVE --output FILE.keras|FOLDER|FILE.pt2|FILE.onnx

The rows are fixed by the program's own reader.py, `pin(folder, *, seed, shuffle)`, and held-out rows that have a query
of their own by its `pin_held_out(folder)`. Figures and predictions go to
standard output, progress and messages to standard error. Nothing heavy is imported before the arguments are right.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from edl import exit_codes
from edl.errors import SQLFlowError
from edl.version import VERSION


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    from edl.instance.command import run_command

    try:
        run_command(options)
    except SQLFlowError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return exit_codes.FAILED
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return exit_codes.INTERRUPTED
    return exit_codes.OK


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edl",
        description="Train, evaluate or predict with a program folder: model.py, job.json and reader.py.",
        epilog=f"exit codes:\n{exit_codes.HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"edl {VERSION}")
    commands = parser.add_subparsers(dest="kind", required=True, metavar="COMMAND")

    train = commands.add_parser("train", help="train a model and write its archive")
    _common(train)
    train.add_argument(
        "--output", type=Path, default=Path("model.zip"), help="the archive (default: %(default)s)"
    )
    train.add_argument(
        "--weights",
        type=Path,
        metavar="FILE",
        help="start from these: a model's archive, or its weights.safetensors",
    )
    train.add_argument("--epochs", type=_positive, help="instead of the number in job.json")
    train.add_argument(
        "--batch-size", type=_positive, help="rows of an optimizer step, instead of those in job.json"
    )
    train.add_argument("--seed", type=int, help="instead of the one in job.json")

    evaluate = commands.add_parser("evaluate", help="measure a trained model")
    _common(evaluate)
    _weights(evaluate)

    predict = commands.add_parser("predict", help="predict with a trained model")
    _common(predict)
    _weights(predict)
    predict.add_argument(
        "--output", type=Path, help="a .csv, .parquet or .arrow file (default: CSV on standard output)"
    )
    export = commands.add_parser("export", help="write a trained model for use without this package")
    _common(export)
    _weights(export)
    export.add_argument(
        "--output",
        type=Path,
        required=True,
        help="FILE.keras or a folder (Keras), FILE.pt2 or FILE.onnx (PyTorch)",
    )
    return parser


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--program", type=Path, required=True, metavar="DIR", help="the program folder")
    parser.add_argument("--threads", type=_positive, help="of the framework (default: the cores there are)")


def _weights(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--weights",
        type=Path,
        required=True,
        metavar="FILE",
        help="the model's archive, or its weights.safetensors",
    )


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not positive")
    return number


if __name__ == "__main__":
    sys.exit(main())
