"""Process of an image that lists the models in it: `python -P -m edl.entrypoints.image_sources`."""

from __future__ import annotations

import sys

from edl import exit_codes
from edl.errors import SQLFlowError
from edl.program.image_models import list_sources, to_lines


def main() -> int:
    try:
        sources = list_sources()
    except SQLFlowError as error:
        print(error.report, file=sys.stderr)
        return exit_codes.USAGE
    print(*to_lines(sources), sep="\n")
    return exit_codes.OK


if __name__ == "__main__":
    sys.exit(main())
