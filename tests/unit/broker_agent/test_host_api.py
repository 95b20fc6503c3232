"""What the agent's process does for a host in another process, and whom it refuses."""

import hashlib
import hmac
import json
import stat
from base64 import b64decode
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from broker_agent.api import AgentApi
from broker_agent.directory_assignments import DirectoryAssignments
from broker_agent.host_api import HostApi
from broker_agent.library import BrokerAgent
from broker_agent.opened_secrets import Secrets
from broker_agent.producer_ids import PATH as PRODUCER_IDS
from broker_agent.producer_ids import ProducerIds
from metadata.messages.host import ConfigSecret, ScramSecret, TokenSecret
from metadata.messages.producer_ids import AllocateProducerIdsReply
from metadata.messages.wire import MSGPACK, encode
from metadata.partition_key import PartitionKey
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    ScramMechanism,
    UserScramCredentialRecord,
)
from metadata.sealed_places import scram_place, token_hmac
from metadata.sealing import ClusterKey
from metadata.uuids import uuid_text
from runtime.http.requests import UNIX_SOCKET, Caller, Reply, Request
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.fake_cluster import BROKER, dice, partition, topic, topic_id
from tests.unit.broker_agent.rig import Rig
from tests.unit.broker_agent.test_library import Controller, config, own_server

KEY = ClusterKey(b"\x07" * 32)
HOST = Caller("User:kafka", UNIX_SOCKET)
STRANGERS = (
    Caller(),
    Caller("User:admin", "certificate", "10.0.0.9"),
    Caller(f"Broker:{BROKER}", "certificate", "127.0.0.1"),
    Caller("User:kafka", "token", "127.0.0.1"),
)
DIRECTORIES = (b"\x0a" * 16, b"\x0b" * 16)
ONE, TWO = map(uuid_text, DIRECTORIES)
STRANGE = uuid_text(b"\x0c" * 16)
SALT, STORED, SERVER = b"salt", b"\x01" * 32, b"\x02" * 32
SHA_256 = ScramMechanism.SCRAM_SHA_256
ROUTES = (
    ("POST", "producer-ids"),
    ("GET", "directories"),
    ("POST", "directories"),
    ("PUT", "log-dirs"),
    ("GET", "scram"),
    ("GET", "token"),
    ("GET", "config"),
)


def sealed(part: str, secret: bytes) -> bytes:
    return KEY.seal(scram_place("al", SHA_256, part), secret, bytes(32)).block


class Beside:
    """An agent's process, and the host that asks it."""

    def __init__(self, key: ClusterKey | None = KEY) -> None:
        self.rig = rig = Rig(log_dirs=DIRECTORIES)
        rig.log.append(
            topic(1),
            partition(1, 0, (BROKER, 8), BROKER),
            UserScramCredentialRecord(
                "al", SHA_256, SALT, sealed("storedKey", STORED), sealed("serverKey", SERVER), 4096
            ),
            DelegationTokenRecord("User:al", "User:al", (), 0, 10**15, 10**15, "valid"),
            DelegationTokenRecord("User:al", "User:al", (), 0, 1, 1, "expired"),
            ConfigRecord(ConfigResourceType.TOPIC, "topic-1", "retention.ms", "7"),
            ConfigRecord(ConfigResourceType.BROKER, "", "log.retention.ms", "8"),
        )
        given: Any = {"clock": rig.clock, "requester": rig.controllers, "log": quiet_log()}
        self.ids = ProducerIds(BROKER, on_ready=self.on_ready, **given)
        self.directories = DirectoryAssignments(BROKER, DIRECTORIES, **given)
        for requests in (self.ids, self.directories):
            requests.follow(rig.agent)
        self.secrets = Secrets(lambda: rig.agent.image, key)
        self.host = HostApi(
            rig.agent,
            clock=rig.clock,
            producer_ids=self.ids,
            directories=self.directories,
            secrets=self.secrets,
        )
        self.api = AgentApi(
            rig.agent,
            rig.controllers,
            clock=rig.clock,
            random=dice(),
            people=rig.people(),
            host=self.host,
        )
        rig.agent.view._publishers += (self.ids, self.directories)
        rig.online()
        rig.controllers.on_ask = self.on_ask
        self.blocks: list[AllocateProducerIdsReply] = []

    def on_ready(self) -> None:
        self.host.on_producer_ids()

    def on_ask(self, asked: Any) -> None:
        """The active controller; it gives out the blocks that the test has prepared."""
        if asked.request.path != PRODUCER_IDS:
            self.rig.active.on_ask(asked)
        elif self.blocks:
            body = encode(self.blocks.pop(0), MSGPACK)
            asked.give(Reply(200, body, {"content-type": MSGPACK}))

    def begin(
        self, method: str, path: str, body: object = None, caller: Caller = HOST, **query: str
    ) -> list[Reply]:
        replies: list[Reply] = []
        data = b"" if body is None else json.dumps(body).encode()
        headers = {"content-type": "application/json"}
        request = Request(method, f"/v1/host/{path}", data, query, headers, caller)
        self.rig.do(lambda: self.api.handle(request, replies.append))
        return replies

    def ask(self, *given: Any, seconds: Any = 0.1, **more: Any) -> tuple[int, dict[str, Any]]:
        replies = self.begin(*given, **more)
        self.rig.run(seconds)
        assert len(replies) == 1
        return replies[0].status, json.loads(replies[0].body)

    def refused(self, *given: Any, **more: Any) -> tuple[str, str]:
        _, answer = self.ask(*given, **more)
        return answer["code"], answer["message"]


@pytest.fixture
def beside() -> Beside:
    return Beside()


@pytest.mark.parametrize("caller", STRANGERS, ids=lambda caller: f"{caller.method}")
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_only_the_host_on_its_socket_is_answered(
    beside: Beside, method: str, path: str, caller: Caller
) -> None:
    asked = len([a for a in beside.rig.controllers.asked if not a.is_fetch])
    body = {"replicas": []} if method == "POST" else None
    query = {"user": "al", "mechanism": "SCRAM-SHA-256", "tokenId": "valid"}
    status, answer = beside.ask(method, path, body, caller=caller, **query)
    assert (status, answer["code"]) == (403, "CLUSTER_AUTHORIZATION_FAILED")
    assert len([a for a in beside.rig.controllers.asked if not a.is_fetch]) == asked


def test_without_a_socket_there_are_no_such_routes_and_nothing_is_forwarded(beside: Beside) -> None:
    beside.api._host = None
    for method, path in ROUTES:
        assert beside.refused(method, path)[0] == "NOT_FOUND"


def test_over_the_socket_nothing_is_forwarded(beside: Beside) -> None:
    """A login of this machine is no user of the cluster."""
    replies: list[Reply] = []
    request = Request("GET", "/v1/topics", caller=HOST)
    beside.rig.do(lambda: beside.api.handle(request, replies.append))
    assert json.loads(replies[0].body)["code"] == "NOT_FOUND"


# Producer ids.


def test_ids_come_from_the_blocks_of_this_broker_and_never_twice(beside: Beside) -> None:
    beside.blocks = [AllocateProducerIdsReply(1_000, 3), AllocateProducerIdsReply(5_000, 3)]
    taken = [
        beside.ask("POST", "producer-ids", {"count": count})[1]["producerIds"]
        for count in (2, 1_000, 3)
    ]
    assert taken == [[1_000, 1_001], [1_002], [5_000, 5_001, 5_002]]


def test_who_asks_before_a_block_has_come_waits_for_it_in_order(beside: Beside) -> None:
    first = beside.begin("POST", "producer-ids", {})
    second = beside.begin("POST", "producer-ids", {"count": 2})
    assert not first
    assert not second
    asked = next(a for a in beside.rig.controllers.asked if a.request.path == PRODUCER_IDS)
    body = encode(AllocateProducerIdsReply(70, 10), MSGPACK)
    asked.give(Reply(200, body, {"content-type": MSGPACK}))
    beside.rig.run(0.1)
    assert json.loads(first[0].body) == {"producerIds": [70]}
    assert json.loads(second[0].body) == {"producerIds": [71, 72]}
    beside.rig.run(20.0)
    assert (len(first), len(second)) == (1, 1)


def test_who_waits_too_long_is_told_why_and_takes_no_id(beside: Beside) -> None:
    status, answer = beside.ask("POST", "producer-ids", {}, seconds=6.0)
    assert (status, answer["code"]) == (503, "BROKER_NOT_AVAILABLE")
    assert answer["retriable"] is True
    beside.blocks = [AllocateProducerIdsReply(70, 10)]
    beside.rig.run(10.0)
    assert beside.ask("POST", "producer-ids", {})[1]["producerIds"] == [70]


# Directories.


def test_the_directory_of_a_replica_is_reported_to_the_controller(beside: Beside) -> None:
    replica = {"topicId": uuid_text(topic_id(1)), "partition": 0, "directory": TWO}
    status, answer = beside.ask("POST", "directories", {"replicas": [replica]})
    assert (status, answer["waiting"]) == (200, 1)
    assert beside.directories.reported == {PartitionKey(topic_id(1), 0): DIRECTORIES[1]}
    path = f"/v1/brokers/{BROKER}/directories"
    assert [a for a in beside.rig.controllers.asked if a.request.path == path]


def test_a_report_with_a_strange_directory_reports_nothing(beside: Beside) -> None:
    replicas = [
        {"topicId": uuid_text(topic_id(1)), "partition": number, "directory": directory}
        for number, directory in enumerate((ONE, STRANGE))
    ]
    status, answer = beside.ask("POST", "directories", {"replicas": replicas})
    assert (status, answer["code"]) == (400, "INVALID_REQUEST")
    assert answer["details"]["field"] == "replicas[1].directory"
    assert not beside.directories.reported


def test_failed_and_cordoned_directories_are_in_the_next_fetch(beside: Beside) -> None:
    beside.rig.controllers.said_of_versions["x-logberg-versions"] = "1-2"
    beside.rig.run(3.0)
    status, answer = beside.ask("PUT", "log-dirs", {"failed": [TWO], "cordoned": [ONE]})
    assert status == 200
    shown = {"logDirs": [ONE, TWO], "failed": [TWO], "cordoned": [ONE], "waiting": 0}
    assert answer == shown == beside.ask("GET", "directories")[1]
    assert beside.rig.agent.directories.failed == {DIRECTORIES[1]}


# Secrets.


def test_a_credential_is_opened(beside: Beside) -> None:
    replies = beside.begin("GET", "scram", user="al", mechanism="SCRAM-SHA-256")
    answer = json.loads(replies[0].body)
    assert replies[0].headers["cache-control"] == "no-store"
    assert answer["iterations"] == 4096
    opened = [b64decode(answer[name]) for name in ("salt", "storedKey", "serverKey")]
    assert opened == [SALT, STORED, SERVER]


def test_a_token_is_answered_with_its_secret(beside: Beside) -> None:
    status, answer = beside.ask("GET", "token", tokenId="valid")
    assert status == 200
    assert b64decode(answer["hmac"]) == token_hmac(KEY, "valid")
    assert (answer["owner"], answer["expiryMs"]) == ("User:al", 10**15)


@pytest.mark.parametrize(
    ("query", "value"),
    [
        ({"type": "topic", "name": "topic-1", "key": "retention.ms"}, "7"),
        ({"type": "broker", "name": "default", "key": "log.retention.ms"}, "8"),
        ({"type": "broker", "name": "1", "key": "log.retention.ms"}, None),
    ],
)
def test_a_config_is_answered(beside: Beside, query: dict[str, str], value: str | None) -> None:
    assert beside.ask("GET", "config", **query) == (200, {"value": value})


@pytest.mark.parametrize(
    ("method", "path", "body", "query", "code", "field"),
    [
        ("GET", "scram", None, {"user": "al"}, "INVALID_REQUEST", "mechanism"),
        (
            "GET",
            "scram",
            None,
            {"user": "al", "mechanism": "MD5"},
            "UNSUPPORTED_SASL_MECHANISM",
            "mechanism",
        ),
        (
            "GET",
            "scram",
            None,
            {"user": "nobody", "mechanism": "SCRAM-SHA-256"},
            "RESOURCE_NOT_FOUND",
            None,
        ),
        ("GET", "token", None, {}, "INVALID_REQUEST", "tokenId"),
        ("GET", "token", None, {"tokenId": "none"}, "DELEGATION_TOKEN_NOT_FOUND", None),
        ("GET", "token", None, {"tokenId": "expired"}, "DELEGATION_TOKEN_EXPIRED", None),
        ("GET", "config", None, {"type": "x", "name": "a", "key": "b"}, "INVALID_REQUEST", "type"),
        ("POST", "producer-ids", {"count": 0}, {}, "INVALID_REQUEST", "count"),
        ("POST", "producer-ids", {"count": 1_001}, {}, "INVALID_REQUEST", "count"),
        ("POST", "directories", {"replicas": []}, {}, "INVALID_REQUEST", "replicas"),
        ("PUT", "log-dirs", {"failed": [STRANGE]}, {}, "INVALID_REQUEST", "failed"),
        ("PUT", "log-dirs", {"broken": []}, {}, "INVALID_REQUEST", None),
        ("DELETE", "scram", None, {}, "METHOD_NOT_ALLOWED", None),
        ("GET", "producer-ids", None, {}, "METHOD_NOT_ALLOWED", None),
        ("GET", "passwords", None, {}, "NOT_FOUND", None),
    ],
)
def test_what_cannot_be_answered_is_refused_with_its_field(
    beside: Beside,
    method: str,
    path: str,
    body: object,
    query: dict[str, str],
    code: str,
    field: str | None,
) -> None:
    _, answer = beside.ask(method, path, body, **query)
    assert answer["code"] == code, answer
    assert (answer.get("details") or {}).get("field") == field


@pytest.mark.parametrize("key", [None, ClusterKey(b"\x08" * 32)], ids=["none", "another"])
def test_without_the_clusters_key_no_secret_is_opened(key: ClusterKey | None) -> None:
    code, why = Beside(key).refused("GET", "scram", user="al", mechanism="SCRAM-SHA-256")
    assert code == "SECURITY_DISABLED"
    assert ("write cluster_key in the agent's settings" in why) is (key is None)


def test_a_broker_that_may_not_serve_opens_nothing(beside: Beside) -> None:
    beside.rig.active.silent = True
    beside.rig.run(8.0)
    assert not beside.rig.agent.may_serve()
    for path, query in (
        ("scram", {"user": "al", "mechanism": "SCRAM-SHA-256"}),
        ("token", {"tokenId": "valid"}),
        ("config", {"type": "topic", "name": "topic-1", "key": "retention.ms"}),
    ):
        assert beside.refused("GET", path, **query)[0] == "BROKER_NOT_AVAILABLE"
    assert beside.ask("GET", "directories")[0] == 200


# Over a real socket.


async def test_the_socket_is_its_users_alone_and_goes_with_the_agent(tmp_path: Path) -> None:
    controller = Controller()
    path = tmp_path / "host.sock"
    agent = BrokerAgent(
        config(controller, log_dirs=DIRECTORIES),
        data=tmp_path / "agent",
        server=own_server(host_socket=path),
    )
    async with agent, aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(path))) as over:
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IRUSR | stat.S_IWUSR
        async with over.get("http://localhost/v1/host/directories") as answer:
            assert (answer.status, (await answer.json())["logDirs"]) == (200, [ONE, TWO])
        async with over.get("http://localhost/health/live") as answer:
            assert answer.status == 200
        token = {"authorization": "Bearer of-anybody"}
        url = f"http://127.0.0.1:{agent.port}/v1/host/directories"
        async with aiohttp.ClientSession() as session, session.get(url, headers=token) as answer:
            assert answer.status == 403
    assert not path.exists()
    await controller.stop()


def test_texts_of_answers_show_no_secret() -> None:
    canary = b"a canary secret"
    digest = hmac.digest(canary, b"", hashlib.sha256)
    for message in (
        ScramSecret(b"salt", 4096, canary, digest),
        TokenSecret("id", "User:al", 1, canary),
        ConfigSecret(canary.decode()),
    ):
        assert "canary" not in f"{message} {message!r}"
        assert repr(digest) not in repr(message)
