"""Self-fencing: when exactly it happens, and that only contact ends it."""

import pytest

from broker_agent.agent import AgentCore
from broker_agent.lease import Lease
from broker_agent.states import BrokerState
from metadata.messages.fetch import SeenState
from tests.unit.broker_agent.rig import LEASE_S, Rig


@pytest.fixture
def rig() -> Rig:
    rig = Rig()
    rig.online()
    return rig


def cut_off(rig: Rig) -> float:
    """Let nothing be answered any more; returns when the last answered request was sent."""
    answered_at = rig.now - rig.agent.freshness_s()
    rig.active.silent = True
    rig.active.held.clear()
    return answered_at


def test_it_fences_itself_at_exactly_four_fifths_of_a_session_after_the_sending(rig):
    rig.run(3.3)
    sent_at = cut_off(rig)
    assert rig.now - sent_at > 0.5, "an answer that arrives later must not lengthen the lease"
    rig.run(sent_at + LEASE_S - 0.000_002 - rig.now)
    assert rig.agent.may_serve()
    assert rig.state is BrokerState.ONLINE
    rig.states.clear()
    rig.run(0.000_004)
    assert rig.states == [(BrokerState.FENCED, False)], "the host is told by the timer"
    assert not rig.agent.may_serve()
    assert rig.agent.self_fencings == 1
    assert "fenced itself" in rig.agent.reason


def test_an_idle_broker_with_a_slow_controller_stays_online(rig):
    rig.run(600)
    assert rig.agent.self_fencings == 0
    assert rig.agent.may_serve()


def test_one_lost_answer_does_not_fence(rig):
    for _ in range(5):
        rig.run(4.1)
        lost = rig.controllers.last
        lost.abandon()
        lost._on_reply = lambda answer: None
        rig.agent.fetches._in_flight = None
        rig.agent.fetches.send_now()
    rig.run(10)
    assert rig.agent.self_fencings == 0


def test_after_a_pause_it_may_not_serve_even_before_any_timer_ran(rig):
    rig.process.pause()
    rig.run(LEASE_S + 2.1)
    assert rig.agent._lease.expired()
    # Nothing of the process has run since: a client's request could be the first thing.
    assert rig.agent.state is BrokerState.ONLINE
    assert rig.agent.may_serve() is False
    assert rig.agent.state is BrokerState.FENCED


def test_a_late_answer_does_not_unfence(rig):
    rig.run(1.0)
    late = rig.controllers.last
    reply = rig.active.answer(late.fetch)
    assert reply.state is SeenState.ONLINE
    rig.process.pause()
    rig.active.silent = True
    rig.active.held.clear()
    late.reply(reply)  # it lies in the socket's buffer, before any timer
    rig.run(LEASE_S + 1)
    rig.states.clear()
    rig.process.resume()
    rig.run(0.2)
    assert [state for state, _ in rig.states] == [BrokerState.FENCED]
    assert not rig.agent.may_serve()


def test_fresh_contact_brings_it_back_when_the_controller_still_says_online(rig):
    cut_off(rig)
    rig.run(8.0)
    assert rig.state is BrokerState.FENCED
    rig.active.silent = False
    rig.run(2.0)
    assert rig.state is BrokerState.ONLINE
    assert rig.agent.may_serve()
    assert not rig.log.image.cluster.brokers[7].fenced, "it never asked to be fenced"


def test_what_a_late_answer_says_is_not_what_has_to_be_reached(rig):
    late = rig.controllers.last
    reply = rig.active.answer(late.fetch)
    rig.process.pause()
    rig.active.silent = True
    rig.active.held.clear()
    late.reply(reply)
    rig.run(LEASE_S + 1)
    rig.log.fill(20)
    goal = rig.log.end
    rig.active.silent = False
    rig.active.batches_at_once = 1
    offsets = []
    rig.on_state = lambda state, reason: offsets.append((state, rig.agent.image.offset))
    rig.process.resume()
    rig.run(2.0)
    assert offsets[-1] == (BrokerState.ONLINE, goal)


def test_an_answer_that_a_requester_kept_too_long_counts_for_nothing(rig):
    reply = rig.active.answer(rig.controllers.last.fetch)
    cut_off(rig)
    rig.run(8.0)
    assert rig.state is BrokerState.FENCED
    rig.do(lambda: rig.agent.on_reply(reply, rig.now - LEASE_S - 0.01))
    assert rig.state is BrokerState.FENCED
    rig.log.fill(20)
    goal = rig.log.end
    rig.active.batches_at_once = 1
    offsets = []
    rig.on_state = lambda state, reason: offsets.append((state, rig.agent.image.offset))
    rig.active.silent = False
    rig.run(3.0)
    assert offsets == [(BrokerState.ONLINE, goal)]


def test_a_fenced_broker_that_was_out_of_contact_catches_up_first(rig):
    rig.active.may_unfence = False
    rig.do(rig.active.fence)
    rig.run(5.0)
    assert rig.state is BrokerState.FENCED
    cut_off(rig)
    rig.run(20.0)
    rig.log.fill(20)
    goal = rig.log.end
    rig.active.batches_at_once = 1
    rig.active.says = SeenState.ONLINE
    offsets = []
    rig.on_state = lambda state, reason: offsets.append((state, rig.agent.image.offset))
    rig.active.silent = False
    rig.run(3.0)
    assert offsets == [(BrokerState.ONLINE, goal)]


def test_a_lease_is_not_shortened_by_an_older_renewal(rig):
    ended = []
    lease = Lease(rig.clock, 5.0, lambda: ended.append(rig.now))
    start = rig.now
    lease.renew(start)
    lease.renew(start - 3.0)
    rig.run(4.9)
    assert not lease.expired()
    rig.run(0.2)
    assert ended == [pytest.approx(start + 5.0)]


def test_it_serves_again_only_with_what_the_controller_had_when_they_met(rig):
    cut_off(rig)
    rig.run(8.0)
    rig.log.fill(20)
    goal = rig.log.end
    rig.active.batches_at_once = 1
    rig.states.clear()
    served_from = []
    rig.on_state = lambda state, reason: served_from.append((state, rig.agent.image.offset))
    rig.active.silent = False
    rig.run(3.0)
    assert served_from == [(BrokerState.ONLINE, goal)]


def test_the_shorter_session_counts(rig):
    rig.active.session_ms = 6_000
    rig.active.wake()
    rig.run(0.01)
    assert rig.agent.lease_length_s == pytest.approx(4.8)
    rig.active.session_ms = 60_000
    rig.active.wake()
    rig.run(0.01)
    assert rig.agent.lease_length_s == pytest.approx(7.2)
    rig.active.session_ms = 4_000
    rig.run(10.0)
    assert rig.agent.self_fencings == 0, "fetches are held for less time, too"
    sent_at = cut_off(rig)
    rig.run(sent_at + 3.2 - rig.now - 0.000_002)
    assert rig.agent.may_serve()
    rig.run(0.000_004)
    assert not rig.agent.may_serve()


def test_a_session_that_shrinks_can_end_the_lease_on_the_spot(rig):
    lease = rig.agent._lease
    cut_off(rig)
    rig.run(5.0)
    assert rig.agent.may_serve()
    rig.do(lambda: lease.set_length(3.0))
    rig.run(0.001)
    assert rig.state is BrokerState.FENCED


def test_a_stopping_broker_loses_its_right_with_its_lease_and_says_so():
    rig = Rig(stop_silence_ms=60_000)
    rig.online()
    rig.do(rig.agent.stop)
    rig.run(0.1)
    assert rig.state is BrokerState.STOPPING
    assert rig.agent.may_serve(), "it still leads"
    cut_off(rig)
    rig.states.clear()
    rig.run(LEASE_S)
    assert rig.states == [(BrokerState.STOPPING, False)]
    rig.active.silent = False
    rig.run(3.0)
    assert rig.state is BrokerState.STOPPING
    assert not rig.agent.may_serve(), "what it lost while stopping does not come back"


def test_nothing_happens_after_the_end(rig):
    rig.do(rig.agent.abandon)
    rig.states.clear()
    asked = len(rig.controllers.asked)
    rig.run(60)
    assert not rig.agent.may_serve()
    assert rig.states == []
    assert len(rig.controllers.asked) == asked
    assert isinstance(rig.agent, AgentCore)
