"""Reads Kafka's nodes in ZooKeeper, as Kafka 3.9 writes them (ZkData.scala), into an import plan.

It reads what Kafka's own migration reads (KIP-866), in the same order: topics with their configs
and partitions, configs of brokers, quotas and SCRAM credentials, the block of producer ids, access
control entries, delegation tokens. Rule: an ephemeral node is never taken. It stands for a session,
and a session does not move. What is left gets its reason from the table below.
"""

from typing import Final

import msgspec

from logberg.importing.import_plan import ImportPlan
from logberg.importing.kafka_acls import read_acls, read_tokens
from logberg.importing.kafka_clients import read_broker_configs, read_quotas_and_users
from logberg.importing.kafka_topics import read_topics
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.records import ProducerIdsRecord

_SESSION: Final = "ephemeral: it stands for a session, and sessions don't move"
_NOTIFICATION: Final = "a notification: what it tells of is read itself"
_LEFT: Final = (
    ("/admin/preferred_replica_election", "a request to the old controller"),
    ("/admin/reassign_partitions", "a request to the old controller: the topics hold its progress"),
    ("/brokers/seqid", "broker ids are given by hand here"),
    ("/config/changes", _NOTIFICATION),
    ("/consumers", "of consumers before Kafka 0.9: groups keep their offsets in a topic"),
    ("/controller", "who led the old cluster"),
    ("/controller_epoch", "who led the old cluster"),
    ("/delegation_token/token_changes", _NOTIFICATION),
    ("/isr_change_notification", _NOTIFICATION),
    ("/kafka-acl-changes", _NOTIFICATION),
    ("/kafka-acl-extended-changes", _NOTIFICATION),
    ("/log_dir_event_notification", _NOTIFICATION),
    ("/migration", "the state of another migration"),
    (
        "/feature",
        "levels are finalised by `logberg features` here, when brokers support them",
    ),
)
"""Prefixes of paths, and why what is below them is left."""


class _ClusterId(msgspec.Struct):
    id: str


class _ProducerIds(msgspec.Struct):
    broker: int
    block_end: str


def read_kafka(tree: ZnodeTree) -> ImportPlan:
    """Return what a tree of Kafka's nodes says; the plan names malformed nodes, too."""
    plan = ImportPlan()
    for node in tree:
        if node.ephemeral:
            plan.leave(node, _SESSION)
    lasting = ZnodeTree(node for node in tree if not node.ephemeral)
    _read_cluster_id(lasting, plan)
    read_topics(lasting, plan)
    read_broker_configs(lasting, plan)
    read_quotas_and_users(lasting, plan)
    _read_producer_ids(lasting, plan)
    read_acls(lasting, plan)
    read_tokens(lasting, plan)
    for node in lasting:
        if node.data and not plan.is_seen(node):
            plan.leave(node, _why_left(node))
    return plan


def _why_left(node: Znode) -> str:
    for prefix, why in _LEFT:
        if node.path == prefix or node.path.startswith(prefix + "/"):
            return why
    return "not a node of Kafka's layout"


def _read_cluster_id(tree: ZnodeTree, plan: ImportPlan) -> None:
    node = tree.get("/cluster/id")
    if node is not None and node.data:
        found = plan.decoded(node, _ClusterId)
        if found is not None:
            plan.cluster_id = found.id
            plan.seen(node)


def _read_producer_ids(tree: ZnodeTree, plan: ImportPlan) -> None:
    """The block's end is its last id, as text. The node is empty before the first block."""
    node = tree.get("/latest_producer_id_block")
    if node is None or not node.data:
        return
    block = plan.decoded(node, _ProducerIds)
    if block is None:
        return
    try:
        last = int(block.block_end)
    except ValueError:
        plan.refuse(node, f"block_end: {block.block_end[:50]!r} is no number")
        return
    plan.take(node, [ProducerIdsRecord(block.broker, -1, last + 1)])
