"""Final table of a run of the benchmarks."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """Line of the table. ratios: ours to the peer's, one per round. least, most: bounds on their median."""

    name: str
    figure: str
    ratios: Sequence[float] = ()
    value: float = 0.0  # figure of a target without a peer
    least: float | None = None
    most: float | None = None

    @property
    def measured(self) -> float:
        return statistics.median(self.ratios) if self.ratios else self.value

    @property
    def missed(self) -> bool:
        return (self.least is not None and self.measured < self.least) or (
            self.most is not None and self.measured > self.most
        )

    @property
    def aim(self) -> str:
        if self.least is not None:
            return f">= {self.least:g}"
        return f"<= {self.most:g}" if self.most is not None else ""


def show(rows: Iterable[Row]) -> None:
    """Print the rows as a Markdown table."""
    print("| what | figure | ratio (rounds) | aim | |")
    print("|---|---|---|---|---|")
    for row in rows:
        ratio = f"{row.measured:.2f} ({', '.join(f'{one:.2f}' for one in row.ratios)})" if row.ratios else ""
        verdict = "" if not row.aim else "missed" if row.missed else "kept"
        print(f"| {row.name} | {row.figure} | {ratio} | {row.aim} | {verdict} |")
