"""Thousands of brokers register at one moment: some are let in, and all get their turn."""

from collections import Counter
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from controller.http import metadata_fetch, registration_queue
from controller.http.registration_queue import TURN_MAX_S, UNDER_WAY_MAX, RegistrationQueue
from metadata.errors import ErrorCode
from metadata.messages import SeenState, WantedState
from metadata.messages.wire import MSGPACK
from runtime.http.requests import ANONYMOUS, Reply, Request
from tests.unit.controller import in_memory_quorum
from tests.unit.controller.cluster import DECLARED, Broker, Cluster

MANY = 600


class Clock:
    """A manual clock."""

    now = 100.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def cluster() -> Any:
    return Cluster(nodes=1)


def newcomer(cluster: Any, broker_id: int) -> Any:
    return Broker(cluster, broker_id, rack="r1", features=DECLARED)


def stormed(cluster: Any, count: int, first: int = 1_000) -> list[tuple[Any, list[Any]]]:
    """So many brokers register while a decision keeps the turn."""
    cluster.hold_the_turn(10_000)
    return [(b, b.send()) for b in (newcomer(cluster, first + n) for n in range(count))]


def errors(answered: list[tuple[Any, list[Any]]]) -> Counter[str]:
    return Counter(r[0].error.code for _, r in answered if r and r[0].error is not None)


def test_a_bounded_number_is_let_in_and_the_others_get_turns(cluster: Any) -> None:
    answered = stormed(cluster, MANY)
    refused = [replies[0].error for _, replies in answered if replies]
    assert {error.code for error in refused} == {ErrorCode.THROTTLED.value}
    assert len(refused) == MANY - UNDER_WAY_MAX
    turns = [error.retry_after_ms for error in refused]
    assert turns == sorted(turns)
    assert turns[-1] > 2 * turns[0]
    cluster.run_until(lambda: all(replies for _, replies in answered))
    assert errors(answered) == {"THROTTLED": MANY - UNDER_WAY_MAX}
    for broker, replies in answered[:3]:
        assert replies[0].broker_epoch == cluster.broker(broker.broker_id).broker_epoch


def test_the_refusal_says_in_its_header_when_to_come_back(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registration_queue, "UNDER_WAY_MAX", 0)
    monkeypatch.setattr(registration_queue, "_TURN_MIN_S", 2.5)
    body = msgspec.msgpack.encode(newcomer(cluster, 7).request())
    request = Request("POST", "/v1/metadata/fetch", body, {}, {"content-type": MSGPACK}, ANONYMOUS)
    replies = list[Reply]()
    cluster.processes[1].run(lambda: cluster.leader.handle(request, replies.append))
    assert [(r.status, r.headers["retry-after"]) for r in replies] == [(429, "3")]


def test_all_register_when_they_come_back_at_their_turns(cluster: Any) -> None:
    waiting = stormed(cluster, MANY)
    began, asked = cluster.world.now, MANY
    due: list[tuple[float, Any]] = []
    while waiting or due:
        cluster.run(0.02)
        for broker, replies in [each for each in waiting if each[1]]:
            waiting = [each for each in waiting if each[0] is not broker]
            if replies[0].error is not None:
                due.append((cluster.world.now + replies[0].error.retry_after_ms / 1000, broker))
        for at, broker in [each for each in due if each[0] <= cluster.world.now]:
            due.remove((at, broker))
            waiting.append((broker, broker.send()))
            asked += 1
        assert cluster.world.now - began < TURN_MAX_S
    assert len(cluster.image.cluster.brokers) == MANY
    assert asked < 3 * MANY


def test_a_process_that_asks_again_gets_the_answer_of_the_one_registration(cluster: Any) -> None:
    cluster.hold_the_turn()
    broker = newcomer(cluster, 7)
    first, second = broker.send(), broker.send()
    cluster.run_until(lambda: bool(second))
    assert first[0].error.code == ErrorCode.THROTTLED.value
    assert second[0].error is None
    operations = Counter(batch.header.provenance.operation for batch in cluster.batches())
    assert operations["RegisterBroker"] == 1


def test_another_process_of_the_broker_is_no_repetition(cluster: Any) -> None:
    cluster.hold_the_turn()
    one, other = newcomer(cluster, 7), newcomer(cluster, 7)
    other.incarnation = bytes(15) + b"o"
    first, second = one.send(), other.send()
    cluster.run_until(lambda: bool(first and second))
    assert first[0].error is None
    assert second[0].error.code == ErrorCode.DUPLICATE_BROKER_REGISTRATION.value


def test_places_are_free_again_after_a_lost_leadership() -> None:
    cluster: Any = Cluster(nodes=3)
    answered = stormed(cluster, MANY)
    cluster.lead(2)
    cluster.run_until(lambda: all(replies for _, replies in answered))
    assert len(cluster.controllers[1]._http.fetch._registering) == 0


def test_brokers_that_all_come_back_at_once_come_online_a_bounded_number_at_a_time(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metadata_fetch, "_DECIDING_MAX", 4)
    brokers = [newcomer(cluster, 100 + number).register() for number in range(20)]
    cluster.hold_the_turn()
    for broker in brokers:
        broker.send(WantedState.ONLINE)
    cluster.run(0.01)
    assert cluster.leader._leader.proposer.waiting <= 4
    for _ in range(20):
        cluster.run(0.1)
        for broker in brokers:
            broker.fetch(WantedState.ONLINE)
    assert {broker.fetch().state for broker in brokers} == {SeenState.ONLINE}


def test_turns_follow_the_pace_of_registrations() -> None:
    clock: Any = Clock()
    queue: RegistrationQueue[str] = RegistrationQueue(clock)
    for number in range(UNDER_WAY_MAX):
        queue.begin(number, "")
    for number in range(64):
        clock.now += 0.01
        queue.end(number)
        queue.begin(("again", number), "")
    turns = [refusal.retry_after_ms for _ in range(100) if (refusal := queue.refusal())]
    apart = {after - before for before, after in pairwise(turns[10:])}
    assert apart <= {7, 8}  # ms: three quarters of the pace
    for _ in range(5_000):
        refusal = queue.refusal()
    assert refusal is not None
    assert refusal.retry_after_ms == TURN_MAX_S * 1000
    queue.end(("again", 0))
    assert queue.refusal() is None


def test_a_broker_that_comes_online_is_not_told_of_every_other_one_first() -> None:
    """Each gets one reply, which says that it is online, though the others are written first."""
    cluster: Any = Cluster(nodes=3)
    brokers = [newcomer(cluster, 100 + number).register() for number in range(20)]
    for broker in brokers:
        broker.fetch(WantedState.FENCED)
    answers = list[list[Any]]()
    for broker in brokers:
        answers.append(broker.send(WantedState.ONLINE, max_wait_ms=2_000))
        cluster.run(0.0004)
    cluster.run_until(lambda: all(answers))
    assert {replies[0].state for replies in answers} == {SeenState.ONLINE}


def test_a_broker_whose_change_takes_long_hears_of_the_others_meanwhile(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = newcomer(cluster, 7).register()
    broker.fetch(WantedState.FENCED)
    newcomer(cluster, 8).register()
    monkeypatch.setattr(in_memory_quorum, "COMMIT_S", 1.0)
    began, answer = cluster.world.now, broker.send(WantedState.ONLINE, max_wait_ms=2_000)
    cluster.run_until(lambda: bool(answer))
    assert cluster.world.now - began < 0.15
    assert answer[0].batches
    assert answer[0].state is SeenState.FENCED


def test_a_broker_that_waits_for_its_own_change_waits_no_longer_than_it_asked(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = newcomer(cluster, 7).register()
    broker.fetch(WantedState.FENCED)
    monkeypatch.setattr(in_memory_quorum, "COMMIT_S", 1.0)
    began, answer = cluster.world.now, broker.send(WantedState.ONLINE, max_wait_ms=40)
    while not answer:
        cluster.run(0.001)
        cluster.processes[1].run(cluster.leader._http.fetch.on_progress)  # Others' commits.
    assert cluster.world.now - began < 0.045
