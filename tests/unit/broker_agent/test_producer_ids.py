"""An agent's producer ids: one request at a time, the next block in time, no id twice."""

import pytest

from broker_agent.producer_ids import ProducerIds
from metadata.errors import ErrorCode
from metadata.messages.producer_ids import AllocateProducerIdsReply, AllocateProducerIdsRequest
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import BROKER
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.scripted_requester import ScriptedRequester


class Host(Rig):
    """A broker that takes producer ids."""

    def __init__(self, *, online: bool = True) -> None:
        super().__init__(publishers=(self,))
        self.controller = ScriptedRequester(AllocateProducerIdsRequest)
        self.ready = 0
        self.ids = ProducerIds(
            BROKER,
            clock=self.clock,
            requester=self.controller,
            on_ready=self.on_ready,
            log=quiet_log(),
        )
        self.ids.follow(self.agent)
        if online:
            self.online()

    def on_ready(self) -> None:
        self.ready += 1

    def on_metadata(self, before, after, manifest) -> None:
        self.ids.on_metadata(before, after, manifest)

    def block(self, first: int, count: int = 10) -> None:
        self.do(lambda: self.controller.answer(AllocateProducerIdsReply(first, count)))

    def take(self, count: int = 1) -> list[int | None]:
        taken: list[int | None] = []
        self.do(lambda: taken.extend(self.ids.take() for _ in range(count)))
        return taken


def test_the_first_block_is_asked_for_when_the_first_id_is_taken() -> None:
    host = Host()
    host.run(5.0)
    assert not host.controller.sent, "a host that takes no ids costs the controller nothing"
    assert host.take() == [None]
    ((target, path, message),) = host.controller.sent
    assert (target, path) == (host.agent.controller_url, "/v1/producer-ids")
    assert message == AllocateProducerIdsRequest(BROKER, host.agent.broker_epoch)
    host.block(7_000)
    assert host.ready == 1
    assert host.take(3) == [7_000, 7_001, 7_002]


def test_the_next_block_is_asked_for_when_a_tenth_is_left() -> None:
    host = Host()
    host.take()
    host.block(0)
    host.take(8)
    assert len(host.controller.sent) == 1
    host.take()
    assert len(host.controller.sent) == 2, "one of ten is left"
    host.block(50)
    assert host.take(3) == [9, 50, 51]
    assert host.ready == 1, "nobody waited for the second"


def test_one_request_is_under_way_however_many_ids_are_wanted() -> None:
    host = Host()
    assert host.take(100) == [None] * 100
    assert host.controller.waiting == 1
    host.run(20.0)
    assert len(host.controller.sent) == 1


@pytest.mark.parametrize(
    "code",
    [
        None,
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.NO_QUORUM,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLED,
        ErrorCode.DISK_FULL,
        ErrorCode.NOT_FOUND,
        ErrorCode.STALE_BROKER_EPOCH,
    ],
)
def test_a_request_without_a_block_is_repeated_after_a_pause(code: ErrorCode | None) -> None:
    host = Host()
    host.take()
    for _ in range(10):
        refusal = host.controller.lose if code is None else lambda: host.controller.refuse(code)
        host.do(refusal)
        assert host.controller.waiting == 0, "not at once"
        assert host.ids.problem.startswith("NO_ANSWER" if code is None else code.value)
        host.run(1.1)
        assert host.controller.waiting == 1
    assert host.ready == 0
    host.block(3_000)
    assert (host.ready, host.ids.problem) == (1, "")
    assert host.take() == [3_000]


def test_a_block_below_an_earlier_one_is_refused() -> None:
    """Such an answer is old: somebody has used these ids."""
    host = Host()
    host.take()
    host.block(1_000)
    assert host.take(10) == list(range(1_000, 1_010))
    for old in (1_000, 0, 1_009):
        host.block(old)
        assert host.take() == [None]
        host.run(1.1)
    host.block(1_010)
    assert host.take() == [1_010]


def test_an_empty_block_is_no_block() -> None:
    host = Host()
    host.take()
    host.block(1_000, 0)
    assert (host.ready, host.controller.waiting) == (0, 0)
    host.run(1.1)
    host.block(1_000)
    assert host.take() == [1_000]


def test_a_broker_that_is_not_registered_asks_once_it_is() -> None:
    host = Host(online=False)
    assert host.take() == [None]
    assert not host.controller.sent
    host.online()
    assert len(host.controller.sent) == 1


def test_after_the_end_nothing_is_asked_and_no_answer_counts() -> None:
    host = Host()
    host.take()
    host.do(host.ids.end)
    host.block(1_000)
    assert host.ready == 0
    assert host.take() == [None]
    host.run(5.0)
    assert len(host.controller.sent) == 1
