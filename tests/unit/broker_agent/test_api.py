"""The agent's own HTTP interface: health, metrics, metadata for clients, forwarding."""

import json

import pytest

from broker_agent import api
from broker_agent.api import AgentApi
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.clients import ClientMetadata
from metadata.messages.errors import ErrorReply, error_reply
from metadata.messages.fetch import StateAt
from metadata.messages.header_names import OLD_PREFIX, with_both_names
from metadata.messages.wire import JSON, MSGPACK, decode, encode
from metadata.records import BeginTransactionRecord, BrokerEndpoint, RegisterBrokerRecord
from runtime.http.requests import Caller, Reply, Request, Unreachable, whole
from tests.unit.broker_agent.fake_cluster import Active, dice, like, partition, topic
from tests.unit.broker_agent.rig import LEASE_S, ONE, TWO, Rig

ALICE = Caller("User:alice", "certificate", "10.0.0.9")


class Front:
    """An agent with its interface."""

    def __init__(
        self,
        *,
        forward_anonymous: bool = False,
        shows_certificate: bool = False,
        urls=(ONE, TWO),
        **settings,
    ) -> None:
        self.rig = Rig(urls=urls, **settings)
        self.rig.active = Active(self.rig.log, self.rig.controllers, urls[0])
        self.rig.log.append(topic(1), partition(1, 0, (7, 8), 7))
        self.api = AgentApi(
            self.rig.agent,
            self.rig.controllers,
            clock=self.rig.clock,
            random=dice(),
            people=self.rig.people(),
            forward_anonymous=forward_anonymous,
            shows_certificate=shows_certificate,
        )

    def ask(self, method: str, path: str, body: bytes = b"", caller=ALICE, **headers) -> Reply:
        replies: list[Reply] = []
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = Request(method, path, body, {}, named, caller)
        self.rig.do(lambda: self.api.handle(request, replies.append))
        self.rig.run(0.01)
        assert len(replies) <= 1
        return replies[0] if replies else None

    def json(self, path: str) -> tuple[int, dict]:
        reply = self.ask("GET", path)
        return reply.status, json.loads(reply.body)

    def refused(self, reply: Reply) -> ErrorReply:
        error = decode(ErrorReply, reply.body, reply.headers["content-type"])
        assert reply.status == error.known_code().status
        return error

    @property
    def forwarded(self):
        return [a for a in self.rig.controllers.asked if not a.is_fetch]


@pytest.fixture
def front() -> Front:
    front = Front()
    front.rig.online()
    return front


# Health.


def test_before_registration_it_is_live_and_not_ready():
    front = Front()
    front.rig.active.silent = True
    front.rig.start()
    front.rig.run(1.0)
    assert front.json("/health/live") == (200, {"live": True})
    status, health = front.json("/health/ready")
    assert status == 503
    assert (health["state"], health["ready"], health["brokerEpoch"]) == ("offline", False, -1)
    assert health["answeredSecondsAgo"] is None
    assert "no answer" in health["lastProblem"]


def test_online_and_fresh_it_is_ready(front):
    status, health = front.json("/health/ready")
    assert status == 200
    assert health["ready"] is True
    assert health["state"] == "online"
    assert health["offset"] == health["fetchedOffset"] == health["highWatermark"]
    assert health["head"] == front.rig.log.mark.head.hex()
    assert health["stateHash"] == front.rig.log.image.state_hash.shared_bytes().hex()
    assert health["controllerUrl"] == ONE
    assert health["leaseSeconds"] == pytest.approx(LEASE_S)
    assert health["answeredSecondsAgo"] < 2.1
    assert health["differs"] is None
    assert health["lastProblem"] is None
    again = front.json("/v1/agent")[1]
    assert {**again, "answeredSecondsAgo": 0} == {**health, "answeredSecondsAgo": 0}


def test_a_broker_that_was_paused_says_at_once_that_it_is_not_ready(front):
    front.rig.process.pause()
    front.rig.run(LEASE_S + 3)
    replies = []
    front.api.handle(Request("GET", "/health/ready"), replies.append)
    assert replies[0].status == 503
    assert json.loads(replies[0].body)["state"] == "fenced"


def test_a_broker_that_is_cut_off_is_not_ready_and_says_why(front):
    front.rig.active.silent = True
    front.rig.active.held.clear()
    front.rig.run(10)
    status, health = front.json("/health/ready")
    assert status == 503
    assert "fenced itself" in health["reason"]
    assert "does not answer" in health["lastProblem"]


def test_a_stopping_broker_serves_and_is_not_ready(front):
    front.rig.do(front.rig.agent.stop)
    status, health = front.json("/health/ready")
    assert status == 503
    assert (health["state"], health["serving"]) == ("stopping", True)


def test_a_broker_that_differs_says_so(front):
    rig = front.rig
    asked = rig.controllers.last
    rig.active.held.clear()
    wrong = StateAt(offset=rig.log.end, chain_hash=bytes(32), state_hash=bytes(32))
    asked.reply(like(rig.active.answer(asked.fetch), state_hash=wrong))
    rig.run(0.001)
    status, health = front.json("/v1/agent")
    assert status == 200
    assert "our log is not the controller's" in health["differs"]
    assert health["ready"] is False


# Metrics.


def figures(front: Front) -> dict[str, float]:
    reply = front.ask("GET", "/metrics")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = [line for line in reply.body.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_metrics_tell_where_it_stands(front):
    rig = front.rig
    seen = figures(front)
    assert seen['logberg_broker_state{state="online"}'] == 1
    assert seen['logberg_broker_state{state="fenced"}'] == 0
    assert seen["logberg_broker_serving"] == 1
    assert seen["logberg_broker_epoch"] == rig.agent.broker_epoch
    assert seen["logberg_broker_offset"] == rig.log.end
    assert seen["logberg_broker_lag_records"] == 0
    assert seen["logberg_broker_lease_seconds"] == pytest.approx(LEASE_S)
    assert 0 <= seen["logberg_broker_lease_age_seconds"] < 2.1
    assert seen["logberg_broker_fetches_total"] == len(rig.controllers.fetches)
    rig.do(lambda: rig.active.commit(BeginTransactionRecord("big"), topic(2)))
    rig.run(0.1)
    assert figures(front)["logberg_broker_lag_records"] == 2
    rig.active.silent = True
    rig.active.held.clear()
    rig.run(10)
    seen = figures(front)
    assert seen["logberg_broker_self_fencings_total"] == 1
    assert seen["logberg_broker_serving"] == 0
    assert seen["logberg_broker_fetch_failures_total"] > 2


def test_metrics_before_the_first_answer():
    front = Front()
    front.rig.active.silent = True
    front.rig.start()
    seen = front.ask("GET", "/metrics").body.decode()
    assert "logberg_broker_lag_records NaN" in seen
    assert "logberg_broker_lease_age_seconds +Inf" in seen


# What clients see.


def register(front: Front, broker_id: int, *, fenced: bool) -> None:
    log = front.rig.log
    record = RegisterBrokerRecord(
        broker_id,
        bytes(15) + bytes((broker_id,)),
        log.end,
        (BrokerEndpoint("PLAIN", f"host-{broker_id}", 9092, 0),),
        (),
        "rack-1",
        fenced=fenced,
    )
    front.rig.do(lambda: front.rig.active.commit(record))
    front.rig.run(0.1)


def test_clients_see_brokers_that_serve_and_who_leads(front):
    register(front, 8, fenced=False)
    register(front, 9, fenced=True)
    reply = front.ask("GET", "/v1/metadata")
    assert reply.status == 200
    view = decode(ClientMetadata, reply.body, JSON)
    assert [broker.broker_id for broker in view.brokers] == [7, 8], "9 is fenced"
    assert view.brokers[1].endpoints == {"PLAIN": "host-8:9092"}
    assert view.brokers[1].rack == "rack-1"
    (one,) = view.topics
    assert (one.name, one.partitions[0].leader, one.partitions[0].replicas) == (
        "topic-1",
        7,
        (7, 8),
    )
    assert view.offset == front.rig.log.end


def test_clients_see_the_newest_image_in_the_format_that_they_want(front):
    first = decode(ClientMetadata, front.ask("GET", "/v1/metadata").body, JSON)
    front.rig.do(lambda: front.rig.active.commit(topic(2)))
    front.rig.run(0.1)
    reply = front.ask("GET", "/v1/metadata", accept=MSGPACK)
    assert reply.headers["content-type"] == MSGPACK
    second = decode(ClientMetadata, reply.body, MSGPACK)
    assert (len(first.topics), len(second.topics)) == (1, 2)
    assert len(decode(ClientMetadata, front.ask("GET", "/v1/metadata").body, JSON).topics) == 2


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_what_is_long_is_written_in_parts_and_is_the_same(front, monkeypatch, media):
    """At once it would hold the agent's loop, and with it the broker's heartbeats."""
    at_once = front.ask("GET", "/v1/metadata", accept=media)
    monkeypatch.setattr(api, "REMEMBERED_MAX", 0)
    in_parts = front.ask("GET", "/v1/metadata", accept=media)
    assert at_once.parts is None
    assert in_parts.parts is not None
    assert whole(in_parts).body == at_once.body


@pytest.mark.parametrize("ask", [("GET", "/v1/metadata"), ("POST", "/v1/topics")])
def test_a_fenced_broker_answers_no_client(front, ask):
    front.rig.active.silent = True
    front.rig.active.held.clear()
    front.rig.process.pause()
    front.rig.run(LEASE_S + 1)
    replies = []
    front.api.handle(Request(*ask, caller=ALICE), replies.append)
    error = front.refused(replies[0])
    assert replies[0].status == 503
    assert error.known_code() is ErrorCode.BROKER_NOT_AVAILABLE
    assert "ask another" in error.message
    assert front.forwarded == []


# Passing on.


def test_a_request_is_passed_on_with_the_caller_s_principal(front):
    rig = front.rig
    rig.controllers.on_ask = lambda asked: asked.give(
        Reply(
            200,
            b'{"done":true}',
            {"content-type": JSON, "content-length": "13", "date": "x", "connection": "close"},
        )
    )
    reply = front.ask(
        "POST",
        "/v1/topics",
        b"{}",
        content_type=JSON,
        x_logberg_reason="why",
        x_logberg_client_id="me",
        x_logberg_on_behalf_of="User:root",
        cookie="c",
        host="here",
    )
    assert (reply.status, reply.body, reply.headers) == (
        200,
        b'{"done":true}',
        {"content-type": JSON},
    )
    (asked,) = front.forwarded
    assert asked.url == ONE
    headers = {k: v for k, v in asked.request.headers.items() if not k.startswith(OLD_PREFIX)}
    assert asked.request.headers == with_both_names(headers), "release 0.1 may be there"
    assert len(headers.pop("x-logberg-request-id")) == 22
    assert headers == {
        "content-type": JSON,
        "x-logberg-reason": "why",
        "x-logberg-client-id": "me",
        "x-logberg-on-behalf-of": "User:alice",
        "x-logberg-client-address": "10.0.0.9",
    }
    assert asked.request.body == b"{}"


def test_a_request_id_is_kept_and_a_read_gets_none(front):
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}"))
    front.ask("DELETE", "/v1/topics/a", x_logberg_request_id="AaMYXGFrclSJFwgovY8e6g")
    front.ask("GET", "/v1/topics")
    changed, read = front.forwarded
    assert changed.request.headers["x-logberg-request-id"] == "AaMYXGFrclSJFwgovY8e6g"
    assert "x-logberg-request-id" not in read.request.headers


NEW_ID = {"x-logberg-request-id": "AaMYXGFrclSJFwgovY8e6g"}
OLD_ID = {"x-quorate-request-id": "AaMYXGFrclSJFwgovY8e6g"}
RANGE = {"x-logberg-versions": "1-2"}
OLD_RANGE = {"x-quorate-versions": "1-2"}


@pytest.mark.parametrize(
    ("caller", "controller", "first", "second", "answered"),
    [
        (OLD_ID, OLD_ID, {**NEW_ID, **OLD_ID}, {**NEW_ID, **OLD_ID}, {**NEW_ID, **OLD_ID}),
        (NEW_ID, OLD_ID, {**NEW_ID, **OLD_ID}, {**NEW_ID, **OLD_ID}, NEW_ID),
        (OLD_ID, {**NEW_ID, **RANGE}, {**NEW_ID, **OLD_ID}, NEW_ID, None),
        (NEW_ID, {**NEW_ID, **RANGE}, {**NEW_ID, **OLD_ID}, NEW_ID, {**NEW_ID, **RANGE}),
    ],
    ids=["old to old", "new to old", "old to new", "new to new"],
)
def test_each_side_is_told_names_of_headers_that_it_knows(
    front, caller, controller, first, second, answered
):
    """`first` is sent while the controller's release is not known, `second` after an answer."""
    if answered is None:
        answered = {**NEW_ID, **OLD_ID, **RANGE, **OLD_RANGE}
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}", controller))
    names = {name.replace("-", "_"): value for name, value in caller.items()}
    for sent in (first, second):
        reply = front.ask("DELETE", "/v1/topics/a", **names)
        assert reply.headers == answered
        headers = dict(front.forwarded[-1].request.headers)
        for name, value in (("on-behalf-of", "User:alice"), ("client-address", "10.0.0.9")):
            assert headers.pop(f"x-logberg-{name}") == value
            old = value if OLD_ID.items() <= sent.items() else None
            assert headers.pop(f"x-quorate-{name}", None) == old
        assert headers == sent
    # Whoever answers there next may be of the old release again.
    front.rig.controllers.on_ask = lambda asked: asked.give(Unreachable("gone", refused=True))
    front.ask("DELETE", "/v1/topics/a", **names)
    front.ask("DELETE", "/v1/topics/a", **names)
    assert "x-quorate-request-id" in front.forwarded[-1].request.headers


@pytest.mark.parametrize("prefix", ["x_logberg", "x_quorate"])
def test_a_callers_claim_is_not_passed_on_under_either_name(front, prefix):
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}"))
    claims = {f"{prefix}_on_behalf_of": "User:root", f"{prefix}_client_address": "10.0.0.1"}
    front.ask("GET", "/v1/topics", **claims)
    headers = front.forwarded[0].request.headers
    assert {headers[f"{p}-on-behalf-of"] for p in ("x-logberg", "x-quorate")} == {"User:alice"}
    assert {headers[f"{p}-client-address"] for p in ("x-logberg", "x-quorate")} == {"10.0.0.9"}


def test_a_header_with_two_values_is_refused_and_not_passed_on(front):
    reply = front.ask("GET", "/v1/topics", x_logberg_reason="one", x_quorate_reason="two")
    assert "x-logberg-reason and x-quorate-reason" in front.refused(reply).message
    assert front.forwarded == []


def test_the_condition_of_a_change_is_passed_on(front):
    """Without it, a change that was meant for one state would be made in any."""
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}"))
    front.ask("PATCH", "/v1/configs", b"{}", x_logberg_expect_offset="7")
    assert front.forwarded[0].request.headers["x-logberg-expect-offset"] == "7"


def no_controller(leader_url: str) -> Reply:
    error = error_reply(LogbergError(ErrorCode.NOT_CONTROLLER), leader_url=leader_url)
    return Reply(421, encode(error, JSON), {"content-type": JSON})


def test_a_controller_that_does_not_lead_is_left_for_the_one_that_it_names(front):
    front.rig.controllers.on_ask = lambda asked: asked.give(
        Reply(200, b"{}") if asked.url == TWO else no_controller(TWO)
    )
    assert front.ask("POST", "/v1/topics", b"{}").status == 200
    first, second = front.forwarded
    assert (first.url, second.url) == (ONE, TWO)
    assert first.request == second.request, "the same id: it takes effect once"


def test_controllers_that_point_at_each_other_are_not_asked_for_ever(front):
    other = {ONE: TWO, TWO: ONE}
    front.rig.controllers.on_ask = lambda asked: asked.give(no_controller(other[asked.url]))
    assert front.ask("POST", "/v1/topics", b"{}").status == 421
    assert len(front.forwarded) == 3


def test_a_caller_is_not_passed_on_by_another_scheme(front):
    front.rig.controllers.on_ask = lambda asked: asked.give(no_controller("https://elsewhere"))
    assert front.ask("POST", "/v1/topics", b"{}").status == 421
    assert [asked.url for asked in front.forwarded] == [ONE]


def test_what_may_have_taken_effect_is_not_called_refused(front):
    front.rig.controllers.on_ask = lambda asked: asked.give(Unreachable("reset"))
    error = front.refused(front.ask("POST", "/v1/topics", b"{}"))
    assert error.known_code() is ErrorCode.REQUEST_TIMED_OUT
    assert error.request_id == front.forwarded[0].request.headers["x-logberg-request-id"]
    front.rig.controllers.on_ask = lambda asked: asked.give(Unreachable("no", refused=True))
    error = front.refused(front.ask("POST", "/v1/topics", b"{}"))
    assert error.known_code() is ErrorCode.NO_QUORUM


@pytest.mark.parametrize(
    "path",
    [
        *("/v1/metadata/fetch", "/v1/snapshots/1-1", "/v1/snapshots", "/v1/metadata/"),
        *("/v1/partitions/alter", "/v1/producer-ids", "/v1/brokers/1/directories"),
    ],
)
def test_what_is_between_brokers_and_controllers_is_not_passed_on(front, path):
    """A caller could register, heartbeat or stop in this broker's name."""
    error = front.refused(front.ask("POST", path, b"{}"))
    assert error.known_code() is ErrorCode.NOT_FOUND
    assert front.forwarded == []


def test_nobody_is_passed_on_whom_the_broker_does_not_know(front):
    error = front.refused(front.ask("GET", "/v1/topics", caller=Caller()))
    assert error.known_code() is ErrorCode.UNAUTHENTICATED
    assert front.forwarded == []


def test_a_cluster_without_authentication_takes_anybody():
    front = Front(forward_anonymous=True)
    front.rig.online()
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}"))
    assert front.ask("GET", "/v1/topics", caller=Caller()).status == 200
    assert "x-logberg-on-behalf-of" not in front.forwarded[0].request.headers


@pytest.mark.parametrize("caller", [Caller(), Caller("User:alice", "certificate")])
def test_a_token_goes_on_as_it_came(caller):
    """The controller judges it, so nothing is claimed beside it."""
    front = Front(forward_anonymous=True)
    front.rig.online()
    answers = [no_controller(TWO), Reply(200, b"{}")]
    front.rig.controllers.on_ask = lambda asked: asked.give(answers.pop(0))
    reply = front.ask("DELETE", "/v1/topics/a", caller=caller, authorization="Bearer of-alice")
    assert reply.status == 200
    assert len(front.forwarded) == 2
    for asked in front.forwarded:
        assert asked.request.headers["authorization"] == "Bearer of-alice"
        assert "x-logberg-on-behalf-of" not in asked.request.headers


def test_a_token_that_came_over_tls_does_not_go_on_in_the_clear(front):
    reply = front.ask("GET", "/v1/topics", caller=Caller(), authorization="Bearer of-alice")
    assert reply.status == 403
    assert b"plain HTTP" in reply.body
    assert front.forwarded == []


SECURE = "https://one"


@pytest.mark.parametrize(
    ("caller", "shown", "certified", "url", "named"),
    [
        (ALICE, {}, False, ONE, "10.0.0.9"),
        (ALICE, {}, True, SECURE, "10.0.0.9"),
        (Caller(address="10.0.0.9"), {"authorization": "Bearer t"}, True, SECURE, "10.0.0.9"),
        (Caller(address="10.0.0.9"), {"authorization": "Bearer t"}, False, SECURE, None),
        (Caller(address="10.0.0.9"), {"authorization": "Bearer t"}, True, ONE, None),
        (Caller(address="10.0.0.9"), {}, True, SECURE, None),
        (Caller("User:alice", "certificate"), {}, True, SECURE, None),
    ],
    ids=[
        "a claim",
        "a claim over TLS",
        "a token beside our certificate",
        "a token without a certificate of ours",
        "a token over plain HTTP, which shows no certificate",
        "nobody, so it asks as this broker",
        "a claim without an address",
    ],
)
def test_a_client_s_address_goes_along_where_the_controller_sees_a_broker_that_forwards(
    caller, shown, certified, url, named
):
    """Elsewhere the controller would refuse it as a claim that nothing proves."""
    front = Front(forward_anonymous=True, shows_certificate=certified, urls=(url,))
    front.rig.online()
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(200, b"{}"))
    assert front.ask("GET", "/v1/topics", caller=caller, **shown).status == 200
    assert front.forwarded[0].request.headers.get("x-logberg-client-address") == named


def test_whose_a_token_is_the_agent_asks_at_the_client_s_address():
    """The answer of the controllers can depend on it, and a refused token is logged with it."""
    front = Front(shows_certificate=True, urls=(SECURE,), authorization="on")
    front.rig.online()
    front.rig.controllers.on_ask = lambda asked: asked.give(Reply(404, b"{}"))
    front.ask("GET", "/v1/metadata", caller=Caller(address="10.0.0.9"), authorization="Bearer t")
    (asked,) = front.forwarded
    assert asked.request.path == "/v1/caller"
    assert asked.request.headers["x-logberg-client-address"] == "10.0.0.9"


def test_other_methods_and_pages_are_refused(front):
    reply = front.ask("POST", "/v1/metadata")
    assert (reply.status, reply.headers["allow"]) == (405, "GET")
    assert front.ask("GET", "/favicon.ico").status == 404
    assert front.forwarded == []
