"""Progress in one output that is updated."""

from __future__ import annotations

import io
import itertools

from edl.jobs.events import EpochEnd, Progress, Tally, TrialEnd
from edl.tasks.curve import LIMIT
from sqlflow_edl.extensions.notebook.live import Bundle, Live, Terminal
from sqlflow_edl.syntax import parse

[STATEMENT] = parse("SELECT 1", "duckdb")


class Page:
    """The outputs of a notebook, by their ids, as they are now."""

    def __init__(self) -> None:
        self.outputs: dict[str, Bundle] = {}
        self.updates = 0
        self.clock = itertools.count().__next__  # a second passes at each look
        self.live = Live(self.publish, clock=lambda: self.clock())
        self.live.started(STATEMENT)

    def publish(self, bundle: Bundle, output: str, is_there: bool) -> None:
        assert (output in self.outputs) == is_there
        self.outputs[output] = bundle
        self.updates += 1

    def texts(self) -> list[str]:
        return [bundle["text/plain"] for bundle in self.outputs.values()]


def test_a_statement_that_tells_nothing_has_no_output() -> None:
    page = Page()
    page.live.on_end("SELECT: done")
    assert page.texts() == []


def test_one_output_says_what_is_done_and_in_the_end_how_it_ended() -> None:
    page = Page()
    page.live.doing("pinning the rows")
    assert page.texts() == ["pinning the rows …"]
    page.live.progress(Progress("training", 300, 1000, 50.0, epoch=3, epochs=10, step=1200, loss=0.5))
    [text] = page.texts()
    for word in ("epoch 3/10", "30%", "loss 0.5", "50 rows/s", "14 s left", "step 1,200"):
        assert word in text
    page.live.on_end("TRAIN: done (3 s)")
    assert page.texts() == ["TRAIN: done (3 s)"]


def test_the_figures_of_the_last_epoch_stand_beside_the_next_one_and_the_curve_below() -> None:
    page = Page()
    page.live.progress(EpochEnd(1, 5, 0.5, {"loss": 0.75, "auc": 0.625}, 1.0))
    assert page.texts() == ["epoch 1: loss 0.5; validation loss 0.75, auc 0.625"]
    page.live.progress(EpochEnd(2, 10, 0.25, {"loss": 0.5, "auc": 0.75}, 1.0))
    page.live.progress(Progress("training", 300, 1000, 50.0, epoch=3, epochs=10))
    [bundle] = page.outputs.values()
    assert "auc 0.75" in bundle["text/plain"]
    assert bundle["text/html"].count("<polyline") == 2
    assert "<svg" not in bundle["text/plain"]
    assert [end.epoch for end in page.live.curve] == [1, 2]


def test_thousands_of_epochs_a_second_are_drawn_five_times_a_second_from_a_bounded_curve() -> None:
    page = Page()
    epochs = 20_000
    ticks = iter(range(epochs))
    page.clock = lambda: next(ticks) // 2_000  # 2,000 epochs a second, for ten seconds
    for epoch in range(1, epochs + 1):
        page.live.progress(EpochEnd(epoch, epoch, 1 / epoch, {}, 1.0))
    assert page.updates == epochs // 2_000
    assert len(page.live.curve) <= LIMIT + 2
    assert [page.live.curve[0].epoch, page.live.curve[-1].epoch] == [1, epochs]


def test_notes_stay_above() -> None:
    page = Page()
    page.live.note("k <b> has no effect")
    page.live.progress(Tally(9, 2, 5, instances=2))
    page.live.on_end("TRAIN: done")
    assert page.texts() == ["note: k <b> has no effect\nTRAIN: done"]
    assert "k &lt;b&gt; has" in next(iter(page.outputs.values()))["text/html"]


def test_the_next_statement_has_an_output_and_a_curve_of_its_own() -> None:
    page = Page()
    page.live.note("one")
    page.live.progress(EpochEnd(1, 5, 0.5, {}, 1.0))
    page.live.started(STATEMENT)
    page.live.doing("two")
    assert len(page.outputs) == 2
    assert page.texts()[1] == "two …"
    assert not page.live.curve


def test_a_terminal_has_a_line_for_the_epochs_and_leaves_the_end_to_the_result() -> None:
    class Tty(io.StringIO):
        def isatty(self) -> bool:
            return True

    out = Tty()
    terminal = Terminal(out)
    terminal.started(STATEMENT)
    terminal.progress(EpochEnd(1, 5, 0.5, {}, 1.0))
    terminal.progress(Progress("training", 300, 1000, 50.0, epoch=2, epochs=10))
    terminal.on_end("TRAIN: done")
    first, rewritten = out.getvalue().split("\n")
    assert first == "  epoch 1: loss 0.5"
    assert rewritten.strip("\r ").startswith("epoch 2/10")
    assert rewritten.endswith("\r\x1b[K"), "the line is gone"


def test_trials_stay_above_the_share_of_those_that_have_ended() -> None:
    page = Page()
    page.live.progress(TrialEnd(1, 2, "Linear <torch>", "rmse", 0.5, 2.0))
    page.live.progress(Progress("search", 1, 2, 0.0))
    [text] = page.texts()
    assert text.splitlines()[0] == "trial 1/2 Linear <torch>: rmse 0.5 (2.0 s)"
    assert "search ━━━━━╌╌╌╌╌ 50%" in text.splitlines()[1]
    assert "Linear &lt;torch&gt;" in next(iter(page.outputs.values()))["text/html"]
