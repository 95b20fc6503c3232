"""A leader asks for ISRs: one request at a time, repeated until its outcome is known."""

from typing import Any

import pytest

from broker_agent.isr_requests import IsrRequests, LedPartition
from broker_agent.isr_without_data import IsrWithoutData
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.errors import error_reply
from metadata.messages.partitions import (
    AlteredPartition,
    AlteredTopic,
    AlterPartitionReply,
    AlterPartitionRequest,
)
from metadata.messages.wire import MSGPACK, decode, encode
from metadata.partition_key import PartitionKey
from metadata.records import (
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
)
from metadata.uuids import uuid_text
from runtime.http.requests import Reply, Unreachable
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import BROKER, partition, topic, topic_id
from tests.unit.broker_agent.rig import Rig

KEY = PartitionKey(topic_id(1), 0)
OTHER = PartitionKey(topic_id(1), 1)
FULL = {BROKER: -1, 8: 80, 9: 90}
SHRUNK = {BROKER: -1, 8: 80}


class Controller:
    """Takes the requests for ISRs; the test answers them."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, AlterPartitionRequest]] = []
        self.callbacks: list[Any] = []

    def request(self, target, request, on_reply, deadline_s):
        assert request.path == "/v1/partitions/alter"
        message = decode(AlterPartitionRequest, request.body, request.headers["content-type"])
        self.sent.append((target, message))
        self.callbacks.append(on_reply)

    def asked(self, number: int = -1) -> list[tuple[int, int, list[int]]]:
        """(partition, partition epoch, members) of one request."""
        return [
            (
                part.partition_index,
                part.partition_epoch,
                [member.broker_id for member in part.new_isr_with_epochs],
            )
            for named in self.sent[number][1].topics
            for part in named.partitions
        ]


class Leader(Rig):
    """A broker that leads both partitions of a topic, with the ISR (7, 8, 9)."""

    def __init__(self) -> None:
        super().__init__(publishers=(self,))
        self.controller = Controller()
        self.changed: list[PartitionKey] = []
        self.isr = IsrRequests(
            BROKER,
            clock=self.clock,
            requester=self.controller,
            on_change=self.changed.append,
            log=quiet_log(),
        )
        self.isr.follow(self.agent)
        self.online()
        parts = [partition(1, number, (BROKER, 8, 9), BROKER, 3, 5) for number in (0, 1)]
        self.active.commit(topic(1), *parts)
        self.run(0.1)

    def on_metadata(self, before, after, manifest):
        return self.isr.on_metadata(before, after, manifest)

    def ask(self, isr, key: PartitionKey = KEY) -> bool:
        asked: list[bool] = []
        self.do(lambda: asked.append(self.isr.ask(key, isr)))
        return asked[0]

    def answer(self, *partitions: AlteredPartition) -> None:
        topics = (AlteredTopic(partitions, topic_id=uuid_text(KEY.topic_id)),)
        body = encode(AlterPartitionReply(topics), MSGPACK)
        self.give(Reply(200, body, {"content-type": MSGPACK}))

    def give(self, answer: Reply | Unreachable) -> None:
        self.do(lambda: self.controller.callbacks.pop(0)(answer))

    def changed_to(self, isr, partition_epoch: int = 6, number: int = 0) -> AlteredPartition:
        return AlteredPartition(
            number,
            leader_id=BROKER,
            leader_epoch=3,
            isr=tuple(isr),
            partition_epoch=partition_epoch,
        )

    def refusal(self, code: ErrorCode) -> AlteredPartition:
        return AlteredPartition(0, error=error_reply(LogbergError(code, "no")))

    @property
    def maximal(self) -> set[int]:
        known = self.isr.of(KEY)
        assert known is not None
        return set(known.maximal)


def test_the_answer_counts_before_the_metadata_shows_it() -> None:
    leader = Leader()
    assert leader.ask(SHRUNK)
    assert leader.controller.asked() == [(0, 5, [7, 8])]
    sent = leader.controller.sent[0][1]
    assert sent.broker_epoch == leader.agent.broker_epoch
    assert sent.incarnation_id == leader.agent.incarnation
    assert leader.maximal == {7, 8, 9}, "the outcome is open"
    leader.answer(leader.changed_to(SHRUNK))
    assert leader.isr.of(KEY) == LedPartition(3, 6, (7, 8), frozenset({7, 8}))
    assert leader.changed == [KEY]
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7, 8)))
    leader.run(0.1)
    assert leader.isr.of(KEY) == LedPartition(3, 6, (7, 8), frozenset({7, 8}))


def test_a_member_that_is_to_come_back_counts_at_once() -> None:
    leader = Leader()
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7, 8)))
    leader.run(0.1)
    leader.ask(FULL)
    assert leader.maximal == {7, 8, 9}


def test_one_request_is_under_way_and_the_newest_wish_goes_next() -> None:
    leader = Leader()
    leader.ask(SHRUNK)
    leader.ask({BROKER: -1}, OTHER)
    leader.ask(SHRUNK, OTHER)
    assert len(leader.controller.sent) == 1
    leader.answer(leader.changed_to(SHRUNK))
    assert leader.controller.asked() == [(1, 5, [7, 8])]
    leader.answer(leader.changed_to(SHRUNK, number=1))
    leader.run(5.0)
    assert len(leader.controller.sent) == 2


def test_a_lost_answer_is_asked_for_again_with_the_same_partition_epoch() -> None:
    leader = Leader()
    leader.ask(SHRUNK)
    leader.give(Unreachable("no answer"))
    assert leader.maximal == {7, 8, 9}
    leader.run(1.0)
    assert leader.controller.asked() == [(0, 5, [7, 8])]
    # The request whose answer was lost may still be applied, so its ISR counts besides.
    leader.answer(leader.refusal(ErrorCode.INELIGIBLE_REPLICA))
    assert leader.maximal == {7, 8, 9}
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7, 8)))
    leader.run(0.1)
    assert leader.maximal == {7, 8}


@pytest.mark.parametrize(
    ("code", "again"),
    [
        (ErrorCode.NOT_CONTROLLER, True),
        (ErrorCode.REQUEST_TIMED_OUT, True),
        (ErrorCode.INELIGIBLE_REPLICA, False),
        (ErrorCode.INVALID_REQUEST, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False),
        (ErrorCode.FENCED_LEADER_EPOCH, False),
        (ErrorCode.UNKNOWN_TOPIC_ID, False),
        (ErrorCode.NEW_LEADER_ELECTED, False),
    ],
)
def test_what_a_refused_partition_does_next(code: ErrorCode, again: bool) -> None:
    leader = Leader()
    leader.ask(SHRUNK)
    leader.answer(leader.refusal(code))
    leader.run(3.0)
    assert (len(leader.controller.sent) > 1) is again
    assert (leader.changed == []) is again


@pytest.mark.parametrize(
    ("code", "counts"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, {7, 8}),
        (ErrorCode.INVALID_REQUEST, {7, 8}),
        # The controller knows a newer partition epoch: perhaps of this very ISR.
        (ErrorCode.INVALID_UPDATE_VERSION, {7, 8, 9}),
    ],
)
def test_a_refused_member_counts_only_while_it_may_be_in_the_isr(
    code: ErrorCode, counts: set[int]
) -> None:
    leader = Leader()
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7, 8)))
    leader.run(0.1)
    leader.ask(FULL)
    leader.answer(leader.refusal(code))
    assert leader.maximal == counts


@pytest.mark.parametrize("status", [421, 429, 503, 507])
def test_a_refused_request_is_repeated_at_the_controller_that_the_agent_follows(
    status: int,
) -> None:
    codes = {421: "NOT_CONTROLLER", 429: "THROTTLED", 503: "NO_QUORUM", 507: "DISK_FULL"}
    leader = Leader()
    leader.ask(SHRUNK)
    error = error_reply(LogbergError(ErrorCode(codes[status]), "not now"))
    leader.give(Reply(status, encode(error, MSGPACK), {"content-type": MSGPACK}))
    leader.run(1.0)
    assert len(leader.controller.sent) == 2
    assert leader.controller.sent[1][0] == leader.agent.controller_url


def test_who_leads_no_more_asks_no_more() -> None:
    leader = Leader()
    leader.ask(SHRUNK)
    leader.give(Unreachable("refused", refused=True))
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, leader=8))
    leader.run(3.0)
    assert len(leader.controller.sent) == 1
    assert leader.isr.of(KEY) is None
    assert not leader.ask(SHRUNK)


def test_an_isr_that_holds_is_not_asked_for() -> None:
    leader = Leader()
    assert not leader.ask(FULL)
    assert not leader.controller.sent


def test_many_partitions_go_in_several_requests() -> None:
    leader = Leader()
    parts = [partition(2, number, (BROKER, 8, 9), BROKER, 3, 5) for number in range(450)]
    leader.active.commit(topic(2), *parts)
    leader.run(0.1)
    for number in range(450):
        leader.ask(SHRUNK, PartitionKey(topic_id(2), number))
    counts = []
    while leader.controller.callbacks:
        asked = leader.controller.asked()
        counts.append(len(asked))
        body = encode(
            AlterPartitionReply(
                (
                    AlteredTopic(
                        tuple(leader.changed_to(SHRUNK, number=n) for n, _, _ in asked),
                        topic_id=uuid_text(topic_id(2)),
                    ),
                )
            ),
            MSGPACK,
        )
        leader.give(Reply(200, body, {"content-type": MSGPACK}))
    assert counts == [1, 200, 200, 49]


class Empty(Leader):
    """A leader without data: `IsrWithoutData` asks for it."""

    def on_metadata(self, before, after, manifest):
        yield from super().on_metadata(before, after, manifest)
        yield from IsrWithoutData(BROKER, self.isr).on_metadata(before, after, manifest)


def test_a_broker_without_data_asks_for_replicas_that_come_online_and_never_for_fewer() -> None:
    leader = Empty()
    eight = RegisterBrokerRecord(8, bytes(16), leader.log.end, (), (), None, fenced=True)
    leader.active.commit(eight)
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7,)))
    leader.run(0.1)
    assert not leader.controller.sent, "broker 8 is fenced"
    epoch = leader.log.image.cluster.brokers[8].broker_epoch
    leader.active.commit(BrokerRegistrationChangeRecord(8, epoch, fenced=-1))
    leader.run(0.1)
    assert leader.controller.asked() == [(0, 6, [7, 8])]
    leader.answer(leader.changed_to((7, 8), 7))
    leader.active.commit(PartitionChangeRecord(0, KEY.topic_id, isr=(7, 8)))
    leader.active.commit(BrokerRegistrationChangeRecord(8, epoch, fenced=1))
    leader.run(0.1)
    assert len(leader.controller.sent) == 1
