"""Final report of a statement with metrics: the metrics, the stored model, and the next statements to try."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence

from edl.jobs.events import EpochEnd
from edl.jobs.trials import Trial
from sqlflow_edl.analysis import expressions
from sqlflow_edl.reports.curve import draw_sparkline
from sqlflow_edl.reports.result import Result
from sqlflow_edl.reports.text import candidate, leading_shares, length_of_refit, number

WIDEST = 98  # characters of a line of the verdict
MOST_BARS, LONGEST_BAR = 20, 40
_EIGHTHS = ("", "▏", "▎", "▍", "▌", "▋", "▊", "▉")


def final_report(result: Result) -> list[str]:
    """Return aligned lines; none if there is nothing to add, as when the metrics are the answer itself."""
    verdict = textwrap.wrap(result.verdict, WIDEST)
    if result.reader is not None:
        return verdict
    if result.statement.kind == "explain":
        return bars(result.figures or {})
    rows = list(facts(result))
    width = max((len(name) for name, _ in rows), default=0)
    lines = [f"{name:{width}}  {value}" for name, value in rows]
    return [result.message, *verdict, *lines] if result.model else [*verdict, *lines]


def _curve(epochs: Sequence[EpochEnd]) -> Iterator[tuple[str, str]]:
    """Draw both losses by epoch as sparklines."""
    ends = [epoch for epoch in epochs if epoch.final]
    for name, losses in (
        ("training loss", [epoch.loss for epoch in ends]),
        ("validation loss", [epoch.metrics.get("loss") for epoch in ends]),
    ):
        if text := draw_sparkline(losses):
            yield name, text


def largest(figures: Mapping[str, float | None]) -> list[tuple[str, float, float]]:
    """Return names and values, largest first, each with its ratio to the largest."""
    ranked = sorted(((value, name) for name, value in figures.items() if value), reverse=True)[:MOST_BARS]
    return [(name, value, value / ranked[0][0]) for value, name in ranked]


def bars(figures: Mapping[str, float | None]) -> list[str]:
    """Draw a line for each figure, with a bar in proportion to it."""
    ranked = largest(figures)
    width = max((len(name) for name, _, _ in ranked), default=0)
    return [f"{name:{width}}  {_bar(share)} {number(value)}" for name, value, share in ranked]


def _bar(share: float) -> str:
    """Draw a bar of at most `LONGEST_BAR` characters, in eighths of a character."""
    eighths = max(1, round(share * LONGEST_BAR * 8))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8]


def _members(trials: Sequence[Trial]) -> Iterator[tuple[str, str]]:
    """List the chosen models of a search with their weights, the largest first, and what their trials gave and took.

    SHOW TRIALS has their settings, and the other trials.
    """
    chosen = sorted((trial for trial in trials if trial.weight), key=lambda trial: -trial.weight)
    if len(chosen) == 1:
        yield "chosen", f"trial {chosen[0].number}, {_trial(chosen[0])}"
    else:
        for position, trial in enumerate(chosen):
            yield "" if position else "members", f"{trial.weight:4.0%} trial {trial.number}, {_trial(trial)}"
    refit = [f"trial {trial.number} for {length_of_refit(trial)}" for trial in chosen if trial.refit]
    without = [f"trial {trial.number}" for trial in chosen if trial.refit == 0]
    if refit:
        yield "retrained", f"on all rows, after measuring: {', '.join(refit)}"
    if without:
        yield "" if refit else "retrained", f"not on all rows, for lack of time: {', '.join(without)}"


def _trial(trial: Trial) -> str:
    """Return the model of a trial with the search's metric of its validation rows, its seconds, and its rate."""
    name = candidate(trial.name)
    equal = [metric_name for metric_name, figure in trial.figures.items() if figure == trial.value]
    metric = next((metric_name for metric_name in equal if metric_name != "loss"), "loss")
    scores = [f"{metric} {number(trial.value)}"] if trial.value is not None else []
    seconds = [f"{trial.seconds:.1f} s"] if trial.seconds else []
    rate = [f"predicts {float(f'{trial.rows_per_second:.2g}'):,.0f} rows/s"] if trial.rows_per_second else []
    return "; ".join([name, *scores, *seconds, *rate])


def _figures(figures: Mapping[str, float | None], result: Result) -> Iterator[tuple[str, str]]:
    """List the metrics, beside the metrics of the compared version."""
    if result.measured_on:
        yield "metrics", f"of {result.measured_on}"
    is_twice = figures.get("loss") == figures.get("log_loss") is not None
    rival = result.rival
    for name, value in figures.items():
        if name == "loss" and is_twice:
            continue
        before = (
            f"  ({rival.reference}: {number(rival.figures[name])})" if rival and name in rival.figures else ""
        )
        yield name, f"{number(value)}{before}"


def facts(result: Result) -> Iterator[tuple[str, str]]:
    """List names and values of the report; a continuation line has an empty name."""
    if result.ending:
        yield "ending", result.ending
    if result.figures:
        yield from _figures(result.figures, result)
    for position, warning in enumerate(
        result.warnings
    ):  # those said before the training may have scrolled away
        yield "" if position else "warnings", warning
    yield from _members(result.trials)
    if result.importances:
        yield "important", leading_shares(result.importances)
    elif result.trials and result.model:
        yield "important", f"not measured in the time: SELECT … TO EXPLAIN {expressions.model(result.model)}"
    yield from _curve(result.curve)
    if result.model:
        yield "model", f"{result.model} in {result.stored_in}"
        for position, statement in enumerate(result.next_statements):
            yield "" if position else "next", statement
