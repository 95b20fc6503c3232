"""What this cluster says becomes nodes that say the same when they are read."""

from typing import Any

import pytest

from logberg.bridge.claim import Claim866, Claimant
from logberg.bridge.node_changes import NodeChange, NodeDeed
from logberg.bridge.source_state import source_state
from logberg.bridge.write_back import differences
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.records import PartitionRecord
from tests.unit.controller.managers.bridge.bridged_cluster import FAMILIES, BridgedCluster
from tests.unit.logberg.importing.trees import kafka_tree

CLAIM = Claim866(8, 9, Claimant(3000, 5))
ENTITY = [{"entityType": "user", "entityName": "a b*~"}, {"entityType": "client-id"}]
QUOTA = {"key": "request_percentage", "value": 12.5}


def changes_of(image: Any, tree: ZnodeTree) -> list[NodeChange]:
    return differences(image, tree, 9, CLAIM, lambda sealed: sealed).changes


def applied(tree: ZnodeTree, changes: list[NodeChange]) -> ZnodeTree:
    """Do as ZooKeeper does: parents first, versions as they are."""
    nodes = {node.path: node for node in tree}
    for each in changes:
        known = nodes.get(each.path)
        if each.deed is NodeDeed.CREATE:
            parent = each.path.rpartition("/")[0]
            assert known is None
            assert not parent or parent in nodes, each
            nodes[each.path] = Znode(each.path, each.data, czxid=0x9000, mzxid=0x9000)
            continue
        assert known is not None
        assert known.version == each.version
        if each.deed is NodeDeed.SET:
            nodes[each.path] = known._replace(data=each.data, version=known.version + 1)
        else:
            assert not any(path.startswith(each.path + "/") for path in nodes), each
            del nodes[each.path]
    return ZnodeTree(nodes.values())


@pytest.fixture
def tree() -> ZnodeTree:
    """Kafka's tree without what isn't followed: a token that expired, a topic that goes."""
    left = ("/tokens/", "/doomed")
    return ZnodeTree(n for n in kafka_tree() if not any(each in n.path for each in left))


@pytest.fixture
def bridged(tree: ZnodeTree) -> BridgedCluster:
    bridged = BridgedCluster()
    bridged.followed(source_state(tree, 9).records())
    assert bridged.mode("leading", 8)[0] == 200
    return bridged


def test_what_was_followed_needs_no_change(bridged: BridgedCluster, tree: ZnodeTree) -> None:
    assert changes_of(bridged.image, tree) == []


ACL = {
    "resourceType": "TOPIC",
    "resourceName": "team-",
    "patternType": "PREFIXED",
    "principal": "User:eve",
    "operation": "DESCRIBE_CONFIGS",
}
ALTERED = {
    "resources": [
        {
            "resourceType": kind,
            "resourceName": name,
            "configs": [{"name": key, "operation": "set", "value": value}],
        }
        for kind, name, key, value in (
            ("topic", "orders", "retention.ms", "4711"),
            ("broker", "", "log.cleaner.threads", "3"),
        )
    ]
}
ASKED = [
    ("DELETE", "/v1/topics", {"names": ["orders"]}, "delete /brokers/topics/orders"),
    ("PATCH", "/v1/configs", ALTERED, "set /config/topics/orders"),
    (
        "POST",
        "/v1/quotas",
        {"entries": [{"entity": ENTITY, "operations": [QUOTA]}]},
        "create /config/users/a%20b%2A%7E/clients/<default>",
    ),
    ("POST", "/v1/acls", {"acls": [ACL]}, "create /kafka-acl-extended/prefixed/Topic/team-"),
    ("DELETE", "/v1/acls", {"filters": [{}]}, "delete /kafka-acl/Cluster/kafka-cluster"),
]


@pytest.mark.parametrize(
    ("method", "path", "body", "wanted"), ASKED, ids=lambda each: str(each)[:30]
)
def test_a_change_here_becomes_nodes_that_say_the_same(
    bridged: BridgedCluster, tree: ZnodeTree, method: str, path: str, body: Any, wanted: str
) -> None:
    status, reply = bridged.cluster.ask(method, path, body)
    assert status == 200, reply
    image = bridged.image
    changes = changes_of(image, tree)
    assert wanted in {str(each) for each in changes}
    after = applied(tree, changes)
    assert changes_of(image, after) == []
    # A second cluster that follows these nodes has what the first one has.
    other = BridgedCluster()
    other.followed(source_state(after, 9).records(), complete=FAMILIES)
    assert list(other.image.topics.names) == list(image.topics.names)
    assert other.image.configs.resources == image.configs.resources
    assert other.image.client_quotas.entities == image.client_quotas.entities
    assert set(other.image.acls.by_content) == set(image.acls.by_content)


def test_a_topic_that_is_made_here_gets_its_nodes(bridged: BridgedCluster, tree: ZnodeTree) -> None:
    bridged.cluster.online(77)
    made = {"topics": [{"name": "new", "numPartitions": 2, "replicationFactor": 1}]}
    assert bridged.cluster.ask("POST", "/v1/topics", made)[0] == 200
    image = bridged.image
    after = applied(tree, changes_of(image, tree))
    assert changes_of(image, after) == []
    state = source_state(after, 9).topics["new"]
    assert [type(each).__name__ for each in state] == [
        "TopicRecord",
        "PartitionRecord",
        "PartitionRecord",
    ]
    assert isinstance(state[1], PartitionRecord)
    assert state[1].leader == 77
    assert after.get("/config/topics/new").data == b'{"version":1,"config":{}}'


def test_producer_ids_and_credentials_are_written(bridged: BridgedCluster, tree: ZnodeTree) -> None:
    (broker,) = bridged.cluster.online(77)
    body = {"brokerId": 77, "brokerEpoch": broker.epoch}
    status, reply = bridged.cluster.ask("POST", "/v1/producer-ids", body)
    assert status == 200, reply
    gone = {"deletions": [{"name": "alice", "mechanism": "SCRAM-SHA-256"}]}
    assert bridged.cluster.ask("POST", "/v1/users/scram", gone)[0] == 200
    changes = changes_of(bridged.image, tree)
    assert {"set /latest_producer_id_block", "set /config/users/alice"} <= set(map(str, changes))
    assert changes_of(bridged.image, applied(tree, changes)) == []
