"""Lists have what their asker may see, and say nothing about the rest."""

import json
from base64 import urlsafe_b64decode
from typing import Any

import pytest

from metadata.records import (
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    RemoveAccessControlEntryRecord,
)
from runtime.http.requests import Caller, Request
from tests.unit.controller.access.test_guard import ALICE, ROOT, entry, made

pytestmark = pytest.mark.simulation

NAMES = ("orders", "orders-2", "private", "zoo")
DESCRIBE, DESCRIBE_CONFIGS = AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS
PREFIXED, DENY = AclPatternType.PREFIXED, AclPermissionType.DENY


def stocked(enforcement: str = "on", **config: Any) -> Any:
    """A cluster with topics, each of which has a config, and a group with one."""
    cluster = made(enforcement, nodes=1, **config)
    topics = [{"name": name, "numPartitions": 2, "replicationFactor": 1} for name in NAMES]
    assert cluster.ask("POST", "/v1/topics", {"topics": topics}, caller=ROOT)[0] == 200
    retention = [{"name": "retention.ms", "value": "50000"}]
    resources = [
        {"resourceType": "topic", "resourceName": name, "configs": retention} for name in NAMES
    ]
    session = [{"name": "consumer.session.timeout.ms", "value": "50000"}]
    resources.append({"resourceType": "group", "resourceName": "g", "configs": session})
    cleaner = [{"name": "log.cleaner.threads", "value": "2"}]
    resources.append({"resourceType": "broker", "resourceName": "1", "configs": cleaner})
    changed = cluster.ask("PATCH", "/v1/configs", {"resources": resources}, caller=ROOT)
    assert changed[0] == 200, changed
    return cluster


def listed(cluster: Any, path: str, of: str, name: str, caller: Caller = ALICE) -> list[str]:
    """Return the distinct names of a list."""
    status, reply = cluster.ask("GET", path, caller=caller)
    assert status == 200, reply
    return list(dict.fromkeys(each[name] for each in reply[of]))


def topics(cluster: Any, caller: Caller = ALICE) -> list[str]:
    return listed(cluster, "/v1/topics", "topics", "name", caller)


def partitions(cluster: Any) -> list[str]:
    return listed(cluster, "/v1/partitions", "partitions", "topic")


def configs(cluster: Any) -> list[str]:
    return listed(cluster, "/v1/configs", "resources", "resourceName")


def test_topics_and_partitions_by_what_the_asker_may_describe() -> None:
    cluster = stocked()
    assert (topics(cluster), partitions(cluster)) == ([], [])
    cluster.write(entry(DESCRIBE, "orders", pattern=PREFIXED))
    assert topics(cluster) == partitions(cluster) == ["orders", "orders-2"]
    cluster.write(entry(DESCRIBE, "orders-2", permission=DENY, number=2))
    assert topics(cluster) == partitions(cluster) == ["orders"]
    # Who may read, may describe.
    cluster.write(entry(AclOperation.READ, "zoo", number=3))
    assert topics(cluster) == partitions(cluster) == ["orders", "zoo"]
    everything = entry(DESCRIBE, "kafka-cluster", AclResourceType.CLUSTER, number=4)
    cluster.write(everything)
    assert topics(cluster) == partitions(cluster) == list(NAMES)
    cluster.write(RemoveAccessControlEntryRecord(everything.id))
    assert topics(cluster) == ["orders", "zoo"]
    assert topics(cluster, ROOT) == list(NAMES)


def test_configs_by_what_the_asker_may_describe_the_configs_of() -> None:
    cluster = stocked()
    assert configs(cluster) == []
    cluster.write(entry(DESCRIBE_CONFIGS, "orders"))
    assert configs(cluster) == ["orders"]
    cluster.write(entry(AclOperation.ALTER_CONFIGS, "g", AclResourceType.GROUP, number=2))
    assert sorted(configs(cluster)) == ["g", "orders"]
    cluster.write(entry(DESCRIBE_CONFIGS, "kafka-cluster", AclResourceType.CLUSTER, number=3))
    assert sorted(configs(cluster)) == ["1", "g", *NAMES]


def test_who_shows_no_credentials_gets_no_list_without_the_right_on_everything() -> None:
    cluster = stocked()
    nobody = Caller()
    for path in ("/v1/topics", "/v1/partitions", "/v1/reassignments", "/v1/configs"):
        assert cluster.ask("GET", path, caller=nobody)[0] == 403
    anonymous = entry(
        DESCRIBE, "kafka-cluster", AclResourceType.CLUSTER, principal="User:ANONYMOUS"
    )
    cluster.write(anonymous)
    assert topics(cluster, nobody) == list(NAMES)


@pytest.mark.parametrize("enforcement", ["off", "log-only"])
def test_without_enforcement_everybody_sees_everything(enforcement: str) -> None:
    cluster = stocked(enforcement)
    assert topics(cluster) == partitions(cluster) == list(NAMES)


def test_pages_are_full_and_no_token_names_what_is_hidden() -> None:
    cluster = stocked()
    cluster.write(
        entry(DESCRIBE, "orders", number=1),
        entry(DESCRIBE, "zoo", number=2),
    )
    found, query = [], {"limit": "1"}
    for _ in range(2):
        status, reply = cluster.ask("GET", "/v1/topics", query=query, caller=ALICE)
        assert status == 200
        found += [each["name"] for each in reply["topics"]]
        token = reply["continuation"]
        if token is None:
            break
        decoded = urlsafe_b64decode(token + "=" * (-len(token) % 4))
        assert b"private" not in decoded
        assert b"orders-2" not in decoded
        query["continuation"] = token
    assert found == ["orders", "zoo"]
    assert reply["continuation"] is None
    assert reply["nextAfter"] is None


def test_a_page_behind_a_revocation_shows_less_of_the_old_image() -> None:
    cluster = stocked()
    allowed = entry(DESCRIBE, "orders", pattern=PREFIXED)
    cluster.write(allowed)
    first = cluster.ask("GET", "/v1/topics", query={"limit": "1"}, caller=ALICE)[1]
    assert [each["name"] for each in first["topics"]] == ["orders"]
    cluster.write(RemoveAccessControlEntryRecord(allowed.id))
    query = {"continuation": first["continuation"]}
    assert cluster.ask("GET", "/v1/topics", query=query, caller=ALICE)[1]["topics"] == []


def test_a_list_of_one_topic_needs_the_right_on_it() -> None:
    cluster = stocked()
    query = {"topic": "private"}
    status, reply = cluster.ask("GET", "/v1/partitions", query=query, caller=ALICE)
    assert (status, reply["code"]) == (403, "TOPIC_AUTHORIZATION_FAILED")


def test_the_right_that_counts_is_that_of_the_moment_of_the_answer() -> None:
    """A read that waits for an offset is filtered by the entries of its answer."""
    cluster = stocked()
    wide = entry(DESCRIBE, "kafka-cluster", AclResourceType.CLUSTER)
    cluster.write(wide)
    query = {"minOffset": str(cluster.image.offset + 1)}
    replies = cluster.send("GET", "/v1/topics", query=query, caller=ALICE)
    cluster.write(RemoveAccessControlEntryRecord(wide.id))
    cluster.run_until(lambda: bool(replies))
    body = json.loads(replies[0].body)
    assert "private" not in json.dumps(body)


@pytest.mark.parametrize("path", ["/v1/topics", "/v1/partitions", "/v1/configs"])
def test_what_is_hidden_is_looked_at_in_steps(path: str) -> None:
    cluster = stocked()
    many = [
        {
            "name": f"hidden-{n}",
            "numPartitions": 1,
            "replicationFactor": 1,
            "configs": {"retention.ms": "50000"},
        }
        for n in range(640)
    ]
    assert cluster.ask("POST", "/v1/topics", {"topics": many}, caller=ROOT)[0] == 200
    cluster.write(entry(DESCRIBE, "zoo"), entry(DESCRIBE_CONFIGS, "zoo", number=2))
    parts: list[int] = []

    def take(reply: Any) -> None:
        parts.append(sum(1 for part in reply.parts if not part))

    request = Request("GET", path, caller=ALICE)
    cluster.processes[1].run(lambda: cluster.leader.handle(request, take))
    cluster.run_until(lambda: bool(parts))
    assert parts[0] >= 10, "a step has at most 64 names"
