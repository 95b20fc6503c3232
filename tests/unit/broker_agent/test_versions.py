"""An agent uses the highest version that a controller reads, and 0.1's where it must."""

import pytest

from broker_agent.states import BrokerState
from metadata.messages.versions import RANGE_HEADER, VERSION_HEADER
from runtime.http.requests import Unreachable
from tests.unit.broker_agent.fake_cluster import Asked
from tests.unit.broker_agent.rig import ONE, TWO, Rig

NEW = {RANGE_HEADER: "1-2"}


def said(asked: Asked) -> tuple[str | None, object]:
    return asked.request.headers.get(VERSION_HEADER), asked.fields.get("software")


def test_the_first_request_says_no_version_and_the_next_the_highest_that_both_know():
    rig = Rig(software="9.9")
    rig.online()
    rig.controllers.said_of_versions = NEW
    rig.run(10)
    assert said(rig.controllers.fetches[0]) == (None, None)
    assert said(rig.controllers.last) == ("2", "9.9")


def test_with_release_0_1_nothing_is_ever_said_that_it_does_not_know():
    rig = Rig(software="9.9")
    rig.online()
    rig.run(10)
    assert {said(asked) for asked in rig.controllers.fetches} == {(None, None)}


def test_an_older_build_in_the_same_place_is_asked_again_at_once_and_no_session_is_lost():
    rig = Rig(software="9.9")
    rig.controllers.said_of_versions = NEW
    rig.online()
    rig.run(10)
    epoch = rig.agent.broker_epoch
    rig.controllers.said_of_versions = {}
    count = len(rig.controllers.fetches)
    rig.agent._loop.send_now()
    rig.run(0.1)
    before, after = rig.controllers.fetches[count : count + 2]
    assert (said(before), said(after)) == (("2", "9.9"), (None, None))
    assert after.at - before.at < 0.01
    rig.run(10)
    assert said(rig.controllers.last) == (None, None)
    assert rig.agent.state is BrokerState.ONLINE
    assert rig.agent.broker_epoch == epoch


def test_a_controller_that_was_away_is_asked_unversioned_first():
    rig = Rig(urls=(ONE, TWO), software="9.9")
    rig.controllers.said_of_versions = NEW
    rig.online()
    rig.run(10)
    assert said(rig.controllers.last) == ("2", "9.9")
    count = len(rig.controllers.fetches)
    rig.active.held.clear()
    rig.controllers.last.give(Unreachable("it restarts", refused=True))
    rig.run(5)
    again = [asked for asked in rig.controllers.fetches[count:] if asked.url == ONE]
    assert said(again[0]) == (None, None)
    assert said(again[-1]) == ("2", "9.9")


@pytest.mark.parametrize(("versions", "told"), [(NEW, 5), ({}, None)])
def test_the_previous_broker_epoch_is_told_in_the_registration_to_who_can_read_it(
    versions: dict[str, str], told: int | None
) -> None:
    rig = Rig(previous_broker_epoch=5)
    rig.controllers.said_of_versions = versions
    rig.online()
    first, registering = rig.controllers.asked[:2]
    assert first.request.path == "/health/live"
    registration = registering.fields["registration"]
    assert isinstance(registration, dict)
    assert registration.get("previousBrokerEpoch") == told
    assert [asked.request.path for asked in rig.controllers.asked].count("/health/live") == 1


def test_a_controller_that_is_away_is_not_asked_for_its_versions_for_ever() -> None:
    rig = Rig(urls=(ONE, TWO), previous_broker_epoch=5)
    rig.controllers.said_of_versions = NEW
    rig.active.silent = True
    rig.start()
    rig.run(3.0)
    assert {asked.url for asked in rig.controllers.asked} == {ONE, TWO}
    rig.active.silent = False
    rig.run(3.0)
    assert rig.agent.state is BrokerState.ONLINE
