"""schemathesis finds nothing: on a sound cluster, without a quorum, and without room.

A short run of `api_fuzzing`; `make openapi` is the long one.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.api_fuzzing import (
    BROKER_ID,
    KNOWN,
    OWN,
    Fuzzed,
    every_route,
    fuzz,
    routes_of_brokers,
    speaker,
)
from tests.process.running_cluster import RunningCluster, running
from tests.process.test_full_disks import fill, small_disks

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    folder = tmp_path_factory.mktemp("fuzzed")
    with running(folder, brokers=1, principals=(f"Broker:{BROKER_ID}",)) as cluster:
        cluster.create("t")
        yield cluster


def check(found: Fuzzed, *server_errors: int) -> None:
    assert not found.failed, found.said
    assert found.routes == every_route()
    assert {status for status in found.statuses if status >= 500} == set(server_errors)


@pytest.mark.parametrize("parameters", [None, KNOWN], ids=["anything", "what exists"])
def test_a_sound_cluster_answers_as_its_document_says(
    cluster: RunningCluster, parameters: dict[str, str] | None
) -> None:
    pids = [child.pid for child in cluster.local.children]
    check(fuzz(cluster, cluster.leader(), examples=3, parameters=parameters))
    assert [child.pid for child in cluster.local.children if child.running] == pids
    cluster.create(f"after-{len(cluster.acknowledged)}")


def test_a_broker_is_answered_as_the_document_says(cluster: RunningCluster) -> None:
    spoken = speaker(cluster)
    for good in (True, False):
        found = fuzz(
            cluster, cluster.leader(), examples=5, speaking=spoken, parameters=OWN, good=good
        )
        assert not found.failed, found.said
        assert found.routes == routes_of_brokers()
        assert max(found.statuses) < 500
        if good:
            assert found.accepted == routes_of_brokers()


def test_requests_follow_from_the_answers_to_others(cluster: RunningCluster) -> None:
    found = fuzz(cluster, cluster.leader(), examples=60, phases="stateful")
    assert not found.failed, found.said
    assert {"describe_topic", "describe_broker", "explain_broker"} <= found.accepted
    assert max(found.statuses) < 500


def test_without_a_quorum_only_503_is_added(cluster: RunningCluster) -> None:
    left = cluster.standby()
    for n in cluster.local.controllers:
        if n != left:
            cluster.controller(n).kill()
    cluster.until(lambda: (cluster.status(left) or {}).get("leaderId") is None, "nobody leads")
    check(fuzz(cluster, left, examples=1, server_errors=(503,)), 503)


def test_without_room_only_503_and_507_are_added(tmp_path: Path) -> None:
    with small_disks(tmp_path) as cluster:
        cluster.start()
        cluster.create("t")
        for n in cluster.local.controllers:
            fill(cluster, n, 500_000)
        body = {"topics": [{"name": "refused"}]}

        def refused() -> bool:
            answers = [
                cluster.ask(cluster.url(n), "POST", "/v1/topics", body)
                for n in cluster.local.controllers
            ]
            return any(answer.status == 507 for answer in answers)

        cluster.until(refused, "a change is refused with 507")
        found = fuzz(cluster, 1, examples=1, server_errors=(503, 507))
        assert not found.failed, found.said
        assert found.routes == every_route()
        assert found.statuses.keys() & {503, 507}
        cluster.check_alive()
