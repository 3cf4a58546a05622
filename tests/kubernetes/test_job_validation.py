"""Jobs that a real server refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kubernetes import defaults
from tests.kubernetes.job_validation import policies
from tests.kubernetes.kinds import JOB

IGNORE = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}


def job(*rules: dict[str, Any], restart: str = "Never", **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": restart, "containers": [{"name": "main", "image": "x"}]}}
    policy = {"podFailurePolicy": {"rules": list(rules)}} if rules else {}
    found = {"metadata": {"name": "v", "uid": "u"}, "spec": {"template": template, **policy, **spec}}
    defaults.fill(JOB, found)
    return found["spec"]  # type: ignore[return-value]


def fails(action: str, **wanted: Any) -> dict[str, Any]:
    return {"action": action, "onExitCodes": wanted}


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (
            job(IGNORE, restart="OnFailure"),
            'Invalid value: "OnFailure": only "Never" is supported when podFailurePolicy is specified',
        ),
        (
            job(IGNORE, podReplacementPolicy="TerminatingOrFailed"),
            'Unsupported value: "TerminatingOrFailed": supported values: "Failed"',
        ),
        (
            job(fails("Ignored", operator="In", values=[1])),
            'Unsupported value: "Ignored": supported values: "Count", "FailIndex", "FailJob", "Ignore"',
        ),
        (
            job(fails("FailIndex", operator="In", values=[1])),
            'Invalid value: "FailIndex": requires the backoffLimitPerIndex to be set',
        ),
        (
            job({"action": "FailJob"}),
            "Invalid value: specifying one of OnExitCodes and OnPodConditions is required",
        ),
        (
            job(fails("FailJob", operator="In", values=[0])),
            "Invalid value: 0: must not be 0 for the In operator",
        ),
        (
            job(fails("FailJob", operator="In", values=[3, 1])),
            "Invalid value: []int32{3, 1}: must be ordered",
        ),
        (job(ttlSecondsAfterFinished=-3), "Invalid value: -3: must be greater than or equal to 0"),
    ],
)
def test_what_is_wrong_with_a_job_is_told(spec: dict[str, Any], told: str) -> None:
    assert [cause.message for cause in policies(spec)] == [told]


def test_a_rule_may_name_a_container_of_the_job_only() -> None:
    [cause] = policies(job(fails("FailJob", containerName="other", operator="In", values=[1])))
    assert cause.field == "spec.podFailurePolicy.rules[0].onExitCodes.containerName"
    assert policies(job(fails("FailJob", containerName="main", operator="In", values=[1]))) == []
