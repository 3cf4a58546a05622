"""Instances as pods of the double: started, stopped and seen, whatever the API server does meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from edl.cluster import Instance, NoRoomError
from edl.cluster.kubernetes import names
from edl.cluster.kubernetes.api_calls import LackingRightError
from edl.cluster.kubernetes.cluster import KubernetesCluster
from edl.cluster.kubernetes.deployment import Policy, Priorities
from edl.cluster.kubernetes.state_store import ConfigMapStateStore
from edl.cluster.kubernetes.status_map import StatusMap, read_end
from edl.errors import ClusterError, JobError
from edl.jobs.failure import Failed
from tests.edl.cluster.kubernetes.conftest import SECONDS, Following, Site, pod_manifest
from tests.kubernetes.faults import Fault
from tests.kubernetes.process import api_server

Sites = Callable[..., Site]
Followed = Callable[[KubernetesCluster], Following]

ENDLESS = "trap 'exit 4' TERM; echo up; while :; do sleep 0.05; done"  # leaves when it is told to


def worker(number: int = 0, incarnation: int = 0) -> Instance:
    return Instance(f"worker-{number}", "worker", incarnation)


def test_an_instance_is_a_pod_that_the_job_owns_and_that_knows_who_it_is(site: Sites) -> None:
    place = site()
    place.cluster().start(worker(3, 7))
    [pod] = place.pods()
    assert pod["metadata"]["name"] == f"{place.deployment.name}-worker-3-7"
    [owner] = pod["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Job", place.deployment.uid, False)
    assert pod["metadata"]["labels"]["sqlflow-edl/incarnation"] == "7"
    assert pod["metadata"]["labels"]["team"] == "a"
    [told] = pod["spec"]["containers"][0]["env"]
    assert json.loads(told["value"]) == {"name": "worker-3", "role": "worker", "incarnation": 7}


@pytest.mark.soak
def test_what_becomes_of_an_instance_is_told(site: Sites, followed: Followed) -> None:
    cluster = site("sleep 0.2; exit 7").cluster()
    following = followed(cluster)
    cluster.start(worker())
    [ended] = following.comes_to("ended", worker())
    states = [change.state for change in following.changes]
    assert list(dict.fromkeys(states)) == ["pending", "running", "ended"]
    assert ended.place.endswith("worker-0-0 on node-1")
    assert (ended.reason, ended.exit_code, ended.detail) == ("failed", 7, "exit code 7")


def test_one_that_is_stopped_has_its_grace_and_was_stopped(site: Sites, followed: Followed) -> None:
    place = site(ENDLESS)
    cluster = place.cluster()
    following = followed(cluster)
    cluster.start(worker())
    following.comes_to("running", worker())
    place.up(worker())
    cluster.stop(worker(), 20.0)
    [ended] = following.comes_to("ended", worker())
    assert (ended.reason, ended.exit_code) == ("stopped", 4)
    cluster.stop(worker(), 20.0)  # it may be said again


def test_one_that_somebody_else_deletes_was_preempted_where_it_gave_back(
    site: Sites, followed: Followed
) -> None:
    place = site(ENDLESS)
    cluster = place.cluster()
    following = followed(cluster)
    for number in range(2):
        cluster.start(worker(number))
    following.comes_to("running", worker(0), worker(1))
    place.up(worker(0))
    place.delete("worker-0-0", grace=20)
    place.delete("worker-1-0", grace=0)
    left, vanished = following.comes_to("ended", worker(0), worker(1))
    assert (left.reason, left.exit_code) == ("preempted", 4)
    assert (vanished.reason, vanished.exit_code) == ("lost", None)


@pytest.mark.soak
def test_instances_are_started_at_the_same_time_and_each_once(site: Sites, followed: Followed) -> None:
    place = site()
    cluster = place.cluster()
    following = followed(cluster)
    instances = [worker(number) for number in range(40)]
    with ThreadPoolExecutor(32) as starting:
        list(starting.map(cluster.start, instances + instances))
    following.comes_to("running", *instances)
    assert len(place.pods()) == 40


@pytest.mark.soak
@pytest.mark.parametrize(
    "fault",
    [
        Fault("lose", "POST.*/pods"),
        Fault("drop", "POST.*/pods", times=2),
        Fault("status", "POST.*/pods", status=500),
        Fault("status", "POST.*/pods", status=503, times=2),
    ],
)
def test_a_start_that_the_server_fumbles_is_repeated(site: Sites, fault: Fault) -> None:
    place = site()
    cluster = place.cluster()
    place.double.go_wrong(fault)
    cluster.start(worker())
    assert place.names() == ["worker-0-0"]


@pytest.mark.soak
def test_who_asks_too_much_waits_as_long_as_the_server_says(site: Sites) -> None:
    place = site()
    cluster = place.cluster()
    place.double.go_wrong(Fault("throttle", "POST.*/pods"))
    place.double.requests()
    cluster.start(worker())
    posts = [request for request in place.double.requests() if request.startswith("POST")]
    assert len(posts) == 2


def test_a_new_master_may_ask_for_what_is_there(site: Sites) -> None:
    place = site("exit 0")
    place.cluster().start(worker())
    place.cluster().start(worker())
    assert place.names() == ["worker-0-0"]


def test_a_pod_of_that_name_that_is_not_ours_is_said_to_be_there(site: Sites) -> None:
    place = site()
    other = {**place.deployment.worker, "metadata": {"name": f"{place.deployment.name}-worker-0-0"}}
    place.double.ask("POST", place.path, other)
    with pytest.raises(ClusterError, match=r"worker-0-0.* already exists, and it belongs to another job"):
        place.cluster().start(worker())


def test_an_earlier_incarnation_is_refused(site: Sites) -> None:
    cluster = site().cluster()
    cluster.start(worker(0, 2))
    with pytest.raises(ClusterError, match="worker-0 has reached incarnation 2, later than 1"):
        cluster.start(worker(0, 1))


def test_what_the_server_does_not_take_is_said_in_its_words(site: Sites) -> None:
    place = site()
    template = pod_manifest("exit 0", resources={"limits": {"cpu": "lots"}})
    with pytest.raises(ClusterError, match=r"the cluster refuses worker-0: .*quantities must match"):
        place.cluster(worker=template).start(worker())


@pytest.mark.parametrize(("verb", "method"), [("create", "POST"), ("list", "GET")])
def test_a_right_that_every_instance_needs_is_named(
    site: Sites, monkeypatch: pytest.MonkeyPatch, verb: str, method: str
) -> None:
    monkeypatch.setattr("edl.cluster.kubernetes.api_calls.LACKING_SECS", 0.3)
    place = site()
    words = (
        f'pods is forbidden: User "system:serviceaccount:team:robot" cannot {verb} resource "pods" '
        'in API group "" in the namespace "team"'
    )
    place.double.go_wrong(Fault("status", f"{method} .*/pods", times=1000, status=403, message=words))
    cluster = place.cluster()
    with pytest.raises(LackingRightError, match=f"the account robot of the job's master may not {verb} pods"):
        cluster.start(worker()) if verb == "create" else cluster.list()


def test_a_quota_that_is_used_up_is_no_room(site: Sites) -> None:
    place = site()
    words = 'pods "p" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'
    place.double.go_wrong(Fault("status", "POST.*/pods", status=403, message=words))
    with pytest.raises(NoRoomError, match="exceeded quota: small"):
        place.cluster().start(worker())


@pytest.mark.parametrize(
    "words",
    [
        'pods "p" is forbidden: exceeded quota: q, requested: memory=2Gi, used: memory=0, limited: memory=1Gi',
        'pods "p" is forbidden: maximum memory usage per Container is 1Gi, but limit is 1792Mi',
    ],
    ids=["quota", "limit range"],
)
def test_a_pod_that_no_room_would_help_ends_a_job_of_which_nothing_has_run(site: Sites, words: str) -> None:
    place = site()
    cluster = place.cluster()
    place.double.go_wrong(Fault("status", "POST.*/pods", status=403, message=words))
    with pytest.raises(JobError, match="the cluster never admits worker-0: ") as raised:
        cluster.start(worker())
    assert "kubernetes.worker_memory" in (raised.value.hint or "")


def test_a_server_that_stays_away_is_no_room_for_now(site: Sites) -> None:
    place = site()
    cluster = place.cluster(patience=0.2)
    place.double.go_wrong(Fault("lose", "POST.*/pods", times=100))
    with pytest.raises(NoRoomError, match="the API server of the cluster does not answer"):
        cluster.start(worker())
    place.double.go_wrong()
    cluster.start(worker())
    assert place.names() == ["worker-0-0"]


def test_a_list_is_read_page_by_page(site: Sites, monkeypatch: pytest.MonkeyPatch) -> None:
    place = site()
    cluster = place.cluster()
    for number in range(5):
        cluster.start(worker(number))
    monkeypatch.setattr("edl.cluster.kubernetes.cluster.PAGE", 2)
    place.double.requests()
    assert [change.instance for change in place.cluster().list()] == [worker(number) for number in range(5)]
    assert sum("limit=2" in request for request in place.double.requests()) == 3


def test_a_master_needs_no_more_rights_than_its_role_gives(site: Sites, followed: Followed) -> None:
    place = site(ENDLESS)
    api = place.double.client(place.token_of_a_master())
    cluster = KubernetesCluster(api, place.deployment, 1)
    following = followed(cluster)
    cluster.start(worker())
    cluster.start(worker())
    following.comes_to("running", worker())
    place.up(worker())
    cluster.end_all(20.0)
    following.comes_to("ended", worker())
    state_store = ConfigMapStateStore(api, place.deployment)
    state_store.write(b"one")
    assert state_store.read() == b"one"
    board = StatusMap(api, place.deployment)
    board.end(Failed("runtime", "it broke"))
    board.close()
    assert read_end(place.kept(names.status(place.deployment.name))["data"]) is not None


# Watches ---------------------------------------------------------------------------------------------------------


@pytest.mark.soak
def test_a_watch_that_is_cut_goes_on_where_it_was(site: Sites, followed: Followed) -> None:
    place = site()
    cluster = place.cluster()
    following = followed(cluster)
    for number in range(3):
        place.double.cut_watches()
        cluster.start(worker(number))
    following.comes_to("running", *(worker(number) for number in range(3)))
    assert len(following.found) == 1  # nothing was listed again


@pytest.mark.soak
def test_a_watch_that_breaks_in_the_midst_goes_on_where_it_was(site: Sites, followed: Followed) -> None:
    place = site()
    place.double.go_wrong(Fault("cut", "watch=true", events=2, times=2))
    cluster = place.cluster()
    following = followed(cluster)
    for number in range(3):
        cluster.start(worker(number))
    following.comes_to("running", *(worker(number) for number in range(3)))
    assert len(following.found) == 1


@pytest.mark.soak
def test_a_watch_goes_on_where_it_was_after_its_time_is_over(site: Sites, followed: Followed) -> None:
    place = site()
    cluster = place.cluster(watch_secs=1.0)
    place.double.requests()
    following = followed(cluster)
    seen: list[str] = []

    def opened_again(_: Following) -> bool:
        seen.extend(request for request in place.double.requests() if "watch=true" in request)
        return len(seen) > 2

    following.until(opened_again)
    cluster.start(worker())
    following.comes_to("running", worker())
    assert len(following.found) == 1


@pytest.mark.soak
def test_a_quiet_watch_keeps_up_with_what_happens_elsewhere(site: Sites, followed: Followed) -> None:
    """By bookmarks: so it can go on where others have long filled the server's memory."""
    place = site()
    place.double.requests()
    following = followed(place.cluster(watch_secs=3.0))
    elsewhere = site()
    for number in range(3):
        elsewhere.cluster().start(worker(number))
    watches: list[str] = []

    def opened_again(_: Following) -> bool:
        here = [request for request in place.double.requests() if f"{place.namespace}/pods?" in request]
        watches.extend(request for request in here if "watch=true" in request)
        return len(watches) > 1

    following.until(opened_again)
    first, second = (int(request.partition("resourceVersion=")[2].partition("&")[0]) for request in watches)
    assert second >= first + 3


def test_a8_pods_that_vanish_while_nothing_is_heard_are_found_by_listing_again(
    site: Sites, followed: Followed
) -> None:
    """Neither the watch nor a list can be had; what was is compacted when they can."""
    place = site()
    cluster = place.cluster(watch_secs=1.0)
    instances = [worker(number) for number in range(4)]
    for instance in instances:
        cluster.start(instance)
    following = followed(cluster)
    following.comes_to("running", *instances)
    place.double.go_wrong(Fault("drop", "GET.*(watch=true|limit)", times=1000))
    place.double.requests()
    place.double.cut_watches()
    following.until(lambda _: any("watch=true" in request for request in place.double.requests()))  # in vain
    for number in range(3):
        place.delete(f"worker-{number}-0")
    place.double.compact()
    place.double.go_wrong()
    lost = following.comes_to("ended", *instances[:3])
    assert {change.reason for change in lost} == {"lost"}
    assert len(following.found) > 1
    last = following.last(instances[3])
    assert last is not None
    assert last.state == "running"


@pytest.mark.soak
def test_a_watch_that_stays_silent_is_given_up(
    site: Sites, followed: Followed, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server neither ends it nor says a word, though its time is over."""
    monkeypatch.setattr("edl.cluster.kubernetes.watch.SILENCE_SECS", 0.1)
    place = site()
    cluster = place.cluster(watch_secs=0.5)
    place.double.go_wrong(Fault("delay", "watch=true", seconds=3 * SECONDS))
    following = followed(cluster)
    cluster.start(worker())
    following.comes_to("running", worker())


# Pods that ended, and a new master -------------------------------------------------------------------------------


@pytest.mark.soak
def test_the_last_pod_to_end_is_kept_for_its_log_until_the_next_one_runs(
    site: Sites, followed: Followed
) -> None:
    place = site()
    crashing = pod_manifest("exit 1")
    failing, cluster = place.cluster(worker=crashing), place.cluster()
    following = followed(cluster)
    for incarnation in range(3):
        failing.start(worker(0, incarnation))
        following.comes_to("ended", worker(0, incarnation))
    place.comes_to(["worker-0-2"])
    cluster.start(worker(0, 3))
    following.comes_to("running", worker(0, 3))
    place.comes_to(["worker-0-3"])


def test_a_new_master_finds_what_there_is(site: Sites, followed: Followed) -> None:
    place = site(ENDLESS)
    before = place.cluster()
    following = followed(before)
    before.start(worker(0))
    before.start(worker(1))
    following.comes_to("running", worker(0), worker(1))
    following.close()
    place.delete("worker-1-0", grace=0)
    [found] = place.cluster().list()
    assert (found.instance, found.state) == (worker(0), "running")


@pytest.mark.soak
def test_whoever_ends_all_leaves_none(site: Sites, followed: Followed) -> None:
    place = site(ENDLESS)
    cluster = place.cluster()
    for number in range(3):
        cluster.start(worker(number))
    following = followed(cluster)
    following.comes_to("running", *(worker(number) for number in range(3)))
    place.up(*(worker(number) for number in range(3)))
    cluster.end_all(20.0)
    ended = following.comes_to("ended", *(worker(number) for number in range(3)))
    assert {change.reason for change in ended} == {"stopped"}
    place.comes_to([])


# Memory, images and nodes ----------------------------------------------------------------------------------------


def test_one_that_runs_out_of_memory_comes_back_with_more_of_it_also_after_a_new_master(
    site: Sites, followed: Followed
) -> None:
    place = site(resources={"limits": {"memory": "100Mi"}, "requests": {"memory": "50Mi"}})
    cluster = place.cluster()
    following = followed(cluster)
    cluster.start(worker())
    following.comes_to("running", worker())
    place.double.run_out_of_memory(place.namespace, f"{place.deployment.name}-worker-0-0")
    [ended] = following.comes_to("ended", worker())
    assert (ended.reason, ended.detail) == (
        "out of memory",
        "out of memory (limit 100Mi); the next one gets 150Mi",
    )
    new = place.cluster()
    new.list()
    for master, instance in ((cluster, worker(0, 1)), (new, worker(0, 2)), (new, worker(1, 0))):
        master.start(instance)
    resources = {name: resources_of(pod) for name, pod in zip(place.names(), place.pods(), strict=True)}
    assert (
        resources["worker-0-1"]
        == resources["worker-0-2"]
        == {
            "limits": {"memory": "150Mi"},
            "requests": {"memory": "75Mi"},
        }
    )
    assert resources["worker-1-0"]["limits"]["memory"] == "100Mi"


@pytest.mark.soak
def test_a_server_that_finds_no_node_is_withdrawn_for_want_of_room(site: Sites, followed: Followed) -> None:
    place = site(resources={"requests": {"cpu": "1000"}})
    cluster = place.cluster(policy=Policy(pending_secs=0.0))
    following = followed(cluster)
    server = Instance("ps-0", "ps")
    cluster.start(server)
    cluster.start(worker())
    [ended] = following.comes_to("ended", server)
    assert ended.reason == "no room"
    assert "Insufficient cpu" in ended.detail
    [waiting] = following.comes_to("pending", worker())
    assert "Insufficient cpu" in waiting.detail
    place.comes_to(["worker-0-0"])


@pytest.mark.soak
def test_an_image_that_no_node_gets_is_a_failure_in_the_registrys_words(
    site: Sites, followed: Followed
) -> None:
    place = site(image="missing/one:1")
    cluster = place.cluster(policy=Policy(image_secs=0.0))
    following = followed(cluster)
    cluster.start(worker())
    [ended] = following.comes_to("ended", worker())
    assert ended.reason == "failed"
    assert "missing/one:1" in ended.detail
    place.comes_to([])


@pytest.mark.soak
def test_a_pod_was_preempted_if_a_more_important_one_takes_its_place(
    site: Sites, followed: Followed, tmp_path: Path
) -> None:
    with api_server(tmp_path) as double:
        double.capacity(cpu="1")
        for name, value in (("high", 10), ("low", 1)):
            path = "/apis/scheduling.k8s.io/v1/priorityclasses"
            double.ask("POST", path, {"metadata": {"name": name}, "value": value})
        place = site(ENDLESS, double=double, resources={"requests": {"cpu": "1"}})
        cluster = place.cluster(priorities=Priorities("high", "low", 0.25))  # of four workers
        following = followed(cluster)
        cluster.start(worker(1))
        following.comes_to("running", worker(1))
        place.up(worker(1))
        cluster.start(worker(0))
        [ended] = following.comes_to("ended", worker(1))
        assert (ended.reason, ended.exit_code) == ("preempted", 4)
        assert ended.detail == "a pod of higher priority replaces it"
        following.comes_to("running", worker(0))
        following.close()
        place.close()


@pytest.mark.soak
def test_one_on_a_node_that_is_lost_is_given_up_though_nobody_says_that_it_ended(
    site: Sites, followed: Followed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edl.cluster.kubernetes.pod_cache.OVERDUE_SECS", 0.1)
    with api_server(tmp_path) as double:
        double.capacity(pods="0")
        double.add_node("node-2", cpu="4", memory="4Gi", pods="10")
        place = site(ENDLESS, double=double)
        place.deployment.worker["spec"]["terminationGracePeriodSeconds"] = 1
        cluster = place.cluster()
        following = followed(cluster)
        cluster.start(worker())
        [running] = following.comes_to("running", worker())
        assert running.place.endswith("on node-2")
        double.capacity(pods="10")
        double.lose_node("node-2")
        [ended] = following.comes_to("ended", worker())
        assert (ended.reason, ended.detail) == ("lost", "its node does not report its end")
        cluster.start(worker(0, 1))
        following.comes_to("running", worker(0, 1))
        double.remove_node("node-2")
        place.comes_to(["worker-0-1"])
        following.close()
        place.close()


def resources_of(pod: dict[str, Any]) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = pod["spec"]["containers"][0]["resources"]
    return found
