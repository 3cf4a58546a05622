"""The pages in a real browser: the threshold moves, a running job is followed, nothing is too wide for a phone.

WEB_PICTURES names a folder for pictures of the pages.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.events import EpochEnd
from edl.jobs.recording import JobRecorder
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.serving.server import listen
from sqlflow_edl.extensions.web.model_reader import ModelReader
from sqlflow_edl.extensions.web.model_view import render_report
from sqlflow_edl.extensions.web.server import server_of
from tests.browser import MISSING, Chromium, chromium

pytestmark = [pytest.mark.soak, pytest.mark.skipif(chromium() is None, reason=MISSING)]

THRESHOLD = "document.querySelector('.threshold')"
FIGURES = """Object.fromEntries([...document.querySelectorAll('.score-figures > div')]
    .map((pair) => [...pair.children].map((each) => each.textContent)))"""
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def address(source: str, home: Path) -> Iterator[str]:
    """The URL of a server of the models."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home))
        with listen("127.0.0.1", 0) as listening:
            server = server_of(listening, ModelStore(source), source, None)
            thread = threading.Thread(target=server.run, args=([listening],))
            thread.start()
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = chromium()
    assert program is not None
    with Chromium(program, tmp_path_factory.mktemp("profile")) as found:
        found.window(1200, 900)
        yield found


def keep(page: Chromium, name: str) -> None:
    """Keep a picture of the page, where somebody wants one."""
    if folder := os.environ.get("WEB_PICTURES"):
        Path(folder, f"{name}.png").write_bytes(page.picture())


def test_the_threshold_moves_the_figures_the_markers_and_the_confusion(page: Chromium, address: str) -> None:
    page.open(f"{address}/models/dear")
    before = page.run(FIGURES)
    kinds = "['roc', 'precision', 'gain', 'lift']"
    places = f"{kinds}.map((kind) => document.querySelector(`[data-marker=${{kind}}]`).getAttribute('cx'))"
    first = page.run(places)
    page.run(f"{THRESHOLD}.value = 0.02; {THRESHOLD}.dispatchEvent(new Event('input'))")
    after = page.run(FIGURES)
    assert after["recall"] == "100.0 %"
    assert float(after["predicted rows"]) > float(before["predicted rows"])
    assert all(one != other for one, other in zip(first, page.run(places), strict=True))
    cells = "[...document.querySelectorAll('[data-count]')].map((each) => Number(each.textContent))"
    _, fp, fn, tp = page.run(cells)
    assert (fn, tp + fp) == (0, float(after["predicted rows"]))
    page.run("document.querySelector('.preset').click()")
    assert page.run(FIGURES)["accuracy"] >= before["accuracy"]
    keep(page, "model")


def test_another_class_has_another_curve(page: Chromium, address: str) -> None:
    page.open(f"{address}/models/%3Cb%3Ekinds")
    line = "document.querySelector('[data-line=roc]').getAttribute('points')"
    before = page.run(line)
    choice = "document.querySelector('.class-choice')"
    page.run(f"{choice}.value = '1'; {choice}.dispatchEvent(new Event('change'))")
    assert page.run("document.querySelector('.class-name').textContent") == "large"
    assert page.run(line) != before


def test_the_prediction_follows_a_slider(page: Chromium, address: str) -> None:
    page.open(f"{address}/models/costs")
    words = "document.querySelector('.predicted').textContent"
    page.run("document.querySelector('form.prediction button').click()")
    page.until(f"{words}.includes('cost is')")
    before = page.run(words)
    slider = "document.querySelector('[data-of=c0]')"
    page.run(
        f"{slider}.value = {slider}.max; {slider}.dispatchEvent(new Event('input', {{ bubbles: true }}))"
    )
    page.until(f"{words}.includes('cost is') && {words} !== {json.dumps(before)}")
    assert page.run("document.querySelector('[name=c0]').value") == page.run(f"{slider}.max")
    keep(page, "prediction")


def test_a_running_job_is_followed_to_its_end(page: Chromium, address: str) -> None:
    job = job_folder.create("train", "SELECT * FROM t TO TRAIN m LABEL y INTO x")
    with JobRecorder(ClusterFolder(job.path)) as record:
        for epoch in range(1, 4):
            record(EpochEnd(epoch, 10 * epoch, 1 / epoch, {"loss": 1.2 / epoch}, float(epoch)))
        page.open(f"{address}/jobs/{job.id}")
        assert page.run("document.querySelectorAll('.chart').length") == 1
        keep(page, "job")
        record(EpochEnd(4, 40, 0.125, {"loss": 0.3}, 4.0))
        page.until("document.querySelector('.chart').getAttribute('aria-label').includes('to 0.125')")
    job.end("done")
    page.until("document.querySelector('.badge').textContent.includes('done')")


def test_a_job_stays_marked_when_the_list_changes(page: Chromium, address: str) -> None:
    running, _ = (job_folder.create("train", "SELECT * FROM t TO TRAIN m LABEL y INTO x") for _ in range(2))
    page.open(f"{address}/jobs")
    box = f"document.querySelector('input[value=\"{running.id}\"]')"
    page.run(f"{box}.checked = true")
    running.end("done")
    page.until(f"{box}.closest('tr').textContent.includes('done')")
    assert page.run(f"{box}.checked")


@pytest.mark.parametrize(
    "path", ["/", "/jobs", "/models", "/models/dear", "/compare?model=dear%401&model=dear%402"]
)
def test_pages_fit_a_phone_in_light_and_dark(page: Chromium, address: str, path: str) -> None:
    for dark in (False, True):
        page.window(360, 780, dark=dark)
        page.open(address + path)
        assert not page.run(TOO_WIDE)
        back = page.run("getComputedStyle(document.body).backgroundColor")
        assert (back == "rgb(18, 22, 28)") == dark
    keep(page, f"phone{path.partition('?')[0].replace('/', '-')}")
    page.window(1200, 900)


def test_a_report_works_from_its_file_without_a_network(page: Chromium, source: str, tmp_path: Path) -> None:
    file = tmp_path / "dear.html"
    file.write_text(render_report(ModelReader(ModelStore(source)).model("dear")), encoding="utf-8")
    page.open(file.as_uri())
    assert page.run(FIGURES)["recall"].endswith("%")
    assert page.run("performance.getEntriesByType('resource').length") == 0
