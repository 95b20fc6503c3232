"""Properties of groups: deciding in a group is deciding one after the other.

The same requests come in the same moment to two leaders. One decides in groups. The other replays
each batch from its bytes and publishes an image for each, as before ADR 0045. Logs, answers and
images must be equal, byte for byte.
"""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.leader import batch_writer
from controller.leader.decisions import Decision
from controller.replica import open_group
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.image.delta import OPEN_KINDS
from metadata.records import PartitionChangeRecord, RequestOutcomeRecord, TopicRecord
from metadata.uuids import uuid7, uuid_text
from tests.histories import History
from tests.unit.controller.cluster import CLUSTER_ID, Cluster

NAMES = ("a", "b", "c.d", "c_d", "e")
_CLUSTER: Any = Cluster
Change = tuple[str, str, Any]


def created(dice: random.Random, name: str) -> Change:
    wanted = {"name": name, "numPartitions": dice.choice((1, 2, 3, 300)), "replicationFactor": 1}
    if dice.random() < 0.3:
        wanted["configs"] = [{"name": "retention.ms", "value": "7000"}]
    topics = [wanted]
    if dice.random() < 0.2:
        topics.append({"name": dice.choice(NAMES), "numPartitions": 1, "replicationFactor": 2})
    return "POST", "/v1/topics", {"topics": topics, "dryRun": dice.random() < 0.15}


def deleted(_dice: random.Random, name: str) -> Change:
    return "DELETE", f"/v1/topics/{name}", None


def enlarged(dice: random.Random, name: str) -> Change:
    row = {"name": name, "count": dice.randint(1, 5)}
    return "POST", "/v1/partitions", {"topics": [row]}


def configured(dice: random.Random, name: str) -> Change:
    config = {"name": "retention.ms", "value": dice.choice(("1000", "2000", None, "no number"))}
    return "PATCH", f"/v1/configs/topic/{name}", {"configs": [config]}


def limited(dice: random.Random, name: str) -> Change:
    entity = [{"entityType": "user", "entityName": name}]
    operations = [{"key": "producer_byte_rate", "value": float(dice.randint(1, 3))}]
    return "POST", "/v1/quotas", {"entries": [{"entity": entity, "operations": operations}]}


def allowed(_dice: random.Random, name: str) -> Change:
    entry = {"resourceType": "TOPIC", "resourceName": name, "operation": "READ"}
    return "POST", "/v1/acls", {"acls": [entry | {"principal": "User:a"}]}


def elected(_dice: random.Random, name: str) -> Change:
    wanted = [{"topic": name, "partitions": [0]}]
    body = {"electionType": "preferred", "topicPartitions": wanted}
    return "POST", "/v1/partitions/elect", body


def moved(dice: random.Random, name: str) -> Change:
    row = {"topic": name, "partition": 0, "replicas": [dice.randint(1, 2)]}
    return "POST", "/v1/reassignments", {"partitions": [row]}


def altered(dice: random.Random, _name: str) -> Change:
    row = {
        "partitionIndex": 0,
        "leaderEpoch": dice.randint(0, 1),
        "partitionEpoch": dice.randint(0, 2),
        "newIsrWithEpochs": [{"brokerId": dice.randint(1, 2)}],
    }
    body = {
        "clusterId": CLUSTER_ID,
        "brokerId": dice.randint(1, 2),
        "brokerEpoch": dice.randint(1, 12),
        "topics": [{"topicName": "before", "partitions": [row]}],
    }
    return "POST", "/v1/partitions/alter", body


CHANGES = (
    created,
    created,
    created,
    deleted,
    enlarged,
    configured,
    limited,
    allowed,
    elected,
    moved,
    altered,
)


def defect(image: MetadataImage) -> ControllerResult:
    raise ZeroDivisionError("planted")


def not_replayable(name: str) -> Any:
    """A decision of which the first record can be replayed, and the second can't."""

    def decide(image: MetadataImage) -> ControllerResult:
        topic = TopicRecord(name, bytes(15) + name[:1].encode())
        return ControllerResult((topic, PartitionChangeRecord(0, b"no topic has id!", isr=(1,))))

    return decide


def run(seed: int) -> Any:
    """Send a drawn mix of requests in a few bursts: (log, answers, image, what was shared)."""
    dice = random.Random(seed)
    cluster = _CLUSTER(nodes=1, on_defect=None, partition_mutations_burst=1_000)
    cluster.online(1, 2)
    cluster.create_topic("before", factor=2)
    proposer = cluster.leader._leader.proposer
    answers: list[Any] = []
    for _ in range(dice.randint(1, 3)):
        read_at = cluster.image.offset
        ids = [
            uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), dice.getrandbits(70)))
            for _ in range(3)
        ]
        if dice.random() < 0.2:
            cluster.shared.nodes[1].room = dice.randint(0, 8)
        for _ in range(dice.randint(1, 20)):
            name, dart = dice.choice(NAMES), dice.random()
            if dart < 0.1:
                decide = dice.choice((defect, not_replayable(name)))
                outcomes: list[Any] = []
                decision = Decision(decide, Provenance(operation="Defect"), outcomes.append)
                cluster.processes[1].run(lambda decision=decision: proposer.submit(decision))
                answers.append(outcomes)
                continue
            headers = {}
            if dart < 0.3:
                headers["x-logberg-request-id"] = dice.choice(ids)
            if dice.random() < 0.3:
                headers["x-logberg-expect-offset"] = str(read_at + dice.choice((-3, 0, 0, 2)))
            method, path, body = dice.choice(CHANGES)(dice, name)
            answers.append(cluster.send(method, path, body, headers=headers))
        cluster.run_until(lambda: all(answers))
        cluster.shared.nodes[1].room = None
    log = [batch.encoded for batch in cluster.batches()]
    cluster.assert_equal()
    return log, [repr(answer[0]) for answer in answers], cluster.image


@settings(max_examples=25)
@given(st.integers(0, 2**32))
def test_a_group_decides_as_one_after_the_other(seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_writer, "_fits_group", lambda *_: False)
        alone = run(seed)
    in_groups = run(seed)
    assert in_groups[1] == alone[1]
    assert in_groups[0] == alone[0]
    assert in_groups[2] == alone[2]


def test_requests_that_come_together_share_an_image() -> None:
    """What the property compares are groups indeed."""
    cluster = _CLUSTER(nodes=1)
    cluster.online(1)
    built: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        close = open_group.OpenGroup.close

        def counted(group: Any) -> MetadataImage:
            if group.is_open:
                built.append(len(group))
            return close(group)

        patch.setattr(open_group.OpenGroup, "close", counted)
        wanted = {"numPartitions": 1, "replicationFactor": 1}
        replies = [
            cluster.send("POST", "/v1/topics", {"topics": [{"name": f"t{n}", **wanted}]})
            for n in range(20)
        ]
        cluster.run_until(lambda: all(replies))
    assert built == [20]
    assert {reply[0].status for reply in replies} == {200}


@settings(max_examples=40)
@given(st.integers(0, 2**32))
def test_an_open_image_reads_as_the_built_one(seed: int) -> None:
    """After each batch, keys are read from the open image, and at the end everything else."""
    image = EMPTY
    dice = random.Random(seed)
    open_batches: list[Any] = []
    for batch in History(seed).batches(80):
        fits = OPEN_KINDS.issuperset(map(type, batch.records)) and image.transaction is None
        if fits:
            open_batches.append(batch)
        if not fits or dice.random() < 0.2:
            image = _in_a_group(image, open_batches)
            open_batches = []
        if not fits:
            image = _replayed(image, [batch])


def _replayed(image: MetadataImage, batches: Any) -> MetadataImage:
    delta = MetadataDelta(image)
    for batch in batches:
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
    return delta.apply()


def _in_a_group(image: MetadataImage, batches: Any) -> MetadataImage:
    delta = MetadataDelta(image)
    for number, batch in enumerate(batches, 1):
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
        view = delta.opened(delta.apply)
        expected = _replayed(image, batches[:number])
        assert view.offset == expected.offset
        for topic_id, topic in expected.topics.by_id.items():
            assert view.topics.named(topic.name) == topic
            assert topic_id in view.topics.by_id
            assert view.topics.ids_of(topic_id) == expected.topics.ids_of(topic_id)
            for partition_id, partition in expected.topics.partitions_of(topic_id):
                assert view.topics.partitions[topic_id, partition_id] == partition
            assert view.topics.spelled_alike(topic.name) == expected.topics.spelled_alike(
                topic.name
            )
        assert view.topics.named("no such topic") is None
        for key, values in expected.configs.resources.items():
            assert view.configs.resources[key] == values
        for entity, quotas in expected.client_quotas.entities.items():
            assert view.client_quotas.entities.get(entity) == quotas
        assert view.producer_ids.last == expected.producer_ids.last
        assert view.outcomes.floor == expected.outcomes.floor
        for record in batch.records:
            if isinstance(record, RequestOutcomeRecord):
                kept = view.outcomes.get(record.key)
                assert kept == expected.outcomes.get(record.key)
    if not batches:
        return delta.apply()
    # What a key does not tell builds the image, and the open one becomes equal to it.
    assert view.topics.names == expected.topics.names
    assert view.same_state(expected)
    assert (view.topics, view.configs) == (expected.topics, expected.configs)
    assert view.outcomes.order == expected.outcomes.order
    return delta.apply()
