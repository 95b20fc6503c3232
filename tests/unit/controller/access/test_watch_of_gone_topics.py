"""Records name topics by id. A watcher hears nothing of topics that its rights don't reach."""

from typing import Any

import pytest

from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    PartitionChangeRecord,
)
from metadata.uuids import uuid_text
from tests.unit.controller.access.test_guard import ALICE, ROOT, create, entry, made

pytestmark = pytest.mark.simulation

MAY_DESCRIBE = entry(AclOperation.DESCRIBE)


def with_secret(*entries: AccessControlEntryRecord) -> tuple[Any, bytes, int]:
    """Return a cluster with a topic of others, its id, and the offset behind its making."""
    cluster = made(nodes=1)
    topic = {"name": "secret", "numPartitions": 1, "replicationFactor": 1}
    assert cluster.ask("POST", "/v1/topics", {"topics": [topic]}, caller=ROOT)[0] == 200
    topic_id: bytes = cluster.image.topics.named("secret").topic_id
    start: int = cluster.image.offset
    cluster.write(*entries)
    return cluster, topic_id, start


def changed(cluster: Any, topic_id: bytes) -> None:
    cluster.write(PartitionChangeRecord(0, topic_id, isr=(1,)))


def deleted(cluster: Any, name: str) -> None:
    assert cluster.ask("DELETE", f"/v1/topics/{name}", caller=ROOT)[0] == 200


def watched(cluster: Any, place: str, resource: str = "topic:orders", caller: Any = ALICE) -> Any:
    query = {"resource": resource, "from": place}
    status, reply = cluster.ask("GET", "/v1/watch", query=query, caller=caller)
    assert status == 200, reply
    return reply


def kinds(reply: Any) -> list[str]:
    return [each["record"]["type"] for each in reply["records"]]


@pytest.mark.parametrize("resource", ["topic:orders", "partition:orders-0"])
def test_who_watches_a_topic_hears_nothing_of_other_topics_that_are_gone(resource):
    cluster, topic_id, start = with_secret(MAY_DESCRIBE)
    create(cluster, caller=ROOT)
    changed(cluster, topic_id)
    deleted(cluster, "secret")
    assert uuid_text(topic_id) not in str(watched(cluster, str(start), resource))
    # Whoever may read the log hears of it: nobody knows any more whose id it is.
    assert uuid_text(topic_id) in str(watched(cluster, str(start), resource, ROOT))


@pytest.mark.parametrize("caller", [ALICE, ROOT])
def test_the_id_of_another_topic_in_the_place_shows_nothing_of_that_topic(caller):
    cluster, topic_id, start = with_secret(MAY_DESCRIBE)
    changed(cluster, topic_id)
    assert kinds(watched(cluster, f"{start}.{uuid_text(topic_id)}", caller=caller)) == (
        [] if caller is ALICE else ["ACCESS_CONTROL_ENTRY_RECORD"]
    )


def test_of_an_id_in_the_place_that_is_gone_only_the_removal_is_shown():
    cluster, topic_id, start = with_secret(MAY_DESCRIBE)
    changed(cluster, topic_id)
    deleted(cluster, "secret")
    reply = watched(cluster, f"{start}.{uuid_text(topic_id)}")
    assert kinds(reply) == ["REMOVE_TOPIC_RECORD"]


def test_a_watch_that_goes_on_hears_that_its_topic_was_deleted_and_made_again():
    cluster, _, start = with_secret(MAY_DESCRIBE)
    create(cluster, caller=ROOT)
    place = watched(cluster, str(start))["nextFrom"]
    deleted(cluster, "secret")
    deleted(cluster, "orders")
    create(cluster, caller=ROOT)
    changed(cluster, cluster.image.topics.named("orders").topic_id)
    about = ["REMOVE_TOPIC_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_CHANGE_RECORD"]
    assert kinds(watched(cluster, place)) == about


def test_a_right_on_names_that_begin_as_an_id_does_shows_nothing_of_the_topic():
    cluster, topic_id, start = with_secret()
    word = uuid_text(topic_id)
    cluster.write(entry(AclOperation.DESCRIBE, word[:2], pattern=AclPatternType.PREFIXED))
    changed(cluster, topic_id)
    deleted(cluster, "secret")
    assert kinds(watched(cluster, str(start), f"topic:{word}")) == []
