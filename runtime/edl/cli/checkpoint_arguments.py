"""Options of `edl checkpoints` and `sqlflow checkpoints`, without what carries them out."""

from __future__ import annotations

import argparse

NEWEST = "newest"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options; the command's parser has the job as `job`."""
    action = parser.add_mutually_exclusive_group()
    action.add_argument(
        "--verify",
        action="store_true",
        help="read all files and compare them with their checksums; the exit code is 1 if one is damaged",
    )
    action.add_argument(
        "--export",
        nargs=2,
        metavar=("STEP", "FILE"),
        help=f"write the weights at a step ({NEWEST}: of the newest sound one) as a .zip model or a .safetensors file",
    )
