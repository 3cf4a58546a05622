"""The list of jobs: what it shows of each, and which of them a visitor asks for."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from edl.jobs import job_folder
from edl.jobs.cluster_folder import ClusterFolder
from edl.jobs.event_log import record_end
from edl.jobs.events import EpochEnd, Progress, TrialEnd
from edl.jobs.outcome import Outcome
from edl.jobs.recording import JobRecorder
from sqlflow_edl.extensions.web.app import application
from sqlflow_edl.extensions.web.guard import PageAccess
from sqlflow_edl.extensions.web.job_list import PAGE
from tests.sqlflow_edl.extensions.web.conftest import Browser

TRAIN = "SELECT a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s FROM t TO TRAIN DNNClassifier LABEL y INTO {}"


@pytest.fixture
def browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Browser:
    """A browser of the pages of jobs that a test makes."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    access = PageAccess(None, local=True)
    return Browser(application(None, "", access), access)


def trained(name: str, **figures: float) -> job_folder.JobFolder:
    job = job_folder.create("train", TRAIN.format(name))
    record_end(ClusterFolder(job.path).events, Outcome("train", 10, 1.0, {"loss": 0.5, **figures}))
    job.end("done")
    return job


def listed(browser: Browser, query: str = "") -> list[str]:
    """Return the ids of the jobs in the list."""
    return re.findall(r'<a href="/jobs/([^"]+)">', browser.get(f"/jobs{query}").text)


def test_a_job_shows_its_model_although_the_statement_is_cut_before_it(browser: Browser) -> None:
    trained("sales.churn", auc=0.87)
    job_folder.create("predict", "SELECT * FROM t TO PREDICT g.guess USING churn@3").end("done")
    job_folder.create("train", TRAIN.format("late")).end("failed", "the disk is full\nin line 3")
    text = browser.get("/jobs").text
    assert re.findall(r'<td class="name">(.*?)</td>', text) == ["late", "churn@3", "sales.churn"]
    results = [re.sub("<[^>]+>", "", each).strip() for each in re.findall(r'"result">(.*?)</td>', text)]
    assert results == ["the disk is full", "g.guess", "auc 0.87 loss 0.5"]


def test_the_boxes_that_compare_jobs_are_there_on_narrow_screens(browser: Browser) -> None:
    trained("a")
    trained("b")
    text = browser.get("/jobs").text
    assert len(re.findall(r'<td><input type="checkbox" name="job"', text)) == 2
    assert '<button type="submit">Compare</button>' in text


def test_jobs_are_found_by_state_kind_model_and_words(browser: Browser) -> None:
    good, bad = trained("churn"), trained("other")
    used = job_folder.create("predict", "SELECT * FROM t\nTO PREDICT g.guess USING Churn")
    failed = job_folder.create("train", TRAIN.format("x"))
    failed.end("failed", "no")
    assert listed(browser, "?state=failed") == [failed.id]
    assert listed(browser, "?state=running") == listed(browser, "?kind=predict") == [used.id]
    assert listed(browser, "?model=churn") == [used.id, good.id]
    assert listed(browser, "?model=churn&kind=train") == [good.id]
    assert listed(browser, "?text=FROM+t+to+predict") == [used.id]
    assert listed(browser, f"?text={bad.id}") == [bad.id]
    assert "None of 4 jobs" in browser.get("/jobs?model=nothing").text
    assert "1 job among 4 jobs" in browser.get("/jobs?state=failed").text


def test_the_best_by_a_metric_are_first(browser: Browser) -> None:
    low, without, high = trained("a", auc=0.6, rmse=9.0), trained("b"), trained("c", auc=0.9, rmse=7.0)
    assert listed(browser) == [high.id, without.id, low.id]
    assert listed(browser, "?sort=auc") == [high.id, low.id, without.id]
    low_first = trained("d", auc=0.9, rmse=1.0)
    assert listed(browser, "?sort=rmse")[0] == low_first.id
    assert '<option value="rmse" selected>best rmse</option>' in browser.get("/jobs?sort=rmse").text


def test_the_latest_are_on_the_first_page(browser: Browser) -> None:
    for number in range(PAGE + 2):
        job_folder.create("run", f"-- {number}")
    first, second = browser.get("/jobs?kind=run").text, browser.get("/jobs?kind=run&page=2").text
    assert f"1 to {PAGE} of {PAGE + 2} jobs" in first
    assert 'rel="next" href="/jobs?page=2&amp;kind=run"' in first
    assert f"{PAGE + 1} to {PAGE + 2} of" in second
    assert 'rel="next"' not in second
    assert len(listed(browser, "?page=99")) == 2
    assert listed(browser, "?page=x") == listed(browser)


def test_what_a_visitor_asks_for_is_text_in_the_page(browser: Browser) -> None:
    trained("churn")
    text = browser.get("/jobs?model=%22%3E%3Cscript%3E&text=%3Cb%3E&sort=%3Ci%3E&state=%3Cu%3E").text
    assert not re.search("<script>|<b>|<i>|<u>", text)


# Progress ----------------------------------------------------------------------------------------------------


def test_a_search_has_a_bar_of_its_time_and_the_best_trial_so_far(browser: Browser) -> None:
    job = job_folder.create("train", "SELECT * FROM t LABEL y INTO m")
    with JobRecorder(ClusterFolder(job.path)) as record:
        record(TrialEnd(6, 84, "LightGBM", "auc", 0.87, 2.0, best=True))
        record(TrialEnd(7, 84, "XGBoost", "auc", 0.85, 2.0))
        record(Progress("search", 8, 84, 0.0, seconds=18.0, limit=90.0))
    text = browser.get(f"/jobs/{job.id}").text
    assert 'value="0.200"' in text
    assert "8 of up to 84 trials, 18.0 s of 90.0 s" in text
    assert 'best auc 0.87 <span class="faint">(trial 6)' in text
    assert "<dt>rows</dt>" not in text
    assert "<dt>trials</dt><dd>8 of up to 84</dd>" in text
    assert f"(pid {os.getpid()}). Press Ctrl-C in that terminal to cancel it." in text
    job.end("done")
    for path in (f"/jobs/{job.id}", "/jobs"):
        assert 'value="1.000"' in browser.get(path).text


def test_a_training_that_ended_early_is_done_in_full(browser: Browser) -> None:
    job = job_folder.create("train", TRAIN.format("m"))
    with JobRecorder(ClusterFolder(job.path)) as record:
        record(Progress("training", 200, 2500, 10.0, epoch=20, epochs=250))
    assert 'value="0.080"' in (text := browser.get("/jobs").text)
    assert "epoch 20 of 250" in text
    job.end("done")
    assert 'value="1.000"' in (text := browser.get("/jobs").text)
    assert "20 of 250 epochs" in text


# Side by side ------------------------------------------------------------------------------------------------


def test_jobs_are_compared_side_by_side(browser: Browser) -> None:
    jobs = []
    for rate, loss in ((1, 0.5), (2, 0.25)):
        job = job_folder.create("train", f"SELECT * FROM t\nTO TRAIN m WITH rate = {rate}\nLABEL y INTO x")
        with JobRecorder(ClusterFolder(job.path)) as record:
            for epoch in (1, 2):
                record(EpochEnd(epoch, epoch, loss / epoch, {"loss": loss / epoch}, 1.0))
        record_end(ClusterFolder(job.path).events, Outcome("train", 10, 1.0, {"loss": loss, "auc": 0.8}))
        job.end("done")
        jobs.append(job)
    assert f'name="job" value="{jobs[0].id}"' in browser.get("/jobs").text
    text = browser.get(f"/compare?job={jobs[0].id}&job={jobs[1].id}").text
    assert f'<a href="/jobs/{jobs[1].id}">' in text
    assert re.search(r'class="differs"><th scope="row">.*loss</th><td>0.5</td><td>0.25</td>', text)
    assert re.search(r'<tr><th scope="row">auc</th><td>0.8</td><td>0.8</td>', text)
    assert f'aria-label="{jobs[0].id[-6:]} from 0.5 to 0.25; {jobs[1].id[-6:]} from 0.25 to 0.125' in text
    assert "<del>-TO TRAIN m WITH rate = 1</del>" in text
    assert "<ins>+TO TRAIN m WITH rate = 2</ins>" in text
    assert browser.get("/compare?job=unknown").status == 404
    assert "auc" in browser.get(f"/jobs/{jobs[0].id}").text
