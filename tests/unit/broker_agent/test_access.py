"""Where rights are enforced, an agent's metadata names only topics that the caller may describe."""

from typing import Any

import pytest

from broker_agent.api import AgentApi, Audience
from broker_agent.token_callers import KNOWN_S
from metadata.errors import ErrorCode, LogbergError
from metadata.messages.callers import CALLER, CallerReply
from metadata.messages.clients import ClientMetadata
from metadata.messages.errors import error_reply
from metadata.messages.wire import JSON, MSGPACK, decode, encode
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    RemoveAccessControlEntryRecord,
)
from runtime.http.requests import UNIX_SOCKET, Caller, Reply, whole
from tests.unit.broker_agent.fake_cluster import dice, partition, topic
from tests.unit.broker_agent.rig import ONE, TWO, Rig
from tests.unit.broker_agent.test_api import Front

ALICE = Caller("User:alice", "certificate", "10.0.0.9")
ROOT = Caller("User:root", "certificate", "10.0.0.8")
NOBODY = Caller(address="10.0.0.9")


def describes(name: str, kind: AclResourceType = AclResourceType.TOPIC, number: int = 1) -> Any:
    return AccessControlEntryRecord(
        number.to_bytes(16, "big"),
        kind,
        name,
        AclPatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.DESCRIBE,
        AclPermissionType.ALLOW,
    )


class JudgedFront(Front):
    """An agent that enforces rights, with two topics."""

    def __init__(self, authorization: str = "on") -> None:
        self.rig = Rig(
            urls=(ONE, TWO), authorization=authorization, super_users=frozenset({"User:root"})
        )
        for number in (1, 2):
            self.rig.log.append(topic(number), partition(number, 0, (7, 8), 7))
        self.api = AgentApi(
            self.rig.agent,
            self.rig.controllers,
            clock=self.rig.clock,
            random=dice(),
            people=self.rig.people(),
            # These controllers are reached over plain HTTP.
            forward_anonymous=True,
        )
        self.rig.online()

    def commit(self, *records: Any) -> None:
        for record in records:
            self.rig.do(lambda record=record: self.rig.active.commit(record))
            self.rig.run(0.1)

    def names(self, caller: Caller = ALICE, media: str = JSON, **headers: Any) -> list[str]:
        reply = self.ask("GET", "/v1/metadata", caller=caller, accept=media, **headers)
        assert reply.status == 200, reply
        view = decode(ClientMetadata, whole(reply).body, media)
        assert [broker.broker_id for broker in view.brokers] == [7]
        return [each.name for each in view.topics]


@pytest.fixture
def front() -> JudgedFront:
    return JudgedFront()


@pytest.mark.parametrize("media", [JSON, MSGPACK])
def test_metadata_names_what_the_caller_may_describe(front: JudgedFront, media: str) -> None:
    assert front.names(media=media) == []
    assert front.names(ROOT, media) == ["topic-1", "topic-2"]
    front.commit(describes("topic-2"))
    assert front.names(media=media) == ["topic-2"]
    assert front.names(NOBODY, media) == []
    front.commit(describes("kafka-cluster", AclResourceType.CLUSTER, 2))
    assert front.names(media=media) == ["topic-1", "topic-2"]
    front.commit(RemoveAccessControlEntryRecord((2).to_bytes(16, "big")))
    assert front.names(media=media) == ["topic-2"]


def test_the_host_beside_the_agent_sees_everything(front: JudgedFront) -> None:
    host = Caller("User:kafka", UNIX_SOCKET)
    assert front.names(host) == ["topic-1", "topic-2"]


@pytest.mark.parametrize("authorization", ["off", "log-only"])
def test_without_enforcement_everybody_sees_everything(authorization: str) -> None:
    front = JudgedFront(authorization)
    assert front.names(NOBODY) == ["topic-1", "topic-2"]
    assert front.forwarded == []


def test_every_own_path_says_to_whom_it_is_open(front: JudgedFront) -> None:
    open_to = {path: own.open_to for path, own in front.api._own.items()}
    shown = {path for path, who in open_to.items() if who is Audience.SHOWN}
    assert shown == {"/v1/metadata"}
    assert set(open_to) - shown == {"/health/live", "/health/ready", "/v1/agent", "/metrics"}
    for path in set(open_to) - shown:
        assert front.ask("GET", path, caller=NOBODY).status == 200


class TestTokens:
    """An agent knows no tokens: a controller says whose they are."""

    def controllers_say(self, front: JudgedFront, reply: Reply) -> None:
        on_fetch = front.rig.controllers.on_ask

        def on_ask(asked: Any) -> None:
            if asked.request.path == CALLER:
                asked.give(reply)
            else:
                on_fetch(asked)

        front.rig.controllers.on_ask = on_ask

    def known(self, principal: str) -> Reply:
        body = encode(CallerReply(principal, "token"), MSGPACK)
        return Reply(200, body, {"content-type": MSGPACK})

    def test_the_controllers_say_whose_a_token_is(self, front: JudgedFront) -> None:
        front.commit(describes("topic-1"))
        self.controllers_say(front, self.known("User:alice"))
        assert front.names(NOBODY, authorization="Bearer t") == ["topic-1"]
        (asked,) = front.forwarded
        assert asked.request.headers["authorization"] == "Bearer t"
        assert "x-logberg-on-behalf-of" not in asked.request.headers

    def test_an_answer_counts_for_a_few_seconds(self, front: JudgedFront) -> None:
        self.controllers_say(front, self.known("User:root"))
        for _ in range(3):
            assert len(front.names(NOBODY, authorization="Bearer t")) == 2
        assert len(front.forwarded) == 1
        assert front.names(NOBODY, authorization="Bearer other")
        assert len(front.forwarded) == 2
        front.rig.run(KNOWN_S)
        error = LogbergError(ErrorCode.UNAUTHENTICATED, "it was revoked")
        revoked = Reply(401, encode(error_reply(error), MSGPACK), {"content-type": MSGPACK})
        self.controllers_say(front, revoked)
        reply = front.ask("GET", "/v1/metadata", caller=NOBODY, authorization="Bearer t")
        assert front.refused(reply).message == "it was revoked"

    def test_a_controller_that_does_not_say_it_makes_the_caller_anonymous(
        self, front: JudgedFront
    ) -> None:
        front.commit(describes("topic-1"))
        error = LogbergError(ErrorCode.NOT_FOUND, "no such path")
        unknown = Reply(404, encode(error_reply(error), MSGPACK), {"content-type": MSGPACK})
        self.controllers_say(front, unknown)
        assert front.names(NOBODY, authorization="Bearer t") == []
