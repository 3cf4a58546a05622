"""What the terminal says: rewritten lines on one, plain lines elsewhere, nothing but errors when quiet."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from edl.jobs.events import EpochEnd, Progress, Tally, TrialEnd
from edl.jobs.trials import Trial
from sqlflow_edl.display.narrator import LONG_STEP, SILENCE, Narrator, ProgramStep
from sqlflow_edl.reports.result import Result
from sqlflow_edl.syntax import parse

STEP = ProgramStep(2, 3, "TRAIN X INTO m")
[STATEMENT] = parse("SELECT 1")
[STATEMENT] = parse("SELECT 1")
TRAINED = Result(
    STATEMENT,
    message="trained X m@2 on 90 rows",
    figures={"loss": 0.5, "auc": None},
    measured_on="10 validation rows",
    model="m@2",
    stored_in="duckdb:///x.duckdb",
)
LATE = Progress("training", 50, 100, 10.0, epoch=1, epochs=2, loss=0.5)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("NO_COLOR", raising=False)


def test_a_report_stands_in_one_piece_among_statements_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    out = io.StringIO()
    narrator = Narrator(out)
    other = threading.Thread(target=narrator.adds, args=(ProgramStep(1, 3, ""), "epoch 1"))

    def report(result: Result) -> list[str]:
        other.start()
        other.join(0.05)  # long enough for its line, if nothing kept it back
        return ["trained"]

    monkeypatch.setattr("sqlflow_edl.display.narrator.final_report", report)
    narrator.ends(STEP, TRAINED, "", 1.0)
    other.join()
    assert [line.split(" (")[0] for line in out.getvalue().splitlines()] == [
        "2 of 3 OK    TRAIN X INTO m",
        "  trained",
        "1 of 3 epoch 1",
    ]


def test_a_statement_is_told_with_its_number_and_its_time() -> None:
    out = io.StringIO()
    narrator = Narrator(out)
    narrator.begins(STEP)
    narrator.ends(STEP, Result(STATEMENT, message="wrote 5 rows"), "", 1.234)
    narrator.ends(STEP, Result(STATEMENT, message="OK"), "3 rows", 0.0)
    narrator.ends(STEP, Result(STATEMENT, message="OK"), "", 0.0)
    narrator.skips(STEP, "statement 1 failed")
    narrator.fails(STEP, "error: no", 0.5)
    narrator.cancels(STEP)
    narrator.closes({"OK": 3, "ERROR": 1, "SKIP": 2})
    assert out.getvalue().splitlines() == [
        "2 of 3 START TRAIN X INTO m",
        "2 of 3 OK    TRAIN X INTO m: wrote 5 rows (1.23 s)",
        "2 of 3 OK    TRAIN X INTO m: 3 rows (0.00 s)",
        "2 of 3 OK    TRAIN X INTO m (0.00 s)",
        "2 of 3 SKIP  TRAIN X INTO m: statement 1 failed",
        "2 of 3 ERROR TRAIN X INTO m (0.50 s)",
        "error: no",
        "2 of 3 CANCEL TRAIN X INTO m",
        "Done. OK=3 ERROR=1 SKIP=2 TOTAL=6",
    ]


def test_a_training_ends_with_its_figures_where_the_model_is_and_what_to_do_next() -> None:
    out = io.StringIO()
    said = "Right in 90 % of 10 validation rows; always a: 50 %."
    steps = ("DESCRIBE MODEL m", "SELECT … TO EVALUATE m")
    result = replace(TRAINED, verdict=said, next_statements=steps)
    Narrator(out).ends(STEP, result, "", 2.0)
    assert out.getvalue().splitlines()[1:] == [
        "  trained X m@2 on 90 rows",
        f"  {said}",
        "  metrics  of 10 validation rows",
        "  loss     0.5",
        "  auc      not defined",
        "  model    m@2 in duckdb:///x.duckdb",
        "  next     DESCRIBE MODEL m",
        "           SELECT … TO EVALUATE m",
    ]


def test_an_explanation_ends_with_a_bar_for_each_column_that_matters() -> None:
    out = io.StringIO()
    [statement] = parse("SELECT 1 AS x TO EXPLAIN m")
    Narrator(out).ends(STEP, Result(statement, figures={"x": 0.0, "longer": 1.0, "y": 4.0}), "3 rows", 2.0)
    assert out.getvalue().splitlines()[1:] == [
        f"  y       {40 * '█'} 4",
        f"  longer  {10 * '█'} 1",
    ]


def test_a_training_ends_with_its_learning_curve_in_characters_of_the_stream() -> None:
    ends = tuple(EpochEnd(epoch, epoch, 1 / epoch, {"loss": 2 / epoch}, 1.0) for epoch in (1, 2, 3, 4))
    for encoding, line in (("utf-8", "█▃▂▁"), ("ascii", "#,._")):
        out = io.TextIOWrapper(io.BytesIO(), encoding)
        Narrator(out).ends(STEP, replace(TRAINED, curve=ends), "", 2.0)
        out.seek(0)
        assert f"  validation loss  {line} 2 to 0.5" in out.read().splitlines()


def test_progress_is_one_line_that_is_rewritten_and_leaves_no_trace() -> None:
    out = Terminal()
    narrator = Narrator(out)
    narrator.doing("pinning the rows")
    narrator.progress(LATE)
    assert "\n" not in out.getvalue()
    assert "epoch 1/2 ━━━━━╌╌╌╌╌ 50%" in out.getvalue()
    narrator.note("something")
    assert out.getvalue().endswith("\r\x1b[K  \x1b[33mnote:\x1b[0m something\n")


def test_the_echo_of_an_interrupt_is_erased_before_what_is_said() -> None:
    out = Terminal()
    narrator = Narrator(out)
    narrator.erase_echo()
    narrator.say("cancelled")
    assert out.getvalue() == "\r\x1b[Kcancelled\n"


def test_the_tasks_of_a_distributed_job_stay_in_the_line_until_the_next_statement() -> None:
    out = Terminal()
    narrator = Narrator(out)
    narrator.progress(Tally(3, 2, 1, instances=2))
    narrator.progress(LATE)
    assert out.getvalue().split("\r")[-1].rstrip().endswith("tasks 3 todo 2 doing 1 done  2 instances")
    assert "50%" in out.getvalue().split("\r")[-1]
    narrator.begins(STEP)
    narrator.started(STATEMENT)
    narrator.progress(LATE)
    assert "tasks" not in out.getvalue().split("START")[1]


def test_the_metric_of_the_last_epoch_stands_in_the_line() -> None:
    out = Terminal()
    narrator = Narrator(out)
    narrator.progress(EpochEnd(3, 9, 0.5, {"loss": 0.4, "accuracy": 0.9}, 1.0))
    narrator.progress(LATE)
    assert "accuracy 0.9" in out.getvalue()
    narrator.begins(STEP)
    narrator.started(STATEMENT)
    narrator.progress(LATE)
    assert "accuracy" not in out.getvalue().split("START")[1]


def test_a_line_never_wraps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    out = Terminal()
    Narrator(out).progress(LATE)
    assert len(out.getvalue().lstrip("\r")) == 29


def test_without_a_terminal_there_are_lines_at_epochs_1_2_4_and_8_and_after_a_silence() -> None:
    now = [0.0]
    out = io.StringIO()
    narrator = Narrator(out, clock=lambda: now[0])
    narrator.progress(LATE)
    narrator.doing("pinning the rows")
    assert out.getvalue() == ""
    for epoch in range(1, 10):
        narrator.progress(EpochEnd(epoch, epoch, 0.5, {}, 1.0))
    assert [line.split(":")[0].strip() for line in out.getvalue().splitlines()] == [
        "epoch 1",
        "epoch 2",
        "epoch 4",
        "epoch 8",
    ]
    now[0] = SILENCE
    narrator.progress(LATE)
    narrator.progress(LATE)
    assert out.getvalue().count("rows/s") == 1
    assert "\r" not in out.getvalue()


class Alarms:
    """Calls that are due later, made by the test."""

    def __init__(self) -> None:
        self.made: list[FakeAlarm] = []

    def __call__(self, seconds: float, call: Callable[[], None]) -> FakeAlarm:
        self.made.append(FakeAlarm(seconds, call))
        return self.made[-1]


class FakeAlarm:
    def __init__(self, seconds: float, call: Callable[[], None]) -> None:
        self.seconds = seconds
        self.call = call
        self.cancelled = False

    def start(self) -> None: ...

    def cancel(self) -> None:
        self.cancelled = True


def test_without_a_terminal_a_step_is_named_once_it_takes_long() -> None:
    out, alarms = io.StringIO(), Alarms()
    narrator = Narrator(out, alarm=alarms)
    narrator.doing("loading PyTorch")
    narrator.progress(Tally(3, 0, 0))  # the job has begun, the step goes on
    [alarm] = alarms.made
    assert (out.getvalue(), alarm.seconds, alarm.cancelled) == ("", LONG_STEP, False)
    alarm.call()
    assert out.getvalue() == "  loading PyTorch …\n"


def test_without_a_terminal_it_is_said_at_once_that_instances_are_cut_off() -> None:
    out = io.StringIO()
    narrator = Narrator(out, clock=lambda: 0.0)
    for cut_off in (0, 1, 1):
        narrator.progress(Tally(3, 0, 0, instances=1, cut_off=cut_off))
    assert out.getvalue().count("1 cut off") == 1


@pytest.mark.parametrize("ends", ["progress", "note", "doing"])
def test_a_short_step_is_not_named(ends: str) -> None:
    alarms = Alarms()
    narrator = Narrator(io.StringIO(), alarm=alarms)
    narrator.doing("loading PyTorch")
    {
        "progress": lambda: narrator.progress(LATE),
        "note": lambda: narrator.note("x"),
        "doing": lambda: narrator.doing("storing the model"),
    }[ends]()
    assert alarms.made[0].cancelled


def test_on_a_terminal_and_in_quiet_no_step_is_named_later() -> None:
    alarms = Alarms()
    Narrator(Terminal(), alarm=alarms).doing("x")
    Narrator(io.StringIO(), quiet=True, alarm=alarms).doing("x")
    assert alarms.made == []


def test_quiet_says_errors_only() -> None:
    out = Terminal()
    narrator = Narrator(out, quiet=True)
    narrator.begins(STEP)
    narrator.doing("x")
    narrator.progress(LATE)
    narrator.note("x")
    narrator.ends(STEP, TRAINED, "", 1.0)
    narrator.closes({"OK": 1})
    assert out.getvalue() == ""
    narrator.fails(STEP, "error: no", 1.0)
    assert out.getvalue() == "\x1b[1;31merror:\x1b[0m no\n"


@pytest.mark.parametrize(
    ("out", "variable", "value", "coloured"),
    [
        (Terminal(), "X", "", True),
        (Terminal(), "NO_COLOR", "1", False),
        (Terminal(), "TERM", "dumb", False),
        (io.StringIO(), "X", "", False),
        (io.StringIO(), "FORCE_COLOR", "1", True),
    ],
)
def test_colours_are_for_terminals_that_want_them(
    out: io.StringIO, variable: str, value: str, coloured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, value)
    narrator = Narrator(out)
    narrator.skips(STEP, "x")
    narrator.doing("x")
    assert ("\x1b[33mSKIP" in out.getvalue()) is coloured
    assert ("\r" in out.getvalue()) is (out.isatty() and variable != "TERM")


def test_a_trial_is_a_line_that_stays() -> None:
    for out in (io.StringIO(), Terminal()):
        narrator = Narrator(out)
        narrator.progress(Progress("search", 0, 2, 0.0))
        narrator.progress(TrialEnd(1, 2, "Linear (torch)", "rmse", 0.5, 2.0, best=True))
        narrator.progress(Progress("search", 1, 2, 0.0))
        assert "  trial 1/2 Linear (torch): rmse 0.5, the best (2.0 s)\n" in out.getvalue()


def test_a_search_ends_with_its_members_by_their_share() -> None:
    out = io.StringIO()
    trials = (
        Trial(1, "Linear (torch)", "SELECT", weight=0.25),
        Trial(2, "DNN (torch)", "SELECT"),
        Trial(
            3,
            "BoostedTrees (lightgbm), rate 0.1",
            "SELECT",
            2.5,
            {"mae": 2, "rmse": 2.5},
            3.2,
            0.75,
            rows_per_second=123_456.0,
        ),
    )
    Narrator(out).ends(STEP, replace(TRAINED, trials=trials), "", 2.0)
    assert out.getvalue().splitlines()[5:8] == [
        "  members     75% trial 3, BoostedTrees (lightgbm), rate 0.1; rmse 2.5; 3.2 s; predicts 120,000 rows/s",
        "              25% trial 1, Linear (torch)",
        "  important  not measured in the time: SELECT … TO EXPLAIN m",
    ]


def test_a_search_tells_which_members_were_trained_on_all_rows_and_which_were_not() -> None:
    out = io.StringIO()
    trials = (
        Trial(1, "Linear (torch)", "SELECT", weight=0.25, refit=0),
        Trial(2, "DNN (torch)", "SELECT"),
        Trial(3, "BoostedTrees (lightgbm)", "SELECT", weight=0.75, refit=1200),
    )
    Narrator(out).ends(STEP, replace(TRAINED, trials=trials), "", 2.0)
    assert out.getvalue().splitlines()[7:9] == [
        "  retrained  on all rows, after measuring: trial 3 for 1,200 rounds",
        "             not on all rows, for lack of time: trial 1",
    ]


def test_what_is_said_to_a_full_disk_is_lost_and_nothing_else() -> None:
    with Path("/dev/full").open("w", encoding="utf-8") as out:
        narrator = Narrator(out)
        for _ in range(2):
            narrator.say("a note")
