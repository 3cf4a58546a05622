"""Drawn schedules of deaths, lost calls and restarts, as many as wanted: `python -m tests.schedules --number 1000000`.

The kinds of jobs take turns, each with the next seed. The first schedule that breaks a promise ends the run; its error
names the command that repeats it, such as `python -m tests.schedules sync --seed 4711`.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import islice

from tests.edl.master import test_group_schedules, test_schedules, test_server_schedules
from tests.edl.master.blocks import one
from tests.edl.ps import test_limit_schedules

CHECKS: dict[str, Callable[[int], object]] = {
    **test_schedules.CHECKS,
    **test_group_schedules.CHECKS,
    **test_server_schedules.CHECKS,
    **test_limit_schedules.CHECKS,
}
AT_ONCE = 200  # schedules that a process takes at a time
Draw = tuple[str, int]  # kind and seed


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="tests.schedules", description="Draw schedules until one breaks a promise."
    )
    parser.add_argument("kinds", nargs="*", choices=[*CHECKS, []], help="kinds of jobs; all by default")
    parser.add_argument("--seed", type=int, help="only this one")
    parser.add_argument("--first", type=int, default=0, help="the seed to begin with")
    parser.add_argument("--number", type=int, default=1000, help="schedules in all")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args()
    kinds = options.kinds or [*CHECKS]
    if options.seed is not None:
        draws = [(kind, options.seed) for kind in kinds]
    else:
        draws = list(islice(_draws(kinds, options.first), options.number))
    began = time.monotonic()
    with ProcessPoolExecutor(options.processes) as pool:
        parts = [draws[first : first + AT_ONCE] for first in range(0, len(draws), AT_ONCE)]
        for done, error in enumerate(pool.map(_check, parts)):
            if error:
                pool.shutdown(wait=False, cancel_futures=True)
                print(error, flush=True)
                return 1
            if done % 50 == 49:
                print(f"{(done + 1) * AT_ONCE:,} of {len(draws):,} schedules", flush=True)
    print(f"{len(draws):,} schedules kept all promises ({time.monotonic() - began:.0f} s)")
    return 0


def _draws(kinds: list[str], first: int) -> Iterator[Draw]:
    seed = first
    while True:
        yield from ((kind, seed) for kind in kinds)
        seed += 1


def _check(draws: list[Draw]) -> str:
    """Check the schedules; return the first error as text, or nothing."""
    with contextlib.redirect_stdout(None):
        for kind, seed in draws:
            try:
                one(kind, CHECKS[kind], seed)
            except Exception:
                return traceback.format_exc()
    return ""


if __name__ == "__main__":
    sys.exit(main())
