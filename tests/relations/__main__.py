"""`python -m tests.relations --minutes 60`: relations on random tables, as `make relations` checks them.

A failure names the command that repeats it, such as `python -m tests.relations rows_permuted --seed 4711`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time

from tests.relations.catalog import RELATIONS
from tests.relations.checking import check
from tests.relations.places import opened
from tests.relations.registry import Relation
from tests.relations.runner import Schedule, run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.relations", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("relations", nargs="*", help="by default all")
    parser.add_argument("--seed", type=int, help="only this one, in this process")
    parser.add_argument("--number", type=int, default=1, help="seeds from that one on")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--first", type=int, help="the seed to begin with; by default one that no run had")
    parser.add_argument("--processes", type=int, default=min(2, os.cpu_count() or 1))
    parser.add_argument(
        "--only", choices=("trains", "trains-not"), help="relations that train, or the others"
    )
    parser.add_argument("--failures", type=int, default=1, help="of a relation, after which it is left alone")
    parser.add_argument("--list", action="store_true", help="the relations")
    parser.add_argument(
        "--put-back", nargs="*", metavar="FAULT", help="put mended faults back; all by default"
    )
    options = parser.parse_args()
    if unknown := {*options.relations} - {*RELATIONS}:
        parser.error(f"no such relation: {', '.join(sorted(unknown))}; --list has all")
    chosen = [RELATIONS[name] for name in options.relations or RELATIONS]
    if options.only:
        chosen = [each for each in chosen if each.trains == (options.only == "trains")]
    if options.list:
        for each in chosen:
            print(
                f"{each.name} ({each.kind}, {each.tolerance}{', trains' if each.trains else ''}): {each.doc}"
            )
        return 0
    if options.put_back is not None:
        from tests.relations.faults import report_put_back

        return report_put_back(options.put_back)
    if options.seed is not None:
        return _repeat(chosen, range(options.seed, options.seed + options.number))
    first = int(time.time()) if options.first is None else options.first
    return _run(chosen, first, options)


def _repeat(chosen: list[Relation], seeds: range) -> int:
    """Check seeds in this process."""
    failed = False
    with opened() as place:
        for relation in chosen:
            for seed in seeds:
                outcome = check(relation, place, seed)
                print(
                    outcome.failure
                    or f"{relation.name} holds for seed {seed}: {outcome.source}, {outcome.model}, "
                    f"{outcome.pairs} pairs ({outcome.refused} refused) in {outcome.seconds:.2f} s",
                    flush=True,
                )
                for refusal in outcome.refusals[:1]:
                    print(f"  refused: {refusal}")
                failed = failed or bool(outcome.failure)
    return int(failed)


def _run(chosen: list[Relation], first: int, options: argparse.Namespace) -> int:
    schedule, began = Schedule(chosen, first, options.failures), time.monotonic()
    print(f"{len(chosen)} relations for {options.minutes:g} minutes from seed {first} on", flush=True)
    run(schedule, options.minutes, options.processes, lambda text: print(f"\n{text}\n", flush=True))
    hours = (time.monotonic() - began) / 3600
    for tally in schedule.tallies.values():
        print(
            f"{tally.relation.name:28} {tally.pairs:8,} pairs of {tally.seeds:7,} seeds in {tally.seconds:7.1f} s, "
            f"{tally.refused:6,} refused, {len(tally.met)} of {tally.relation.combinations} combinations"
            f"{'' if tally.covers else ', NOT COVERED'}{f', {len(tally.failures)} FAILED' if tally.failures else ''}"
        )
    for trains, title in ((False, "without training"), (True, "with training")):
        tallies = [each for each in schedule.tallies.values() if each.relation.trains == trains]
        pairs, seconds, cpu = (
            sum(getattr(each, what) for each in tallies) for what in ("pairs", "seconds", "cpu")
        )
        if seconds:
            pace = pairs / seconds * 3600 * options.processes
            print(
                f"{pairs:,} pairs {title}: {pace:,.0f} an hour on {options.processes} processes, "
                f"{pairs / max(cpu, 0.01) * 7200:,.0f} an hour of two cores that do nothing else"
            )
    failed = [each.relation.name for each in schedule.tallies.values() if each.failures]
    verdict = f"{len(failed)} relations do not hold: {', '.join(failed)}" if failed else "all hold"
    print(f"{hours * 60:.0f} minutes: {verdict}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
