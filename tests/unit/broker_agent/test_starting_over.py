"""A broker whose state differs stops serving, says why, and fetches everything again."""

import pytest

from broker_agent.states import BrokerState
from metadata.codec import decode_records
from metadata.messages.fetch import Divergence, MetadataFetchReply, SeenState, StateAt, WantedState
from metadata.records import NoOpRecord
from tests.unit.broker_agent.fake_cluster import Active, Log, like, sealed, topic
from tests.unit.broker_agent.rig import Rig

FENCED, ONLINE = BrokerState.FENCED, BrokerState.ONLINE
PAUSE_S = 600


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.log.append(topic(1))
    rig.log.fill(4)
    rig.online()
    rig.run(1.0)
    rig.states.clear()
    rig.seen.steps.clear()
    return rig


def lie_once(rig: Rig, **changes) -> None:
    """Let the next answer be wrong."""
    asked = rig.controllers.last
    rig.active.held.clear()
    asked.reply(like(rig.active.answer(asked.fetch), **changes))


def wrong_state(rig: Rig) -> StateAt:
    right = rig.log.state_at(rig.log.end)
    return StateAt(offset=right.offset, chain_hash=right.chain_hash, state_hash=bytes(32))


def test_it_stops_serving_at_once_and_comes_back_with_everything_anew(rig):
    rig.active.batches_at_once = 2
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(0.01)
    assert rig.states == [(FENCED, False)]
    assert "our state is not the controller's" in rig.agent.reason
    assert rig.agent.catching_up.differs
    assert rig.disk.list("checkpoints") == []
    assert rig.seen.steps == [], "nobody is shown less than before"
    rig.run(3.0)
    asked = [a.fetch.fetched_offset for a in rig.controllers.fetches]
    assert 0 in asked[2:], "from the beginning"
    assert any(a.fetch.wanted_state is WantedState.FENCED for a in rig.controllers.fetches[3:])
    assert rig.state is ONLINE
    assert rig.agent.catching_up.differs == ""
    assert rig.seen.steps[0][3], "it replaces"
    assert rig.agent.image.same_state(rig.log.image)
    assert rig.agent.catching_up.differences == 1


def test_it_comes_back_only_by_an_answer_to_its_asking_for_it(rig):
    """The controller may still think it online, and be about to fence it as it asked."""
    rig.active.says = SeenState.ONLINE
    answered_wish = []
    rig.controllers.on_settled = lambda asked, _: answered_wish.append(asked.fetch.wanted_state)
    at_online = []

    def on_state(state, reason) -> None:
        if state is ONLINE:
            at_online.append(answered_wish[-1])

    rig.on_state = on_state
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(3.0)
    assert WantedState.FENCED in answered_wish
    assert at_online == [WantedState.ONLINE]


def test_one_that_is_fenced_and_differs_never_shows_less_than_before(rig):
    rig.active.may_unfence = False
    rig.do(rig.active.fence)
    rig.run(1.0)
    for _ in range(10):
        rig.do(lambda: rig.active.commit(NoOpRecord()))
        rig.run(0.05)
    shown = rig.agent.image.offset
    rig.seen.steps.clear()
    rig.active.batches_at_once = 1
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(3.0)
    assert rig.seen.steps[0][1] >= shown
    assert rig.agent.catching_up.differs == ""


def test_a_history_that_parts_is_a_difference(rig):
    lie_once(rig, diverging=Divergence(epoch=1, end_offset=3), batches=())
    rig.run(0.01)
    assert rig.states == [(FENCED, False)]
    assert "differs from ours at offset 3" in rig.agent.reason
    rig.run(3.0)
    assert rig.state is ONLINE


def test_a_fork_of_the_chain_is_a_difference(rig):
    mark = type(rig.log.mark)(rig.log.end, bytes(32), 1, 0)
    lie_once(rig, batches=(sealed(mark, 1, NoOpRecord()).encoded,), state_hash=None)
    rig.run(0.01)
    assert rig.states == [(FENCED, False)]
    rig.run(3.0)
    assert rig.state is ONLINE


def test_a_difference_that_comes_back_waits_fenced_and_in_contact(rig):
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(3.0)
    assert rig.state is ONLINE
    first_at = rig.now
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(1.0)
    assert rig.state is FENCED
    count = len(rig.controllers.fetches)
    rig.run(100)
    assert rig.state is FENCED
    assert 40 <= len(rig.controllers.fetches) - count <= 60, "heartbeats, no more"
    assert rig.controllers.last.fetch.max_bytes == 0
    assert rig.agent.freshness_s() < 3.0
    assert rig.agent.self_fencings == 0
    rig.run(first_at + PAUSE_S - 5 - rig.now)
    assert rig.state is FENCED
    rig.run(15)
    assert rig.state is ONLINE
    assert rig.agent.catching_up.differences == 2


def test_one_that_differs_for_ever_fetches_everything_once_a_pause(rig):
    from_zero = 0

    def lying(asked) -> None:
        nonlocal from_zero
        from_zero += asked.fetch.fetched_offset == 0 and asked.fetch.max_bytes > 0
        reply = rig.active.answer(asked.fetch)
        asked.reply(like(reply, state_hash=wrong_state(rig)))

    rig.controllers.on_ask = lying
    rig.active.wake()
    rig.run(3 * PAUSE_S - 10)
    assert 3 <= from_zero <= 4
    assert rig.state is FENCED
    assert not rig.agent.may_serve()


def test_a_restart_of_one_that_differs_takes_nothing_from_its_disk(rig):
    rig.restart()
    rig.online()
    assert rig.disk.list("checkpoints")
    for _ in range(2):
        lie_once(rig, state_hash=wrong_state(rig))
        rig.run(3.0)
    assert rig.agent.catching_up.stuck
    rig.active.may_stop = True
    rig.do(rig.agent.stop)
    rig.run(3.0)
    assert rig.gone[1] is True
    assert rig.disk.list("checkpoints") == [], "a wrong image is not kept"


def test_a_stopping_broker_that_differs_serves_no_more(rig):
    rig.do(rig.agent.stop)
    rig.run(0.1)
    assert rig.agent.may_serve()
    rig.states.clear()
    lie_once(rig, state_hash=wrong_state(rig))
    rig.run(0.01)
    assert rig.states == [(BrokerState.STOPPING, False)]


def test_batches_that_cannot_be_used_are_asked_for_again_and_nothing_is_forgotten(rig):
    rig.log.fill(3)
    lie_once(rig, batches=rig.log.from_offset(0)[-1:], state_hash=None)
    rig.run(1.0)
    assert rig.states == []
    assert rig.agent.image.offset == rig.log.end
    assert rig.agent.catching_up.differences == 0
    assert all(a.fetch.fetched_offset > 0 for a in rig.controllers.fetches[3:])


def test_what_is_said_of_us_counts_even_when_the_batches_do_not(rig):
    rig.log.fill(3)
    rig.active.silent = True
    broker = rig.log.image.cluster.brokers[7]
    reply = MetadataFetchReply(
        broker_epoch=broker.broker_epoch,
        leader_epoch=1,
        high_watermark=rig.log.end,
        batches=rig.log.from_offset(0)[-1:],
    )
    rig.controllers.last.reply(reply)
    rig.run(0.01)
    assert rig.states == [(FENCED, False)]


def test_a_cluster_that_was_set_back_is_followed(rig):
    """The controllers were restored to less than we have: theirs replaces ours."""
    rig.log.fill(10)
    rig.active.wake()
    rig.run(1.0)
    had = rig.agent.image.offset
    restored = _replayed(rig.log, 7)
    rig.active.held.clear()
    active = Active(restored, rig.controllers)
    active.epoch = 2

    def on_ask(asked) -> None:
        if asked.fetch.fetched_offset > restored.end:
            reply = active.answer(asked.fetch)
            diverging = Divergence(epoch=1, end_offset=restored.end)
            asked.reply(like(reply, diverging=diverging, batches=()))
        else:
            active.on_ask(asked)

    rig.controllers.on_ask = on_ask
    rig.agent.fetches.send_now()
    rig.run(4.0)
    assert rig.agent.image.offset == restored.end < had
    assert rig.seen.steps[-1][3] or rig.seen.steps[-2][3]
    assert rig.agent.may_serve()


def _replayed(log: Log, batches: int) -> Log:
    restored = Log()
    for batch in log.batches[:batches]:
        restored.append(*decode_records(batch.records))
    return restored
