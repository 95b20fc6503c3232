"""Which controller the agent asks, when, and for how long; and which answers count."""

from itertools import pairwise

import pytest

from broker_agent.controller_choice import ControllerChoice
from broker_agent.states import BrokerState
from metadata.errors import ErrorCode
from metadata.messages.errors import ErrorReply
from metadata.messages.fetch import MetadataFetchReply
from metadata.messages.wire import MSGPACK, encode
from runtime.http.origins import may_follow
from runtime.http.requests import Reply, Unreachable
from tests.unit.broker_agent.fake_cluster import dice
from tests.unit.broker_agent.rig import ONE, THREE, TWO, Rig


@pytest.fixture
def rig() -> Rig:
    rig = Rig(urls=(ONE, TWO, THREE))
    rig.online()
    rig.run(5.0)
    return rig


def waits(rig: Rig) -> list[tuple[str, int]]:
    return [(asked.url, asked.fetch.max_wait_ms) for asked in rig.controllers.fetches]


def test_the_first_to_a_controller_is_answered_at_once_and_the_next_are_held():
    rig = Rig()
    rig.online()
    rig.run(7.0)
    assert waits(rig)[0] == (ONE, 0)
    assert set(waits(rig)[2:]) == {(ONE, 2000)}
    gaps = [after.at - before.at for before, after in pairwise(rig.controllers.fetches[3:])]
    assert gaps
    assert all(gap == pytest.approx(2.0, abs=0.01) for gap in gaps)


def test_one_fetch_is_in_flight(rig):
    rig.run(10)
    assert len([asked for asked in rig.controllers.waiting if asked.is_fetch]) == 1


def test_unanswered_a_quarter_second_after_its_wait_it_goes_to_the_others(rig):
    rig.active.silent = True
    rig.active.held.clear()
    last = rig.controllers.last
    assert last.deadline_s == pytest.approx(2.25)
    rig.run(last.at + 2.2499 - rig.now)
    assert rig.controllers.last is last
    rig.run(0.0002)
    after = rig.controllers.last
    assert after is not last
    assert (after.url, after.fetch.max_wait_ms) == (TWO, 0)
    assert after.deadline_s == pytest.approx(0.25)
    rig.run(3.0)
    asked = {asked.url for asked in rig.controllers.fetches if asked.at > last.at}
    assert asked == {ONE, TWO, THREE}


def test_patience_with_a_controller_that_does_not_answer_doubles_twice(rig):
    """Standbys answer and name the leader, so the agent comes back to it again and again."""
    rig.active.silent = True
    rig.active.held.clear()
    last = rig.controllers.last

    def named(asked):
        if asked.url != ONE:
            asked.refuse(ErrorCode.NOT_CONTROLLER, leader_id=1, leader_epoch=1, leader_url=ONE)

    answers, rig.controllers.on_ask = rig.controllers.on_ask, named
    rig.run(9.0)
    after = [a for a in rig.controllers.fetches if a.at > last.at]
    assert [a.deadline_s for a in after if a.url == ONE][:4] == [0.5, 1.0, 1.0, 1.0]
    assert {a.deadline_s for a in after if a.url != ONE} == {0.25}
    rig.controllers.on_ask = answers
    rig.active.silent = False
    rig.run(5.0)
    assert rig.controllers.last.deadline_s == pytest.approx(2.25)


def test_the_first_after_an_error_is_answered_at_once(rig):
    rig.active.silent = True
    rig.controllers.last.refuse(ErrorCode.NO_QUORUM, leader_epoch=1)
    rig.run(0.01)
    assert rig.controllers.last.fetch.max_wait_ms == 0


def test_a_cluster_without_a_leader_is_not_hammered(rig):
    rig.controllers.on_ask = lambda asked: asked.refuse(ErrorCode.NO_QUORUM, leader_epoch=1)
    rig.active.held.clear()
    count = len(rig.controllers.fetches)
    rig.run(30)
    assert 20 < len(rig.controllers.fetches) - count < 80


def test_the_hint_of_a_standby_is_followed_at_once(rig):
    rig.active.url = THREE
    rig.active.epoch = 2
    rig.active.silent = True
    held = rig.controllers.last
    held.refuse(ErrorCode.NOT_CONTROLLER, leader_id=3, leader_epoch=2, leader_url=THREE)
    rig.active.silent = False
    rig.run(0.0006)
    assert (rig.controllers.last.url, rig.controllers.last.fetch.max_wait_ms) == (THREE, 0)


def test_a_controller_that_was_not_configured_is_learned(rig):
    rig.active.url = "http://four"
    rig.active.epoch = 2
    rig.active.silent = True
    rig.controllers.last.refuse(
        ErrorCode.NOT_CONTROLLER, leader_id=4, leader_epoch=2, leader_url="http://four"
    )
    rig.active.silent = False
    rig.run(1.0)
    assert rig.agent.controller_url == "http://four"
    assert rig.agent.may_serve()


def test_an_older_hint_is_ignored(rig):
    rig.active.silent = True
    rig.controllers.last.refuse(
        ErrorCode.NOT_CONTROLLER, leader_id=3, leader_epoch=0, leader_url="http://deposed"
    )
    rig.run(5.0)
    assert "http://deposed" not in {asked.url for asked in rig.controllers.fetches}


@pytest.mark.parametrize(
    ("asked", "named", "followed"),
    [
        ("https://one:1", "https://two:1", True),
        ("http://one:1", "http://two:1", True),
        ("https://one:1", "http://two:1", False),
        ("http://one:1", "https://two:1", False),
        ("https://one:1", "https://user@two:1", False),
        ("https://one:1", "https://two:1/path", False),
        ("https://one:1", "https://two:99999", False),
        ("https://one:1", "https://two:1\x1b[2J", False),
        ("https://one:1", "nonsense", False),
    ],
)
def test_a_hint_is_followed_over_the_same_scheme_only(asked, named, followed):
    target = ControllerChoice((asked,), dice(), 1.0)
    target.hinted(named, 7)
    assert target.url == (named if followed else asked)
    assert may_follow(asked, named) is followed


def test_two_that_point_at_each_other_are_not_hammered(rig):
    other = {ONE: TWO, TWO: ONE, THREE: ONE}
    rig.controllers.on_ask = lambda asked: asked.refuse(
        ErrorCode.NOT_CONTROLLER, leader_id=1, leader_epoch=1, leader_url=other[asked.url]
    )
    rig.active.wake()
    rig.run(2.0)
    count = len(rig.controllers.fetches)
    rig.run(30)
    assert len(rig.controllers.fetches) - count < 100


def test_a_leader_that_has_yet_to_begin_is_asked_again_soon(rig):
    rig.active.epoch = 2
    begun = False

    def on_ask(asked) -> None:
        if begun:
            rig.active.on_ask(asked)
        else:
            asked.refuse(ErrorCode.NOT_CONTROLLER, leader_id=2, leader_epoch=2, leader_url=TWO)

    rig.controllers.on_ask = on_ask
    rig.active.url = TWO
    rig.active.silent = True
    rig.controllers.last.refuse(ErrorCode.NO_QUORUM)
    rig.active.silent = False
    rig.run(0.1)
    begun = True
    began_at = rig.now
    rig.run(0.3)
    answered = rig.now - rig.agent.freshness_s()
    assert answered - began_at < 0.25
    assert rig.controllers.last.url == TWO


def test_a_throttled_agent_comes_back_when_it_was_told_to_and_not_all_at_once():
    times = set()
    for seed in range(6):
        rig = Rig(seed=seed)
        rig.online()
        rig.active.silent = True
        error = ErrorReply(code="THROTTLED", message="slowly", leader_epoch=1, retry_after_ms=1500)
        rig.controllers.last.reply(MetadataFetchReply(error=error, leader_epoch=1))
        refused_at = rig.now
        rig.run(2.4)
        after = next(asked for asked in rig.controllers.fetches if asked.at > refused_at)
        assert after.url == ONE
        assert 1.5 <= after.at - refused_at <= 2.26
        times.add(round(after.at, 3))
    assert len(times) > 3


def test_an_answer_after_it_was_given_up_is_not_looked_at(rig):
    """Whatever a requester does: what is not in flight any more doesn't count."""
    stale = rig.controllers.last
    reply = rig.active.answer(stale.fetch)
    rig.do(rig.agent.fetches.send_now)
    assert stale.abandoned
    age = rig.agent.freshness_s()
    late = Reply(200, encode(MetadataFetchReply(error=None, **_fields(reply)), MSGPACK))
    rig.do(lambda: stale.force(late))
    rig.do(lambda: stale.force(Unreachable("late")))
    assert rig.agent.freshness_s() == age
    rig.do(rig.agent.abandon)
    rig.do(lambda: stale.force(late))
    assert rig.agent.state is BrokerState.GONE


def _fields(reply) -> dict:
    return {name: getattr(reply, name) for name in ("broker_epoch", "state", "leader_epoch")}


@pytest.mark.parametrize(
    "answer",
    [
        Reply(200, b"", {"content-type": MSGPACK}),
        Reply(200, b"\xc1garbage", {"content-type": MSGPACK}),
        Reply(200, b"{}", {"content-type": "text/html"}),
        Reply(502, b"<html>", {"content-type": "text/html"}),
        Reply(500, b"", {}),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_failure_and_no_contact(rig, answer):
    rig.active.silent = True
    age = rig.agent.freshness_s()
    rig.controllers.last.give(answer)
    rig.run(0.1)
    assert rig.agent.freshness_s() == pytest.approx(age + 0.1)
    rig.active.silent = False
    rig.run(3.0)
    assert rig.agent.may_serve()


def test_an_error_renews_no_lease(rig):
    age = rig.agent.freshness_s()
    rig.active.silent = True
    rig.controllers.last.refuse(ErrorCode.UNKNOWN_SERVER_ERROR, leader_epoch=1)
    rig.run(0.1)
    assert rig.agent.freshness_s() == pytest.approx(age + 0.1)


def test_a_controller_that_holds_nothing_is_not_hammered(rig):
    """One that has too many held requests answers at once with nothing."""
    rig.controllers.on_ask = lambda asked: asked.reply(rig.active.answer(asked.fetch))
    rig.active.wake()
    count = len(rig.controllers.fetches)
    rig.run(10)
    assert len(rig.controllers.fetches) - count <= 101
    assert rig.agent.may_serve()


def test_retries_spread_and_stay_below_half_a_heartbeat():
    target = ControllerChoice((ONE, TWO), dice(), 2.0)
    first, *rest = [target.failed() for _ in range(200)]
    assert first == 0.0
    assert all(0.02 <= delay <= 1.0 for delay in rest)
    assert max(rest) > 0.9
    assert len(set(rest)) > 190
    target.answered(1)
    assert target.failed() == 0.0


def test_not_every_agent_begins_with_the_same_controller():
    assert {ControllerChoice((ONE, TWO, THREE), dice(n), 1.0).url for n in range(20)} == {
        ONE,
        TWO,
        THREE,
    }


def test_nobody_can_fill_our_list():
    target = ControllerChoice((ONE,), dice(), 1.0)
    for epoch in range(1000):
        target.hinted(f"http://{epoch}", epoch)
    assert len(target._urls) == 64
