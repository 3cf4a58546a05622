"""Texts of progress: a line that is rewritten on a terminal, a line per epoch elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from edl.jobs.events import EpochEnd, Progress, Tally, TrialEnd
from edl.jobs.snapshot import WAITING
from edl.spec.forecast import BASELINES
from sqlflow_edl.reports.text import candidate, format_figures, number

BAR = 10  # cells
LEAST_SHARE = 0.01  # share of rows done before the time left is shown


def live(event: Progress | None, learnt: Mapping[str, float | None], tally: Tally | None = None) -> str:
    """Format the progress of a phase.

    learnt: metrics of the validation rows after the last epoch; of a search, the metric of its best trial. tally:
    counts of the job's tasks and instances.
    """
    parts = _progress_parts(event, learnt) if event else []
    if tally is not None:
        parts += _tally_parts(tally)
    return "  " + "  ".join(parts)


def _progress_parts(event: Progress, learnt: Mapping[str, float | None]) -> list[str]:
    if event.phase == "search":
        return _search_parts(event, learnt)
    share = min(1.0, event.rows / event.total) if event.total else 0.0
    what = f"epoch {event.epoch}/{event.epochs}" if event.epochs else event.phase
    parts = [f"{what} {bar(share)} {share:.0%}"]
    if event.loss is not None:
        parts.append(f"loss {number(event.loss)}")
    if metric := next((name for name in learnt if name != "loss"), None):
        parts.append(f"{metric} {number(learnt[metric])}")
    if event.rows_per_second > 0:
        parts.append(f"{event.rows_per_second:,.0f} rows/s")
    if event.rows_per_second > 0 and share >= LEAST_SHARE:
        bound = "at most " if event.may_end_early else ""
        parts.append(f"{bound}{format_remaining((event.total - event.rows) / event.rows_per_second)} left")
    return parts


def _search_parts(event: Progress, learnt: Mapping[str, float | None]) -> list[str]:
    """Format the time of a search, or without a limit its trials, with the metric of its best model."""
    done, total = (event.seconds, event.limit) if event.limit else (event.rows, event.total)
    share = min(1.0, done / total) if total else 0.0
    parts = [f"search {bar(share)} {share:.0%}"]
    parts += [f"best {name} {number(figure)}" for name, figure in learnt.items()]
    parts.append(f"{event.rows:,} of up to {event.total:,} trials")
    if event.limit:
        parts.append(f"{format_remaining(max(0.0, event.limit - event.seconds))} left")
    return parts


def _tally_parts(tally: Tally) -> list[str]:
    """Format the counts of tasks and instances, and of instances that wait for a slot or were relaunched."""
    tasks = f"tasks {tally.todo:,} todo {tally.doing:,} doing {tally.done:,} done"
    if tally.waits:
        return [tasks, WAITING] if tally.doing or tally.done else [WAITING]
    parts = [tasks, f"{tally.instances:,} instance{'' if tally.instances == 1 else 's'}"]
    if tally.waiting:
        parts.append(f"{tally.waiting:,} waiting for a slot")
    if tally.cut_off:
        parts.append(f"{tally.cut_off:,} cut off (sqlflow job says from what)")
    if tally.relaunches:
        parts.append(f"{tally.relaunches:,} relaunch{'' if tally.relaunches == 1 else 'es'}")
    return parts


def bar(share: float) -> str:
    done = round(share * BAR)
    return "━" * done + "╌" * (BAR - done)


def epoch(event: EpochEnd) -> str:
    """Format the training loss and the validation metrics of an epoch, without metrics that no training changes."""
    changing = {name: value for name, value in event.metrics.items() if not name.startswith(BASELINES)}
    validation = f"; validation {format_figures(changing)}" if changing else ""
    at = "" if event.final else f", step {event.step:,}"
    return f"  epoch {event.epoch}{at}: loss {number(event.loss)}{validation}"


def trial(event: TrialEnd) -> str:
    """Format the end of a trial: its metric, or why it failed, and the time left."""
    outcome = event.error or f"{event.metric} {number(event.value)}{', the best' if event.best else ''}"
    remains = "" if event.left is None else f"; {format_remaining(max(0.0, event.left))} left"
    return f"  trial {event.number}/{event.trials} {candidate(event.name)}: {outcome} ({event.seconds:.1f} s{remains})"


def best_metric(event: TrialEnd, before: Mapping[str, float | None]) -> Mapping[str, float | None]:
    """Return the metric of the best trial so far. before: that before this one."""
    return {event.metric: event.value} if event.best else before


def format_remaining(seconds: float) -> str:
    """Format a remaining time: 12 s, 3 min, 2 h 10 min, 30 h."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 100:
        return f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes and hours < 10 else f"{hours} h"
