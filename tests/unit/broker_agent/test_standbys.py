"""Which heartbeats go to a standby, and when the agent asks the leader instead."""

import pytest

from broker_agent.config import FetchFrom
from broker_agent.standby_choice import PAUSE_S
from metadata.errors import ErrorCode
from metadata.messages.fetch import SeenState
from runtime.http.requests import Unreachable
from tests.unit.broker_agent.fake_cluster import BROKER
from tests.unit.broker_agent.rig import LEASE_S, ONE, THREE, TWO, Rig

URLS = tuple(sorted((ONE, TWO, THREE)))
OWN = URLS[BROKER % 3]
"""The controller that the id of the rig's broker falls to."""
LEADER = next(url for url in URLS if url != OWN)


def online(**settings) -> Rig:
    rig = Rig(urls=URLS, **{"fetch_from": FetchFrom.ANY, **settings})
    rig.active.url, rig.active.also = LEADER, OWN
    rig.online()
    rig.run(5.0)
    return rig


@pytest.fixture
def rig() -> Rig:
    return online()


def asked_since(rig, at):
    return {asked.url for asked in rig.controllers.fetches if asked.at > at}


def test_in_service_all_heartbeats_go_to_the_standby(rig):
    at = rig.now
    rig.run(10.0)
    assert asked_since(rig, at) == {OWN}
    assert rig.controllers.last.fetch.max_wait_ms == 2000
    assert rig.agent.may_serve()


def test_by_default_all_go_to_the_leader():
    rig = online(fetch_from=FetchFrom.LEADER)
    at = rig.now
    rig.run(5.0)
    assert asked_since(rig, at) == {LEADER}


def test_registration_and_the_way_into_service_go_to_the_leader(rig):
    before = [a for a in rig.controllers.fetches if a.fetch.broker_epoch < 0]
    assert before
    first = next(a for a in rig.controllers.fetches if a.url == OWN and a.fetch.broker_epoch >= 0)
    earlier = rig.controllers.fetches[: rig.controllers.fetches.index(first)]
    assert any(a.url == LEADER and a.fetch.wanted_state == "online" for a in earlier)


@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_CONTROLLER,
        ErrorCode.STALE_BROKER_EPOCH,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.NO_QUORUM,
        None,
    ],
)
def test_after_any_error_the_leader_is_asked_at_once(rig, code):
    """An order to leave counts only from the leader."""
    at, last = rig.now, rig.controllers.last
    assert last.url == OWN
    rig.active.also = None
    if code is None:
        last.give(Unreachable("gone", refused=True))
    else:
        last.refuse(code, leader_epoch=9, leader_url=LEADER)
    rig.run(0.0006)
    rig.active.also = OWN
    assert (rig.controllers.last.url, rig.controllers.last.fetch.max_wait_ms) == (LEADER, 0)
    rig.run(PAUSE_S - 0.1)
    assert asked_since(rig, at) == {LEADER}
    rig.run(PAUSE_S)
    assert rig.controllers.last.url == OWN
    assert rig.agent.self_fencings == 0


def test_a_standby_that_does_not_answer_costs_no_lease(rig):
    rig.active.also = None
    rig.active.held.clear()
    last = rig.controllers.last
    rig.run(last.at + 2.26 - rig.now)
    assert rig.controllers.last.url == LEADER
    rig.run(LEASE_S)
    assert rig.agent.self_fencings == 0


def test_who_wants_something_else_asks_the_leader(rig):
    rig.agent.set_host_ready(ready=False)
    rig.run(0.0001)
    assert (rig.controllers.last.url, rig.controllers.last.fetch.wanted_state) == (LEADER, "fenced")


def test_who_is_told_by_a_standby_that_it_is_fenced_stops_and_asks_the_leader(rig):
    last = rig.controllers.last
    assert last.url == OWN
    rig.active.says = SeenState.FENCED
    rig.active.wake()
    rig.run(0.01)
    assert not rig.agent.may_serve()
    assert rig.controllers.last.url == LEADER


def test_the_agents_other_requests_follow_the_leader_that_a_standby_names(rig):
    rig.active.url = next(url for url in URLS if url not in (OWN, LEADER))
    rig.active.epoch = 2
    rig.active.wake()
    rig.run(3.0)
    assert rig.agent.controller_url == rig.active.url


def test_a_leader_that_died_is_not_asked_as_a_standby_either(rig):
    """The broker's id falls to it, and a controller that doesn't answer costs a quarter second."""
    rig.active.url, rig.active.also, rig.active.epoch = OWN, None, 2
    rig.active.wake()
    rig.run(3.0)
    assert (rig.agent.controller_url, rig.controllers.last.url) == (OWN, OWN)
    at, last = rig.now, rig.controllers.last
    rig.active.held.clear()
    rig.active.url, rig.active.epoch = LEADER, 3
    last.give(Unreachable("gone", refused=True))
    rig.run(PAUSE_S - 0.1)
    assert LEADER in asked_since(rig, at)
    assert OWN not in asked_since(rig, at)
