"""An agent's Kafka listener on a real socket, beside a small stand-in for a controller."""

import asyncio
import hashlib
import ssl
import urllib.request
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

from broker_agent.config import Endpoint
from broker_agent.library import BrokerAgent
from broker_agent.own_server import OwnServer
from logberg.local.ports import free_port_base
from logberg.processes.agent_door import agent_door
from logberg.processes.principals import Principals, error_answer
from logberg.processes.settings.controller_settings import Token
from logberg.processes.settings.kafka_settings import AgentKafkaSettings
from metadata.messages import CreatedTopic, CreateTopicsReply
from metadata.messages.wire import MSGPACK, encode
from runtime.http.requests import Caller, Reply
from runtime.sockets.tls import TlsFiles, client_context, server_context
from tests.kafka_wire import VERSIONS, RawKafkaClient
from tests.unit.broker_agent.fake_cluster import BROKER, CLUSTER_ID, Asked
from tests.unit.broker_agent.test_library import LOG, Controller, config
from tests.unit.runtime.certificates import Authority

CREATE_TOPICS, METADATA, CONFIGS = 19, 3, 32
T = TypeVar("T")


class Agent:
    """An agent whose controller answers what the test says."""

    def __init__(self, controller: Controller, port: int, client_tls: ssl.SSLContext | None):
        self.controller = controller
        self.port = port
        self.http_port = 0
        self.client_tls = client_tls
        self.asked: list[Asked] = []
        self.answers: Callable[[Asked], Reply] = lambda _asked: Reply(200)
        fetched = controller.on_ask

        def on_ask(asked: Asked) -> None:
            if asked.is_fetch:
                fetched(asked)
            else:
                self.asked.append(asked)
                asked.give(self.answers(asked))

        controller.on_ask = on_ask

    async def client(self, use: Callable[[RawKafkaClient], T]) -> T:
        """Let a client use the agent, on a thread of its own."""

        def run() -> T:
            client = RawKafkaClient(self.port, self.client_tls)
            try:
                return use(client)
            finally:
                client.close()

        return await asyncio.to_thread(run)


@asynccontextmanager
async def agent(tmp_path: Path, *, tls: bool = False, **kafka: Any) -> AsyncIterator[Agent]:
    """An online agent that listens for Kafka's clients."""
    port = free_port_base() + 391
    authenticate = Principals(CLUSTER_ID).authenticate
    settings = AgentKafkaSettings(listen=f"127.0.0.1:{port}", **kafka)
    server = OwnServer(
        "127.0.0.1",
        0,
        authenticate,
        error_answer,
        forward_anonymous=not tls,
        beside=agent_door(settings, ("127.0.0.1", port), authenticate, insecure_network=False),
    )
    of_agent: ssl.SSLContext | None = None
    of_client: ssl.SSLContext | None = None
    of_controller: ssl.SSLContext | None = None
    if tls:
        authority = Authority(tmp_path / "ca")
        files: TlsFiles = authority.issue(f"broker://{CLUSTER_ID}/{BROKER}", "agent")
        of_agent = client_context(authority.path, files)
        of_client = client_context(authority.path)
        server = server._replace(tls=server_context(files))
        of_controller = server_context(authority.issue(f"quorum://{CLUSTER_ID}/1", "controller"))
    controller = Controller(tls=of_controller)
    found = Agent(controller, port, of_client)
    endpoint = Endpoint("CLIENTS", "127.0.0.1", port)
    try:
        async with BrokerAgent(
            config(controller, endpoints=(endpoint,)),
            data=tmp_path / "agent",
            tls=of_agent,
            server=server,
            log=LOG,
        ) as running:
            await asyncio.wait_for(running.wait_online(), 10)
            found.http_port = running.port
            yield found
    finally:
        await controller.stop()


def created(_asked: Asked) -> Reply:
    topic = CreatedTopic(name="orders", topic_id=None, num_partitions=1, replication_factor=1)
    return Reply(200, encode(CreateTopicsReply((topic,)), MSGPACK), {"content-type": MSGPACK})


NEW = {
    "Name": "orders",
    "NumPartitions": 1,
    "ReplicationFactor": 1,
    "Assignments": [],
    "Configs": [],
}


def create(client: RawKafkaClient) -> dict[str, Any]:
    return client.ask(CREATE_TOPICS, 4, Topics=[NEW], timeoutMs=5_000, validateOnly=False)


async def test_clients_are_answered_and_their_changes_reach_a_controller(tmp_path) -> None:
    async with agent(tmp_path, configs={"log.retention.hours": "5"}) as found:
        found.answers = created

        def use(client: RawKafkaClient) -> tuple[dict, dict, dict, dict]:
            versions = client.ask(VERSIONS, 3, ClientSoftwareName="raw", ClientSoftwareVersion="1")
            metadata = client.ask(METADATA, 9, Topics=None, AllowAutoTopicCreation=False)
            broker = {"ResourceType": 4, "ResourceName": str(BROKER), "ConfigurationKeys": None}
            configs = client.ask(CONFIGS, 4, Resources=[broker])
            return versions, metadata, configs, create(client)

        versions, metadata, configs, made = await found.client(use)
        served = {each["ApiKey"] for each in versions["ApiKeys"]}
        assert {3, 10, 19, 20, 32, 55, 60, 64, 74, 75} <= served
        assert not {1, 58, 62, 63} & served, "what brokers ask controllers is not served here"
        assert metadata["ClusterId"] == CLUSTER_ID
        values = {each["Name"]: each["Value"] for each in configs["Results"][0]["Configs"]}
        assert values["log.retention.hours"] == "5"
        assert made["Topics"][0]["ErrorCode"] == 0
        (asked,) = found.asked
        assert (asked.request.method, asked.request.path) == ("POST", "/v1/topics")
        assert asked.request.headers["x-logberg-client-id"] == "a-raw-client"
        status, metrics = await metrics_of(found)
        assert status == 200
        assert 'logberg_kafka_requests_total{request="CreateTopics"} 1' in metrics
        assert 'logberg_connections{door="kafka"} 0' in metrics


async def metrics_of(found: Agent) -> tuple[int, str]:
    def read() -> tuple[int, str]:
        with urllib.request.urlopen(f"http://127.0.0.1:{found.http_port}/metrics") as answer:
            return answer.status, answer.read().decode()

    return await asyncio.to_thread(read)


async def test_with_tls_a_client_logs_in_with_a_token_of_the_controllers(tmp_path) -> None:
    async with agent(tmp_path, tls=True, sasl_mechanisms=("PLAIN",)) as found:

        def answers(asked: Asked) -> Reply:
            return created(asked) if asked.request.method == "POST" else Reply(200)

        found.answers = answers
        alice = Token("User:alice", hashlib.sha256(b"of-alice").hexdigest())
        known = Principals(CLUSTER_ID, (alice,)).authenticate
        found.controller.server._callers._authenticate = known
        with pytest.raises((EOFError, ConnectionError)):
            await found.client(create)
        assert await found.client(lambda client: client.log_in("alice", "wrong")) == 58
        assert found.asked == []

        def use(client: RawKafkaClient) -> tuple[int, dict]:
            return client.log_in("alice", "of-alice"), create(client)

        code, made = await found.client(use)
        assert (code, made["Topics"][0]["ErrorCode"]) == (0, 0)
        assert [asked.request.path for asked in found.asked] == ["/v1/caller", "/v1/topics"]
        for asked in found.asked:
            known = Caller("User:alice", "token", "127.0.0.1", carried_by="Broker:7")
            assert asked.request.caller == known
            assert asked.request.headers["x-logberg-client-address"] == "127.0.0.1"
            assert "x-logberg-on-behalf-of" not in asked.request.headers
