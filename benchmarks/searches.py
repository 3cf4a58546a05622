"""Comparison of the short form with other searches of the same seconds: AutoGluon, and trees tuned by Optuna.

    python -m benchmarks.searches JOURNAL --peers PYTHON [--seconds 30] [--splits 3] [--tables ames,cells]

PYTHON is the interpreter of an environment with `autogluon.tabular[lightgbm,xgboost,catboost,fastai]` and optuna. Each
system learns from the same rows in a process of its own (`benchmarks.baselines.searches`), one after the other, on the
processors that this program may use. A line of JSON is appended to the journal for each; what is in it is not measured
again, so a comparison that was interrupted goes on. At the end the journal's tables are printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.baselines.searches import SYSTEMS
from benchmarks.quality import error, score
from benchmarks.quality_tables import COMPARED, FRESH, Table

OURS = "short form"
BEHIND = 0.01  # relative distance to the best system from which a table counts as lost
LONGEST = 10  # times the limit, then a system is ended and has no model


class Outcome(NamedTuple):
    """Figure and seconds of the training of one system on one split; the figure is nan where there is no model."""

    table: str
    split: int
    system: str
    figure: float
    seconds: float


def run(table: Table, split: int, system: str, seconds: float, python: str) -> Outcome:
    train, held_out = table.load(split)
    with tempfile.TemporaryDirectory() as folder:
        train.to_parquet(Path(folder, "train.parquet"))
        held_out.to_parquet(Path(folder, "held_out.parquet"))
        arguments = [system, folder, table.metric, str(seconds)]
        command = [python, "-m", "benchmarks.baselines.searches", *arguments]
        environment = {**os.environ, "XDG_STATE_HOME": str(Path(folder, "state"))}
        try:
            done = subprocess.run(
                command,
                env=environment,
                capture_output=True,
                text=True,
                check=True,
                timeout=LONGEST * seconds,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as failure:
            print(f"{table.name} {split} {system}: {failure}\n{failure.stderr!s}", file=sys.stderr)
            return Outcome(table.name, split, system, float("nan"), float("nan"))
        taken = json.loads(done.stdout.splitlines()[-1])["seconds"]
        predicted = np.load(Path(folder, "predictions.npy"))
    return Outcome(table.name, split, system, score(table, train, held_out, predicted), taken)


def read_journal(journal: Path) -> list[Outcome]:
    """Return the outcomes that have a model."""
    if not journal.exists():
        return []
    outcomes = [Outcome(**json.loads(line)) for line in journal.read_text(encoding="utf-8").splitlines()]
    return [outcome for outcome in outcomes if np.isfinite(outcome.figure)]


def average(outcomes: list[Outcome], table: Table) -> dict[str, float]:
    """Return the mean error of each system over the splits of a table that all systems were measured on."""
    splits = {each.split for each in outcomes if each.table == table.name}
    for system in SYSTEMS:
        splits &= {each.split for each in outcomes if (each.table, each.system) == (table.name, system)}
    return {
        system: statistics.mean(
            error(table, each.figure)
            for each in outcomes
            if (each.table, each.system) == (table.name, system) and each.split in splits
        )
        for system in SYSTEMS
        if splits
    }


def lines(outcomes: list[Outcome], tables: tuple[Table, ...]) -> Iterator[str]:
    """Yield a Markdown table: the mean figure over the splits, and the longest training."""
    yield f"| table | metric | {' | '.join(SYSTEMS)} |"
    yield "|---" * (len(SYSTEMS) + 2) + "|"
    ranks: dict[str, list[float]] = {system: [] for system in SYSTEMS}
    lost = []
    for table in tables:
        if not (errors := average(outcomes, table)):
            continue
        for system, rank in _ranks(errors).items():
            ranks[system].append(rank)
        best = min(errors.values())
        if errors[OURS] > best * (1 + BEHIND):
            lost.append(f"{table.name} {errors[OURS] / best - 1:.1%}")
        cells = [
            f"{_write(error(table, errors[system]))} ({_longest(outcomes, table, system):.0f} s)"
            for system in SYSTEMS
        ]
        yield f"| {table.name} | {table.metric} | {' | '.join(cells)} |"
    means = [f"{statistics.mean(each):.2f}" if each else "" for each in ranks.values()]
    yield f"| mean rank | | {' | '.join(means)} |"
    yield f"\nmore than {BEHIND:.0%} behind the best: {', '.join(lost) or 'none'}"


def _ranks(errors: Mapping[str, float]) -> dict[str, float]:
    return {system: 1 + sum(other < mine for other in errors.values()) for system, mine in errors.items()}


def _write(value: float) -> str:
    """Return a figure with about four digits."""
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.4g}"


def _longest(outcomes: list[Outcome], table: Table, system: str) -> float:
    return max(each.seconds for each in outcomes if (each.table, each.system) == (table.name, system))


def _read_names(text: str) -> list[str]:
    return text.split(",")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--tables", type=_read_names, default=[])
    parser.add_argument("--peers", default=sys.executable)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--systems", type=_read_names, default=list(SYSTEMS))
    options = parser.parse_args()
    every = (*COMPARED, *FRESH)
    tables = tuple(table for table in every if table.name in options.tables or not options.tables)
    for split in range(options.splits):
        for table in tables:
            done = {
                each.system
                for each in read_journal(options.journal)
                if (each.table, each.split) == (table.name, split)
            }
            for system in options.systems:
                if system in done:
                    continue
                python = sys.executable if system == OURS else options.peers
                outcome = run(table, split, system, options.seconds, python)
                with options.journal.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(outcome._asdict()) + "\n")
                print(*outcome, file=sys.stderr, flush=True)
    for line in lines(read_journal(options.journal), tables):
        print(line)


if __name__ == "__main__":
    main()
