"""Process that reads a model's file: `python -m edl.extensions.imported.reading FORMAT FILE`.

It writes JSON to its standard output: a `FileDescription`, or with the exit code 1 a `FileRefusal`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from edl.errors import SQLFlowError
from edl.extensions.imported.description import LIBRARIES, FileDescription, FileRefusal, damaged_file_error
from edl.spec.imported import FileFormat


def main() -> int:
    """Describe the file of the arguments, and return the exit code."""
    parser = argparse.ArgumentParser()
    parser.add_argument("format", choices=list(LIBRARIES))
    parser.add_argument("file", type=Path)
    options = parser.parse_args()
    try:
        answer: FileDescription | FileRefusal = _describe(options.format, options.file.read_bytes())
    except SQLFlowError as error:
        answer = FileRefusal(error.message, error.hint)
    sys.stdout.buffer.write(msgspec.json.encode(answer))
    return 0 if isinstance(answer, FileDescription) else 1


def _describe(format_: FileFormat, data: bytes) -> FileDescription:
    from edl.frameworks import prepare

    prepare(format_, 1)
    reader: Callable[[bytes], FileDescription]
    if format_ == "onnx":
        from edl.extensions.imported.reading_onnx import describe as reader
    elif format_ == "lightgbm":
        from edl.extensions.imported.reading_lightgbm import describe as reader
    else:
        from edl.extensions.imported.reading_xgboost import describe as reader
    try:
        return reader(data)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError, UnicodeDecodeError) as error:
        raise damaged_file_error(format_, f"{type(error).__name__} {error}"[:200]) from error


if __name__ == "__main__":
    sys.exit(main())
