"""Reads topics, their configs and their partitions from Kafka's nodes.

Rule: a topic is taken with all its partitions, or not at all. A topic that waits for its deletion
is left. The partition epoch is the version of the partition's state node, as in KIP-866. Without
that node the first replica leads and all are in sync.
"""

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from logberg.importing.import_plan import ImportPlan
from logberg.importing.znodes import Znode, ZnodeTree
from metadata.configs.definitions import DEFINITIONS
from metadata.records import ConfigRecord, ConfigResourceType, PartitionRecord, Record, TopicRecord
from metadata.uuids import UuidError, parse_uuid, uuid4_from, uuid_text

_TOPICS: Final = "/brokers/topics"
_CONFIGS: Final = "/config/topics"


class _TopicNode(msgspec.Struct):
    partitions: dict[str, tuple[int, ...]]
    topic_id: str | None = None
    adding_replicas: dict[str, tuple[int, ...]] = {}
    removing_replicas: dict[str, tuple[int, ...]] = {}


class _StateNode(msgspec.Struct):
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    leader_recovery_state: int = 0


class ConfigNode(msgspec.Struct):
    """A node of configs: keys and their texts."""

    config: dict[str, str]


def read_topics(tree: ZnodeTree, plan: ImportPlan) -> None:
    """Take each topic, with its configs behind it and then its partitions."""
    for node in tree.children(_TOPICS):
        if tree.get(f"/admin/delete_topics/{node.name}") is not None:
            _leave_topic(tree, node, plan, "the topic waits for its deletion")
        elif node.data:
            _read_topic(tree, node, plan)
        else:
            plan.refuse(node, "the node is empty")
    for node in tree.children(_CONFIGS):
        if node.data and not plan.is_seen(node):
            plan.leave(node, "configs of a topic that isn't there")


def _read_topic(tree: ZnodeTree, node: Znode, plan: ImportPlan) -> None:
    malformed = len(plan.malformed)
    topic = plan.decoded(node, _TopicNode)
    config_node = tree.get(f"{_CONFIGS}/{node.name}")
    configs: Mapping[str, str] = {}
    if config_node is not None and config_node.data:
        configs = _known_configs(config_node, plan)
    if topic is None:
        _leave_topic(tree, node, plan, "the topic can't be read", but=node.path)
        return
    try:
        topic_id = (
            _assigned_id(node, plan) if topic.topic_id is None else parse_uuid(topic.topic_id)
        )
    except UuidError as error:
        plan.refuse(node, f"topic_id: {error}")
        topic_id = b""
    records: list[Record] = [TopicRecord(node.name, topic_id)]
    kind = int(ConfigResourceType.TOPIC)
    records += [ConfigRecord(kind, node.name, key, text) for key, text in sorted(configs.items())]
    if not topic.partitions:
        plan.refuse(node, "the topic has no partition")
    for number in sorted(topic.partitions, key=lambda text: (len(text), text)):
        partition = _read_partition(tree, node, plan, topic, topic_id, number)
        if partition is not None:
            records.append(partition)
    if len(plan.malformed) > malformed or not plan.take(node, records):
        _leave_topic(tree, node, plan, "a part of the topic can't be read")


def _read_partition(
    tree: ZnodeTree, node: Znode, plan: ImportPlan, topic: _TopicNode, topic_id: bytes, number: str
) -> PartitionRecord | None:
    """Return the record of a partition; None: it is malformed."""
    if not number.isascii() or not number.isdecimal() or str(int(number[:20])) != number:
        plan.refuse(node, f"{number[:50]!r} is no number of a partition")
        return None
    replicas = topic.partitions[number]
    if not replicas or len(set(replicas)) < len(replicas) or min(replicas) < 0:
        plan.refuse(node, f"partition {number} can't have the replicas {list(replicas)}")
        return None
    adding = topic.adding_replicas.get(number, ())
    removing = topic.removing_replicas.get(number, ())
    state_node = tree.get(f"{node.path}/partitions/{number}/state")
    if state_node is None or not state_node.data:
        plan.note(node, f"partition {number} has no state yet: all replicas count as in sync")
        state, epoch = _StateNode(replicas[0], 0, replicas), 0
    else:
        decoded = plan.decoded(state_node, _StateNode)
        if decoded is None:
            return None
        state, epoch = decoded, state_node.version
        if not set(state.isr) <= set(replicas) or state.leader not in (-1, *replicas):
            plan.refuse(
                state_node,
                f"leader {state.leader} and isr {list(state.isr)} are not among the replicas "
                f"{list(replicas)}",
            )
            return None
        plan.seen(state_node)
    record = PartitionRecord(
        int(number),
        topic_id,
        replicas,
        state.isr,
        removing,
        adding,
        state.leader,
        state.leader_epoch,
        epoch,
        state.leader_recovery_state,
    )
    return record if plan.is_writable(state_node or node, record) else None


def _known_configs(node: Znode, plan: ImportPlan) -> Mapping[str, str]:
    """Return a topic's configs. Kafka 4 knows some keys of earlier releases no more."""
    known = DEFINITIONS[ConfigResourceType.TOPIC]
    configs = {}
    for key, text in read_configs(node, plan).items():
        if key in known:
            configs[key] = text
        else:
            plan.leave(node, f"{key}: there is no such config of topics any more")
    return configs


def read_configs(node: Znode, plan: ImportPlan) -> Mapping[str, str]:
    """Return the configs of a node, without passwords that Kafka encrypted."""
    decoded = plan.decoded(node, ConfigNode)
    if decoded is None:
        return {}
    plan.seen(node)
    configs = {}
    for key, text in decoded.config.items():
        if text.startswith("keyFactoryAlgorithm:") or "encryptedPassword:" in text:
            plan.leave(node, f"{key}: encrypted with Kafka's password.encoder.secret; set it anew")
        else:
            configs[key] = text
    return configs


def _assigned_id(node: Znode, plan: ImportPlan) -> bytes:
    """Return an id for a topic from before KIP-516: the same one in each import of this topic."""
    about = f"{plan.cluster_id}\0{node.path}\0{node.czxid}".encode()
    drawn = hashlib.sha256(b"logberg imported topic\0" + about).digest()
    topic_id = uuid4_from(int.from_bytes(drawn, "big") >> (256 - 122))
    plan.note(node, f"the topic had no id and gets {uuid_text(topic_id)}")
    return topic_id


def _leave_topic(
    tree: ZnodeTree, node: Znode, plan: ImportPlan, why: str, *, but: str = ""
) -> None:
    """Leave a topic with all its nodes; `but`: one about which something is said already."""
    found = [node, *_below(tree, node.path)]
    for path in (f"{_CONFIGS}/{node.name}", f"/admin/delete_topics/{node.name}"):
        other = tree.get(path)
        if other is not None:
            found.append(other)
    refused = {each.path for each in plan.malformed} | {but}
    for each in found:
        if each.path in refused:
            continue
        if each.data or each.path.startswith("/admin/"):
            plan.leave(each, why)


def _below(tree: ZnodeTree, path: str) -> list[Znode]:
    found = []
    for child in tree.children(path):
        found += [child, *_below(tree, child.path)]
    return found
