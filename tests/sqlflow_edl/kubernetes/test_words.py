"""How a job ended whose master does not say it."""

from __future__ import annotations

import pytest

from edl.kubernetes.pods import Condition, Metadata
from sqlflow_edl.kubernetes.observed import Job, JobStatus
from sqlflow_edl.kubernetes.words import failure


@pytest.mark.parametrize(
    ("reason", "message", "said"),
    [
        ("BackoffLimitExceeded", "…", "the master ended 7 times, and the job was given up"),
        ("DeadlineExceeded", "…", "the job took longer than it may"),
        ("PodFailurePolicy", "…", "the master ended for good, and does not say why"),
        ("Else", "the words of the cluster", "the job failed: the words of the cluster"),
    ],
)
def test_the_condition_of_a_failed_job_is_said_in_words(reason: str, message: str, said: str) -> None:
    condition = Condition("Failed", "True", reason, message)
    error = failure(Job(Metadata(), status=JobStatus([condition], failed=7)), [], "20260101-a")
    assert error.message == said
    assert error.hint == "sqlflow logs 20260101-a master tells more"
