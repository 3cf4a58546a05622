"""Master of a job with faults: `python -P -m edl.testing FOLDER …`."""

from __future__ import annotations

import sys

from edl.testing import master

if __name__ == "__main__":
    sys.exit(master(sys.argv[1:]))
