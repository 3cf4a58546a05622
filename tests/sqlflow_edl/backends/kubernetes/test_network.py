"""Network policies of a job: whom its pods may talk to."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from edl.models.pending import Intent
from sqlflow_edl.backends.kubernetes.manifests import objects
from sqlflow_edl.backends.kubernetes.manifests.objects import JobManifests
from sqlflow_edl.backends.kubernetes.settings import read_configuration
from tests.sqlflow_edl.backends.kubernetes import jobs


def policies(*urls: str, first: Any = "master") -> list[dict[str, Any]]:
    return objects.network_policies(
        "sqlflow-edl-m-1", first, lambda name: {"name": name, "namespace": "team"}, urls
    )


def ports(policy: dict[str, Any]) -> list[tuple[str, list[int]]]:
    """The destinations outside of the job, without name servers."""
    rules = [rule for rule in policy["spec"]["egress"] if "ports" in rule and rule["ports"][0]["port"] != 53]
    return [
        (rule["to"][0]["ipBlock"]["cidr"] if "to" in rule else "", [port["port"] for port in rule["ports"]])
        for rule in rules
    ]


@pytest.mark.parametrize(
    ("urls", "found"),
    [
        (["mysql://reader@db.example/shop"], [("", [3306])]),
        (["mysql://reader@10.1.2.3:3307/shop"], [("10.1.2.3/32", [3307])]),
        (["postgresql://reader@[fd00::7]/shop"], [("fd00::7/128", [5432])]),
        (["maxcompute://id@host/api?curr_project=shop"], [("", [443])]),
        (
            ["mysql://a@db/shop", "mysql://a@db/shop", "s3://bucket/models", "gs://b/c"],
            [("", [443]), ("", [3306])],
        ),
        (["mysql://a@db/shop", "/edl/volume/checkpoints", ""], [("", [3306])]),
    ],
)
def test_data_is_reached_where_the_urls_say(urls: list[str], found: list[tuple[str, list[int]]]) -> None:
    assert ports(policies(*urls)[0]) == found


def test_only_the_master_reaches_the_api_server_and_only_pods_of_the_job_reach_it() -> None:
    every, master = policies("mysql://a@db/shop")
    ours = {"podSelector": {"matchLabels": {"app.kubernetes.io/instance": "sqlflow-edl-m-1"}}}
    assert every["spec"]["ingress"] == [{"from": [ours]}]
    assert {"to": [ours]} in every["spec"]["egress"]
    assert ports(master) == [("", [443, 6443])]
    assert master["spec"]["podSelector"]["matchLabels"]["sqlflow-edl/role"] == "master"
    assert master["spec"]["policyTypes"] == ["Egress"]
    assert len(policies("mysql://a@db/shop", first="program")) == 1  # it calls no API server


def test_the_model_store_of_the_job_is_among_its_destinations() -> None:
    intent = msgspec.json.encode(Intent("train", jobs.SOURCE, "m", store="s3://bucket/models"))
    settings = read_configuration(pairs=[("network_policy", "true")]).settings()
    given = jobs.submission(settings=settings)
    given = jobs.submission(settings=settings, files={**given.files, "intent.json": intent})
    [every, _] = [
        each for each in JobManifests(given).owned_objects(jobs.UID) if each["kind"] == "NetworkPolicy"
    ]
    assert ports(every) == [("", [443]), ("", [3306])]


def test_jobs_have_no_policy_by_default() -> None:
    assert not [each for each in jobs.objects() if each["kind"] == "NetworkPolicy"]
