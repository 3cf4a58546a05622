"""Compile the tests with the assertions of pytest: `python -m tests.bytecode`.

Each process of pytest-xdist would do it for itself in a fresh checkout: 13 s. pytest has no command for it but
`--collect-only`, which imports every framework.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

from _pytest.assertion import rewrite
from _pytest.config import get_config

TESTS = Path(__file__).parent


def main() -> None:
    """Write what pytest reads for every module of tests that is not compiled yet."""
    config = get_config()
    config.parse([])
    for path in sorted(
        path for name in [*config.getini("python_files"), "conftest.py"] for path in TESTS.rglob(name)
    ):
        folder = rewrite.get_cache_dir(path)
        compiled = folder / f"{path.stem}{rewrite.PYC_TAIL}"
        if rewrite.try_makedirs(folder) and rewrite._read_pyc(path, compiled) is None:
            source_hash, code = rewrite._rewrite_test(path, config)
            rewrite._write_pyc(SimpleNamespace(trace=print), code, source_hash, compiled)


if __name__ == "__main__":
    try:
        main()
    except (AttributeError, TypeError, ValueError) as error:
        print(f"The tests are compiled when they run: {error}", file=sys.stderr)
