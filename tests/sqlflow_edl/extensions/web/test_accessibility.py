"""The pages by axe: nothing breaks WCAG, A and AA, on a screen and on a phone, in light and in dark."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.events import EpochEnd, Progress, TrialEnd
from edl.jobs.recording import JobRecorder
from edl.models.registry.model_store import ModelStore
from sqlflow_edl.extensions.serving.server import listen
from sqlflow_edl.extensions.web.model_reader import ModelReader
from sqlflow_edl.extensions.web.model_view import render_report
from sqlflow_edl.extensions.web.server import server_of
from tests import axe
from tests.axe import faults
from tests.browser import MISSING, Chromium, chromium

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(chromium() is None, reason=MISSING),
    pytest.mark.skipif(not axe.FILE.exists(), reason=axe.MISSING),
]

PATHS = (
    "/",
    "/jobs",
    "/jobs?model=nothing",
    "/models",
    "/models/dear",
    "/models/costs",
    "/models/broken",
    "/models/%3Cb%3Ekinds",
    "/compare?model=dear%401&model=dear%402",
    "/predict?model=costs",
    "/nothing",
    "job",
    "search",
    "failed",
    "jobs side by side",
)
TOO_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    program = chromium()
    assert program is not None
    with Chromium(program, tmp_path_factory.mktemp("profile")) as found:
        yield found


def serve(source: str, token: str | None = None) -> Iterator[str]:
    with listen("127.0.0.1", 0) as listening:
        server = server_of(listening, ModelStore(source), source, token)
        thread = threading.Thread(target=server.run, args=([listening],))
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()


@pytest.fixture(scope="module")
def address(source: str) -> Iterator[str]:
    yield from serve(source)


def views(page: Chromium) -> Iterator[str]:
    """Show the page in each width and scheme."""
    for width in (1280, 400):
        for dark in (False, True):
            page.window(width, 900, dark=dark)
            yield f"{width}, {'dark' if dark else 'light'}"


@pytest.fixture
def paths() -> dict[str, str]:
    """Make jobs, and return the paths of their pages."""
    statement = "SELECT * FROM t TO TRAIN m WITH rate = {} LABEL y INTO x"
    job, search, failed = (job_folder.create("train", statement.format(each)) for each in (1, 2, 3))
    (job.logs / "training.log").write_text("first\nsecond\n" * 40)
    with JobRecorder(ClusterFolder(job.path)) as record:
        for epoch in range(1, 5):
            record(EpochEnd(epoch, 10 * epoch, 1 / epoch, {"loss": 1.2 / epoch, "auc": 0.7}, float(epoch)))
        record(Progress("training", 40, 100, 50.0, 4, 10, 40, 0.3))
    with JobRecorder(ClusterFolder(search.path)) as record:
        record(TrialEnd(6, 84, "LightGBM", "auc", 0.87, 2.0, best=True))
        record(Progress("search", 8, 84, 0.0, seconds=18.0, limit=90.0))
    failed.end("failed", "the disk is full")
    return {
        "job": f"/jobs/{job.id}",
        "search": f"/jobs/{search.id}",
        "failed": f"/jobs/{failed.id}",
        "jobs side by side": f"/compare?job={job.id}&job={search.id}",
    }


@pytest.mark.parametrize("path", PATHS)
def test_a_page_is_accessible_and_fits(
    page: Chromium, address: str, paths: dict[str, str], path: str
) -> None:
    page.window(1280, 900)
    page.open(address + paths.get(path, path))
    for view in views(page):
        assert faults(page) == [], view
        assert not page.run(TOO_WIDE), view


def test_a_prediction_is_accessible(page: Chromium, address: str) -> None:
    page.window(1280, 900)
    page.open(f"{address}/models/costs")
    page.run("document.querySelector('form.prediction button').click()")
    page.until("document.querySelector('.predicted .chart')")
    for view in views(page):
        assert faults(page) == [], view
        assert not page.run(TOO_WIDE), view


def test_signing_in_and_a_report_are_accessible(page: Chromium, source: str, tmp_path: Path) -> None:
    file = tmp_path / "dear.html"
    file.write_text(render_report(ModelReader(ModelStore(source)).model("dear")), encoding="utf-8")
    for address in serve(source, "long-token"):
        page.window(1280, 900)
        for url in (f"{address}/login", file.as_uri()):
            page.open(url)
            for view in views(page):
                assert faults(page) == [], (url, view)
                assert not page.run(TOO_WIDE), (url, view)
