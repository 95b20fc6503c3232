"""An agent reports where replicas lie: in batches, one at a time, until the controller knows."""

import pytest

from broker_agent.directory_assignments import DirectoryAssignments
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.directories import (
    REPLICAS_PER_REQUEST,
    AssignedReplica,
    AssignReplicasReply,
    AssignReplicasRequest,
)
from metadata.messages.errors import error_reply
from metadata.partition_key import PartitionKey
from metadata.records import PartitionChangeRecord, RemoveTopicRecord
from metadata.uuids import parse_uuid, uuid_text
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import BROKER, partition, topic, topic_id
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.scripted_requester import ScriptedRequester

A, B, ELSEWHERE = b"directory-a-----", b"directory-b-----", b"of another one--"
KEY = PartitionKey(topic_id(1), 0)
OTHER = PartitionKey(topic_id(1), 1)


class Host(Rig):
    """A broker with two directories and a replica of both partitions of a topic."""

    def __init__(self) -> None:
        super().__init__(publishers=(self,), log_dirs=(A, B))
        self.controller = ScriptedRequester(AssignReplicasRequest)
        self.directories = DirectoryAssignments(
            BROKER, (A, B), clock=self.clock, requester=self.controller, log=quiet_log()
        )
        self.directories.follow(self.agent)
        self.online()
        parts = [partition(1, number, (8, BROKER), 8) for number in (0, 1)]
        self.active.commit(topic(1), *parts)
        self.run(0.1)

    def on_metadata(self, before, after, manifest):
        return self.directories.on_metadata(before, after, manifest)

    def assign(self, directory: bytes, *keys: PartitionKey) -> None:
        for key in keys or (KEY,):
            self.do(lambda key=key: self.directories.assign(key, directory))
        self.run(0.1)

    def asked(self, number: int = -1) -> list[tuple[int, bytes]]:
        """Partition and directory of each replica in one request."""
        message = self.controller.sent[number][2]
        return [(each.partition, parse_uuid(each.directory)) for each in message.replicas]

    def answer(self, code: ErrorCode | None = None) -> None:
        """Answer for all replicas of the last request."""
        message = self.controller.sent[-1][2]
        error = None if code is None else error_reply(LogbergError(code, "no"))
        found = tuple(AssignedReplica(r.topic_id, r.partition, error) for r in message.replicas)
        self.do(lambda: self.controller.answer(AssignReplicasReply(found)))

    def show(self, directory: bytes, number: int = 0) -> None:
        """Let the metadata show where the broker's replica lies."""
        self.active.commit(
            PartitionChangeRecord(number, topic_id(1), directories=(ELSEWHERE, directory))
        )
        self.run(0.1)


def test_replicas_that_are_reported_together_share_a_request() -> None:
    host = Host()
    host.assign(A, KEY, OTHER)
    ((target, path, message),) = host.controller.sent
    assert (target, path) == (host.agent.controller_url, f"/v1/brokers/{BROKER}/directories")
    assert message.broker_epoch == host.agent.broker_epoch
    assert message.incarnation_id == host.agent.incarnation
    assert host.asked() == [(0, A), (1, A)]
    assert host.directories.waiting() == 2
    host.answer()
    assert host.directories.waiting() == 0
    host.run(5.0)
    assert len(host.controller.sent) == 1


def test_one_request_is_under_way_and_the_newest_report_goes_next() -> None:
    host = Host()
    host.assign(A)
    host.assign(A, OTHER)
    host.assign(B)
    assert host.controller.waiting == 1
    host.answer()
    assert host.asked() == [(1, A), (0, B)]
    host.answer()
    assert host.directories.waiting() == 0


def test_a_lost_answer_and_a_refusal_of_all_are_repeated_after_a_pause() -> None:
    host = Host()
    host.assign(A)
    host.do(host.controller.lose)
    assert host.controller.waiting == 0
    for code in (ErrorCode.NOT_CONTROLLER, ErrorCode.NO_QUORUM, ErrorCode.STALE_BROKER_EPOCH):
        host.run(1.1)
        assert host.asked() == [(0, A)]
        host.do(lambda code=code: host.controller.refuse(code))
    host.run(1.1)
    assert host.controller.waiting == 1


@pytest.mark.parametrize(
    ("code", "again"),
    [
        (ErrorCode.NOT_CONTROLLER, True),
        (ErrorCode.THROTTLED, True),
        (ErrorCode.UNKNOWN_TOPIC_ID, False),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, False),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, False),
        (ErrorCode.INVALID_REQUEST, False),
    ],
)
def test_what_a_refused_replica_does_next(code: ErrorCode, again: bool) -> None:
    host = Host()
    host.assign(A)
    host.answer(code)
    host.run(3.0)
    assert (len(host.controller.sent) > 1) is again
    assert host.directories.waiting() == again


@pytest.mark.parametrize("code", [None, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_report_during_a_request_is_sent_whatever_its_answer_is(code: ErrorCode | None) -> None:
    """The metadata shows B, but the request that is under way will change it."""
    host = Host()
    host.show(B)
    host.assign(A)
    host.assign(B)
    host.answer(code)
    assert host.asked() == [(0, B)]


def test_a_newer_report_replaces_the_lost_one() -> None:
    host = Host()
    host.assign(A)
    host.assign(B)
    host.do(host.controller.lose)
    host.run(1.1)
    assert host.asked() == [(0, B)]


def test_a_lost_request_that_is_applied_late_is_put_right() -> None:
    """The first request may be applied after the second."""
    host = Host()
    host.assign(A)
    host.do(host.controller.lose)
    host.assign(B)
    host.run(1.1)
    host.answer()
    host.show(B)
    assert len(host.controller.sent) == 2
    host.show(A)
    assert host.asked() == [(0, B)]
    assert len(host.controller.sent) == 3


def test_what_the_metadata_shows_is_not_reported() -> None:
    host = Host()
    host.show(A)
    host.assign(A)
    assert not host.controller.sent
    host.assign(B)
    host.do(host.controller.lose)
    host.show(B)
    host.run(3.0)
    assert len(host.controller.sent) == 1
    assert host.directories.waiting() == 0


@pytest.mark.parametrize(
    "gone",
    [RemoveTopicRecord(topic_id(1)), PartitionChangeRecord(0, topic_id(1), replicas=(8,))],
    ids=["deleted", "moved away"],
)
def test_a_replica_that_is_gone_is_forgotten(gone) -> None:
    host = Host()
    host.assign(A)
    host.do(host.controller.lose)
    host.active.commit(gone)
    host.run(3.0)
    assert host.directories.waiting() == 0
    assert host.controller.waiting == 0


def test_a_directory_that_is_not_the_brokers_is_refused() -> None:
    host = Host()
    with pytest.raises(ValueError, match="log_dirs"):
        host.directories.assign(KEY, ELSEWHERE)


def test_many_replicas_go_in_several_requests() -> None:
    host = Host()
    count = 2 * REPLICAS_PER_REQUEST + 5
    parts = [partition(2, number, (8, BROKER), 8) for number in range(count)]
    host.active.commit(topic(2), *parts)
    host.run(0.1)
    host.assign(A, *(PartitionKey(topic_id(2), number) for number in range(count)))
    sizes = []
    while host.controller.waiting:
        sizes.append(len(host.asked()))
        assert host.controller.sent[-1][2].replicas[0].topic_id == uuid_text(topic_id(2))
        host.answer()
    assert sizes == [REPLICAS_PER_REQUEST, REPLICAS_PER_REQUEST, 5]
