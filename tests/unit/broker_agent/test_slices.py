"""Large answers are followed in slices: whole, in order, with heartbeats and other work in between.

Here every step of long work takes a pass of the loop, and a pass takes 10 ms.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from broker_agent.publishers import Manifest, PartitionDuties
from broker_agent.states import BrokerState
from metadata import replay_steps
from metadata.image import MetadataDelta
from metadata.messages.fetch import MetadataFetchReply, MetadataFetchRequest, SeenState, StateAt
from metadata.partition_key import PartitionKey
from metadata.records import PartitionChangeRecord
from metadata.steps import finished
from runtime.loop import slices
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.world import SimulationFailedError
from tests.unit.broker_agent.fake_cluster import BROKER, Log, like, partition, topic, topic_id
from tests.unit.broker_agent.rig import LEASE_S, Rig

PASS_S = 0.01
PARTITIONS = 120
HEARTBEAT_MS = 200


@pytest.fixture(autouse=True)
def short_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    monkeypatch.setattr(SimulatedClock, "SOON_US", int(PASS_S * 1e6))
    monkeypatch.setattr(replay_steps, "STEP", 2)


def large(log: Log, *numbers: int) -> None:
    """Append a batch for each of these topics: topic and partitions, led by this broker."""
    for number in numbers:
        parts = (partition(number, p, (BROKER, 8), BROKER) for p in range(PARTITIONS))
        log.append(topic(number), *parts)


def online(**settings: Any) -> Rig:
    rig = Rig(heartbeat_ms=HEARTBEAT_MS, **settings)
    rig.start()
    rig.run(2.0)
    assert rig.agent.may_serve(), rig.agent.reason
    return rig


def begun(rig: Rig, *numbers: int) -> Rig:
    """Let an answer with these topics arrive, and some of its steps run."""
    large(rig.log, *numbers)
    rig.active.wake()
    rig.run(0.1)
    assert rig.agent.catching_up.following
    return rig


def passes(rig: Rig, until_s: float = 10.0) -> Iterator[None]:
    """Run pass by pass until the answer is followed."""
    count = 0
    while rig.agent.catching_up.following:
        rig.run(PASS_S)
        count += 1
        assert count < until_s / PASS_S
        yield


def test_a_reader_sees_the_image_before_an_answer_or_the_one_after_it() -> None:
    rig = online()
    before = rig.agent.image
    begun(rig, 1, 2, 3)
    seen = {id(rig.agent.image): rig.agent.image}
    offsets = {rig.agent.view.fetched_offset}
    count = 0
    for count, _ in enumerate(passes(rig)):  # noqa: B007 - counted
        seen[id(rig.agent.image)] = rig.agent.image
        offsets.add(rig.agent.view.fetched_offset)
    assert count > 3 * PARTITIONS / 4, "it took many passes"
    assert [image.offset for image in seen.values()] == [before.offset, rig.log.end]
    assert offsets == {before.offset, rig.log.end}
    assert rig.agent.image.same_state(rig.log.image)


def test_a_reader_sees_no_part_of_an_answer_that_reaches_many_reported_states(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the states that controllers report there is an image for each, for nobody to see."""
    monkeypatch.setattr("broker_agent.view.HASH_STEP", 16)
    test_a_reader_sees_the_image_before_an_answer_or_the_one_after_it()


def test_heartbeats_go_on_and_the_next_batches_wait_for_these() -> None:
    rig = begun(online(), 1, 2, 3)
    large_end = rig.log.end
    fetched = rig.agent.view.fetched_offset
    sent = len(rig.controllers.fetches)
    rig.log.append(PartitionChangeRecord(0, topic_id(1), leader=8))
    for _ in passes(rig):
        assert rig.agent.may_serve()
    beats = [asked.fetch for asked in rig.controllers.fetches[sent:-1]]
    assert len(beats) >= 3, "one each 0.2 s"
    assert {(b.fetched_offset, b.applied_offset, b.max_bytes) for b in beats} == {
        (fetched, fetched, 0)
    }
    assert rig.agent.view.fetched_offset == large_end, "what their answers held was ignored"
    assert rig.controllers.last.fetch.fetched_offset == large_end
    rig.run(1.0)
    assert [step[1] for step in rig.seen.steps[-2:]] == [large_end, rig.log.end]
    assert rig.agent.image.same_state(rig.log.image)


def test_an_answer_to_a_heartbeat_that_is_under_way_at_the_end_is_ignored() -> None:
    rig = begun(online(answer_slack_ms=3_000), 1)
    rig.active.silent = True
    rig.do(lambda: rig.agent.set_host_ready(ready=False))
    rig.do(lambda: rig.agent.set_host_ready(ready=True))
    late = rig.controllers.last
    for _ in passes(rig):
        pass
    assert late.abandoned
    rig.active.silent = False
    rig.run(2.0)
    assert rig.agent.view.fetched_offset == rig.log.end


def test_a_broker_that_is_fenced_stops_serving_before_the_answer_is_followed() -> None:
    rig = begun(online(), 1, 2, 3)
    rig.active.says = SeenState.FENCED
    rig.run(0.3)
    assert rig.agent.catching_up.following
    assert rig.state is BrokerState.FENCED
    assert not rig.agent.may_serve()
    rig.active.says = None
    for _ in passes(rig):
        old = rig.agent.view.fetched_offset < rig.log.end
        assert not (old and rig.agent.may_serve())
    rig.run(2.0)
    assert rig.agent.may_serve()
    assert rig.agent.image.same_state(rig.log.image)


def test_who_was_told_to_stop_ends_with_the_whole_image() -> None:
    rig = begun(online(), 1)
    rig.active.may_stop = True
    end = rig.log.end
    rig.do(rig.agent.stop)
    for _ in passes(rig):
        assert rig.gone is None
    rig.run(3.0)
    assert rig.gone[1] is True
    assert rig.agent.image.offset >= end


def test_an_agent_that_is_abandoned_in_the_middle_calls_nobody_and_starts_again() -> None:
    rig = begun(online(), 1, 2)
    steps, before = list(rig.seen.steps), rig.agent.image
    rig.do(rig.agent.abandon)
    rig.run(5.0)
    assert rig.seen.steps == steps
    assert rig.agent.image is before
    rig.restart(orderly=False)
    rig.start()
    rig.run(8.0)
    assert rig.agent.may_serve()
    assert rig.agent.image.same_state(rig.log.image)


def test_a_difference_at_the_end_of_an_answer_leaves_the_image_as_it_was() -> None:
    rig = online()
    before, answer = rig.agent.image, rig.active.answer

    def other_state(request: MetadataFetchRequest) -> MetadataFetchReply:
        reply = answer(request)
        wrong = StateAt(offset=rig.log.end, chain_hash=bytes(32), state_hash=bytes(32))
        return like(reply, state_hash=wrong) if reply.batches else reply

    rig.active.answer = other_state
    begun(rig, 1, 2)
    for _ in passes(rig):
        assert rig.agent.image is before
    assert rig.agent.catching_up.differences == 1
    assert rig.agent.image is before
    assert not rig.agent.may_serve()


def test_an_agent_that_fails_while_it_follows_stops_serving(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its heartbeats must not go on, while its image stands still."""
    rig = begun(online(), 1)

    def fails(_self: MetadataDelta) -> None:
        raise ValueError("a defect")

    monkeypatch.setattr(MetadataDelta, "apply_in_steps", fails)
    with pytest.raises(SimulationFailedError, match="a defect"):
        rig.run(5.0)
    sent = len(rig.controllers.fetches)
    rig.run(LEASE_S)
    assert not rig.agent.may_serve()
    assert len(rig.controllers.fetches) == sent


class Slow:
    """A publisher that takes three passes, and fails in the second if it is told to."""

    def __init__(self, name: str, calls: list[tuple[str, int]], *, fails: bool = False) -> None:
        self.name, self.calls, self.fails = name, calls, fails

    def on_metadata(self, before, after, manifest) -> Iterator[None]:
        for _ in range(3):
            self.calls.append((self.name, manifest.offset))
            yield
            if self.fails:
                raise RuntimeError("a mistake")


def test_publishers_take_their_passes_one_after_another_and_count_as_told_at_the_end() -> None:
    calls: list[tuple[str, int]] = []
    rig = Rig(
        heartbeat_ms=HEARTBEAT_MS,
        publishers=(Slow("a", calls), Slow("b", calls, fails=True), Slow("c", calls)),
    )
    rig.start()
    rig.run(2.0)
    begun(rig, 1)
    calls.clear()
    told = rig.agent.view.applied_offset
    state = rig.agent.view.state_hash_text()
    failures, end = rig.agent.view.publisher_failures, rig.log.end
    for _ in passes(rig):
        if rig.agent.catching_up.following:
            assert (rig.agent.view.applied_offset, rig.agent.view.state_hash_text()) == (
                told,
                state,
            )
    assert [name for name, offset in calls if offset == end] == ["a"] * 3 + ["b"] + ["c"] * 3
    assert rig.agent.view.applied_offset == end
    assert rig.agent.view.publisher_failures == failures + 1


class Counting:
    """A host that counts its duties."""

    def __init__(self) -> None:
        self.calls = 0

    def lead(self, partition: PartitionKey, topic: str, leader_epoch: int) -> None:
        self.calls += 1

    def follow(self, partition: PartitionKey, topic: str, leader: int, leader_epoch: int) -> None:
        self.calls += 1

    def drop(self, partition: PartitionKey) -> None:
        self.calls += 1


def test_between_two_steps_few_partitions_are_looked_at() -> None:
    host, before = Counting(), Log()
    log = Log()
    for number in range(1, 40):
        large(log, number)
    duties = PartitionDuties(BROKER, host)
    manifest = Manifest(offset=1, epoch=1, timestamp_ms=1, replaced=False)
    steps = most = 0
    told = host.calls
    for _ in duties.on_metadata(before.image, log.image, manifest):
        steps += 1
        most, told = max(most, host.calls - told), host.calls
    assert host.calls == 39 * PARTITIONS
    assert most == 1
    assert steps >= 39 * PARTITIONS * (1 + 1 / 64) - 1, "finding the changes takes steps, too"


def test_a_saved_image_is_loaded_in_slices_before_the_first_fetch() -> None:
    rig = online()
    large(rig.log, 1, 2)
    rig.active.wake()
    rig.run(6.0)
    rig.restart()
    asked = len(rig.controllers.asked)
    rig.start()
    assert rig.agent.catching_up.loading
    rig.run(2 * PASS_S)
    assert rig.agent.catching_up.loading
    assert len(rig.controllers.asked) == asked
    rig.run(3.0)
    assert rig.controllers.fetches[0].fetch.fetched_offset > 2 * PARTITIONS
    assert rig.agent.may_serve()


def test_an_agent_that_is_stopped_while_its_image_is_loaded_ends_at_once() -> None:
    rig = online()
    large(rig.log, 1, 2)
    rig.active.wake()
    rig.run(6.0)
    rig.restart()
    rig.start()
    assert rig.agent.catching_up.loading
    rig.do(rig.agent.stop)
    rig.run(2.0)
    assert rig.gone is not None
    assert not rig.controllers.asked


def test_replay_is_the_same_in_steps_of_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    large(log, 1, 2)
    images = []
    for step in (1, 7, 1_000):
        monkeypatch.setattr(replay_steps, "STEP", step)
        images.append(finished(replay_steps.replay_in_steps(Log().image, log.batches)))
    assert all(image.same_state(log.image) for image in images)
