"""OCSF events, judged by the published schema."""

import copy
import json

import pytest

from audit.export.events import ExportedEvent
from audit.export.ocsf import activity_of, ocsf_event
from controller.access.route_access import ROUTE_ACCESS
from tests.oracles.ocsf.judge import problems
from tests.unit.audit.export.sample_events import ATTEMPT, CHANGE, EVENTS, HOSTILE, LOGIN, hostile


@pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))
@pytest.mark.parametrize("address", ["10.0.0.7", "2001:db8::7", "2001:db8::/64", "unix socket", ""])
def test_an_event_is_what_the_schema_says(event: ExportedEvent, address: str) -> None:
    assert problems(ocsf_event(event._replace(address=address), "1.2")) == []


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("event", EVENTS.values(), ids=list(EVENTS))
def test_hostile_text_stays_in_its_field(event: ExportedEvent, text: str) -> None:
    nasty = hostile(event, text)
    if event is LOGIN:
        nasty = nasty._replace(operation=event.operation)
    found = ocsf_event(nasty, f"1{text}")
    found["src_endpoint"] = {"name": "judged elsewhere"}
    assert problems(found) == []
    line = json.dumps(found)
    assert "\n" not in line
    assert json.loads(line) == found
    plain = ocsf_event(event, "1")
    for name in ("class_uid", "status_id", "severity_id", "time", "category_uid"):
        assert found[name] == plain[name]


def test_a_refused_attempt() -> None:
    event = ocsf_event(ATTEMPT, "1.2")
    assert (event["class_uid"], event["type_uid"], event["status_id"]) == (6003, 600301, 2)
    assert event["actor"] == {"user": {"name": "User:mallory", "type_id": 1}}
    assert (event["count"], event["start_time"], event["end_time"]) == (
        37,
        1_700_000_000_000,
        1_700_000_009_000,
    )
    assert event["api"]["response"]["error"] == "TOPIC_AUTHORIZATION_FAILED"
    assert event["resources"] == [{"name": "orders", "type": "topic"}]
    assert event["http_request"]["url"] == {"path": "/v1/topics"}


def test_a_login_is_an_authentication() -> None:
    event = ocsf_event(LOGIN, "1.2")
    assert (event["class_uid"], event["type_uid"]) == (3002, 300201)
    assert event["user"]["name"] == "alice"
    assert event["actor"]["user"]["name"] == "unauthenticated"
    assert "count" not in event


def test_a_change_is_a_success() -> None:
    event = ocsf_event(CHANGE, "1.2")
    assert (event["status_id"], event["activity_id"]) == (1, 1)
    assert event["metadata"]["correlation_uid"] == CHANGE.request_id
    assert event["unmapped"]["on_behalf_of"] == "User:ana"


def test_the_judge_finds_what_is_wrong() -> None:
    """Each of these would pass a judge that looks at nothing."""
    good = ocsf_event(ATTEMPT, "1.2")

    def broken(change) -> dict:
        event = copy.deepcopy(good)
        change(event)
        return event

    for change in (
        lambda e: e.pop("metadata"),
        lambda e: e.pop("actor"),
        lambda e: e.pop("src_endpoint"),
        lambda e: e.update(nonsense=1),
        lambda e: e.update(time="now"),
        lambda e: e.update(severity_id=12),
        lambda e: e.update(type_uid=1),
        lambda e: e.update(category_uid=3),
        lambda e: e["api"].pop("operation"),
        lambda e: e["src_endpoint"].clear(),
        lambda e: e["actor"]["user"].update(nonsense=1),
        lambda e: e["resources"].append("x"),
        lambda e: e["metadata"]["product"].clear(),
    ):
        assert problems(broken(change)), change


@pytest.mark.parametrize("route", sorted(ROUTE_ACCESS))
def test_every_route_is_an_activity(route: str) -> None:
    """`other` is for what neither makes, reads, changes nor removes a thing."""
    others = {"live", "ready", "metrics"}
    assert (activity_of(route) == 99) == (route in others)
