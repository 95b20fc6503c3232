"""What decisions that come together share, and what each has of its own (ADR 0045)."""

from typing import Any

import pytest

from controller.leader import batch_writer
from controller.leader.decisions import Decision, Written
from controller.replica import open_group, pending
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.codec import RecordDecodeError, encode_records
from metadata.errors import LogbergError
from metadata.records import ConfigRecord, NoOpRecord, PartitionChangeRecord, TopicRecord
from tests.unit.controller.cluster import Cluster


@pytest.fixture
def cluster():
    cluster = Cluster(on_defect=None)
    cluster.online(1)
    return cluster


@pytest.fixture
def built(monkeypatch):
    """How many batches each group had whose image was built."""
    sizes = []
    close = open_group.OpenGroup.close

    def counted(group):
        if group.is_open and len(group):
            sizes.append(len(group))
        return close(group)

    monkeypatch.setattr(open_group.OpenGroup, "close", counted)
    return sizes


def create(cluster, name, partitions=1, **more):
    topic = {"name": name, "numPartitions": partitions, "replicationFactor": 1}
    return cluster.send("POST", "/v1/topics", {"topics": [topic]}, **more)


def decide(cluster, *records):
    outcomes = []
    decision = Decision(
        lambda _image: ControllerResult(records), Provenance(operation="Test"), outcomes.append
    )
    leader = cluster.shared.leader
    cluster.processes[leader].run(lambda: cluster.leader._leader.proposer.submit(decision))
    return outcomes


def statuses(cluster, *replies):
    cluster.run_until(lambda: all(replies))
    return [reply[0].status for reply in replies]


def test_each_request_keeps_a_batch_of_its_own_and_they_share_an_image(cluster, built):
    before = len(cluster.batches())
    assert statuses(cluster, *[create(cluster, f"t{n}") for n in range(5)]) == [200] * 5
    new = cluster.batches()[before:]
    assert [b.header.provenance.operation for b in new] == ["CreateTopics"] * 5
    assert len({b.header.provenance.request_id for b in new}) == 5
    assert built == [5]
    cluster.assert_equal()


def test_a_request_sees_what_the_one_before_it_decided(cluster, built):
    assert statuses(cluster, create(cluster, "t"), create(cluster, "t")) == [200, 409]
    assert built == [1]


def test_what_a_decision_with_a_defect_began_to_replay_is_not_there(cluster):
    first = create(cluster, "a")
    defect = decide(
        cluster,
        TopicRecord("t", bytes(16)),
        PartitionChangeRecord(0, b"no topic has id!", isr=(1,)),
    )
    after = create(cluster, "t")
    assert statuses(cluster, first, after) == [200, 200]
    assert isinstance(defect[0], LogbergError)
    assert sorted(cluster.image.topics.by_name) == ["a", "t"]
    cluster.assert_equal()


def test_a_batch_for_which_there_is_no_room_leaves_nothing(cluster):
    cluster.shared.nodes[1].room = 1
    first, second = create(cluster, "a"), create(cluster, "b")
    cluster.shared.nodes[1].room = None
    third = create(cluster, "b")
    assert statuses(cluster, first, second, third) == [200, 507, 200]
    cluster.assert_equal()


def test_leadership_that_is_lost_while_proposing_leaves_nothing(cluster):
    first = create(cluster, "a")
    cluster.shared.nodes[1].leading, epoch = 0, cluster.shared.nodes[1].leading
    second = create(cluster, "b")
    assert statuses(cluster, second) == [503]
    assert "b" not in cluster.leader._leader.proposer.pending.image.topics.by_name
    cluster.shared.nodes[1].leading = epoch
    assert statuses(cluster, first, create(cluster, "b")) == [200, 200]
    cluster.assert_equal()


def test_a_group_ends_where_an_entry_takes_it(cluster, built):
    replies = [create(cluster, "a"), create(cluster, "b")]
    # The quorum makes an entry of the two. It is not committed yet.
    cluster.shared.nodes[1].flush(cluster.shared.epoch)
    replies.append(create(cluster, "c"))
    assert built == [2]
    assert statuses(cluster, *replies) == [200] * 3
    assert built == [2, 1]
    cluster.assert_equal()


def test_a_group_that_is_committed_in_parts_shows_only_what_is_committed(cluster):
    quorum = cluster.shared.nodes[1]
    replies = [create(cluster, name) for name in "abc"]
    payloads, quorum.waiting = quorum.waiting, []
    cluster.shared.commit(cluster.shared.epoch, payloads[:2])
    cluster.run_until(lambda: all(replies[:2]))
    assert sorted(cluster.image.topics.by_name) == ["a", "b"]
    assert not replies[2]
    assert cluster.leader._leader.proposer.pending.bytes == len(payloads[2])
    cluster.shared.commit(cluster.shared.epoch, payloads[2:])
    assert statuses(cluster, *replies) == [200] * 3
    assert sorted(cluster.image.topics.by_name) == ["a", "b", "c"]
    cluster.assert_equal()


@pytest.mark.parametrize(
    ("module", "limit", "groups"),
    [(open_group, "GROUP_RECORDS_MAX", [4, 2]), (pending, "GROUP_BYTES_MAX", [1] * 6)],
)
def test_a_group_is_bounded(cluster, built, monkeypatch, module, limit, groups):
    monkeypatch.setattr(module, limit, 10)
    replies = [create(cluster, f"t{n}") for n in range(6)]
    assert statuses(cluster, *replies) == [200] * 6
    assert built == groups


def test_every_node_notes_its_state_at_the_same_batches(cluster):
    for n in range(12):
        decide(cluster, *[NoOpRecord()] * 60)
        create(cluster, f"t{n}")
    cluster.run(0.5)
    for _ in range(12):
        decide(cluster, *[NoOpRecord()] * 60)
    cluster.run(0.5)
    marks = [[m.offset for m in c._replica.marks._coarse] for c in cluster.controllers.values()]
    assert marks[0]
    assert marks[0] == marks[1] == marks[2]


def test_a_decision_that_takes_long_reads_one_image_to_its_end(cluster):
    """It is decided beside others, and must not see what they write meanwhile."""
    seen = []

    def long(image):
        for _ in range(3):
            seen.append(image.topics.named("late") is not None)
            yield
        return ControllerResult((NoOpRecord(),))

    outcomes = []
    first = create(cluster, "early")
    decision = Decision(long, Provenance(operation="Test"), outcomes.append)
    cluster.processes[1].run(lambda: cluster.leader._leader.proposer.submit(decision))
    late = create(cluster, "late")
    assert statuses(cluster, first, late) == [200, 200]
    cluster.run_until(lambda: bool(outcomes))
    assert isinstance(outcomes[0], Written)
    # It is made again, because another change came in between, and then it sees that one.
    assert seen[:3] == [False] * 3


def test_a_record_that_its_encoding_does_not_give_back_is_a_defect(cluster):
    outcomes = decide(cluster, ConfigRecord(True, "t", "retention.ms", "1"))
    cluster.run(0.1)
    assert isinstance(outcomes[0], LogbergError)
    assert len(cluster.image.configs.resources) == 0
    cluster.assert_equal()


A_LIST: Any = [1]


@pytest.mark.parametrize(
    "record",
    [ConfigRecord(True, "t", "k", "v"), PartitionChangeRecord(0, bytes(16), isr=A_LIST)],
)
def test_equal_is_not_enough_the_types_must_be_those_that_are_decoded(record):
    with pytest.raises(RecordDecodeError):
        batch_writer.compare([record], encode_records([record]))
