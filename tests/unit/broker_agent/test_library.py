"""The agent on a real event loop, disk and socket, beside a small stand-in for a controller."""

import asyncio
import json
import os
import signal
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
import structlog

from broker_agent.config import AgentConfig
from broker_agent.image_store import WrongFolderError
from broker_agent.library import AgentGoneError, BrokerAgent
from broker_agent.own_server import OwnServer
from broker_agent.process import AgentTls, run_broker
from broker_agent.states import BrokerState
from metadata.errors import ErrorCode
from metadata.messages.producer_ids import AllocateProducerIdsReply, AllocateProducerIdsRequest
from metadata.messages.wire import MSGPACK, decode, encode
from metadata.records import NoOpRecord
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys
from runtime.asyncio_clock import AsyncioClock, of_running_loop
from runtime.disk.interface import FolderInUseError
from runtime.http.client import HttpRequester
from runtime.http.requests import ANONYMOUS, Reply, Request, Unreachable
from runtime.sockets.tls import client_context, server_context
from tests.unit.broker_agent.fake_cluster import BROKER, CLUSTER_ID, Active, Asked, Controllers, Log
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.http.http_kit import authenticate, make_server, on_error

LOG = structlog.get_logger()


class Controller:
    """`Active` behind a real HTTP server."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.clock = AsyncioClock()
        self.waiting: list[Asked] = []
        self.on_ask = lambda asked: None
        self.log = Log()
        self.log.fill(3)
        self.active = Active(self.log, cast("Controllers", self))
        self.active.may_stop = True
        self.server = make_server(self.handle, tls=tls)
        self.server.start()
        self.active.url = f"{'https' if tls else 'http'}://127.0.0.1:{self.server.port}"

    def on_settled(self, asked: Asked, answer: object) -> None:
        """Nobody watches."""

    def handle(self, request: Request, reply) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            assert isinstance(answer, Reply)
            reply(answer)

        self.on_ask(Asked(self, self.active.url, request, answered))

    async def stop(self) -> None:
        await self.server.stop(0.0)


def config(controller: Controller, **more) -> AgentConfig:
    settings = {
        "cluster_id": CLUSTER_ID,
        "broker_id": BROKER,
        "controllers": (controller.active.url,),
        "session_ms": 3_000,
        "heartbeat_ms": 200,
        **more,
    }
    return AgentConfig(**settings)


def own_server(**more) -> OwnServer:
    return OwnServer("127.0.0.1", 0, authenticate, on_error, **more)


@pytest.fixture
async def controller():
    controller = Controller()
    yield controller
    await controller.stop()


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - what is waited for is another node's
            await asyncio.sleep(0.01)


async def get(url: str, path: str, tls=None, token=None) -> tuple[int, dict]:
    requester = HttpRequester(log=LOG, tls=tls, token=token)
    answered: asyncio.Future = asyncio.get_running_loop().create_future()
    requester.request(url, Request("GET", path), answered.set_result, 5.0)
    answer = await answered
    await requester.close()
    assert isinstance(answer, Reply), answer
    return answer.status, json.loads(answer.body)


async def test_it_comes_online_follows_and_leaves_in_a_controlled_way(controller, tmp_path: Path):
    seen: list[int] = []

    class Publisher:
        def on_metadata(self, before, after, manifest):
            seen.append(manifest.offset)

    agent = BrokerAgent(config(controller), data=tmp_path / "agent", publishers=(Publisher(),))
    async with agent:
        async with asyncio.timeout(10):
            await agent.wait_online()
        assert agent.core._clock is of_running_loop(), "its host's long work takes turns with it"
        assert agent.may_serve()
        assert agent.health().ready
        assert agent.image.offset == controller.log.end == seen[-1]
        controller.active.commit(NoOpRecord())
        await until(lambda: seen[-1] == controller.log.end)
    assert agent.ending is not None
    assert agent.ending.orderly
    assert agent.state is BrokerState.GONE
    assert controller.log.image.cluster.brokers[BROKER].fenced, "its leaders were moved first"
    assert [path.name[:20] for path in (tmp_path / "agent/checkpoints").iterdir()] == [
        f"{controller.log.end:020d}"
    ]


async def test_a_second_life_begins_with_the_image_on_disk(controller, tmp_path: Path):
    for _ in range(2):
        async with BrokerAgent(config(controller), data=tmp_path) as agent:
            await asyncio.wait_for(agent.wait_online(), 10)
            epoch = agent.core.broker_epoch
    assert epoch == controller.log.image.cluster.brokers[BROKER].broker_epoch
    assert agent.core.view.fetched_offset == controller.log.end


async def test_one_folder_is_for_one_agent_of_one_cluster(controller, tmp_path: Path):
    async with BrokerAgent(config(controller), data=tmp_path) as agent:
        await asyncio.wait_for(agent.wait_online(), 10)
        with pytest.raises(FolderInUseError):
            async with BrokerAgent(config(controller), data=tmp_path):
                pass
    with pytest.raises(WrongFolderError):
        async with BrokerAgent(config(controller, broker_id=8), data=tmp_path):
            pass


def test_a_configuration_that_cannot_be_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="controllers is empty"):
        BrokerAgent(
            AgentConfig(cluster_id="c", broker_id=1, controllers=()), data=tmp_path / "agent"
        )
    assert not (tmp_path / "agent").exists()


async def test_the_end_of_an_agent_takes_no_keys_from_who_gave_the_cluster_key(
    controller, tmp_path: Path
):
    key = ClusterKey(bytes(32))
    keys = key.subjects.keys = SubjectKeys.of_root(bytes(32))
    async with BrokerAgent(config(controller), data=tmp_path, cluster_key=key) as agent:
        await asyncio.wait_for(agent.wait_online(), 10)
    assert key.subjects.keys is keys


async def test_who_is_expelled_learns_it(controller, tmp_path: Path):
    async with BrokerAgent(config(controller), data=tmp_path) as agent:
        await asyncio.wait_for(agent.wait_online(), 10)
        controller.on_ask = lambda asked: asked.refuse(
            ErrorCode.STALE_BROKER_EPOCH, "another came", leader_epoch=1
        )
        controller.active.wake()
        ending = await asyncio.wait_for(agent.wait_gone(), 10)
        assert not ending.orderly
        assert "another came" in ending.reason
        assert not agent.may_serve()
        with pytest.raises(AgentGoneError, match="another came"):
            await agent.wait_online()


async def test_producer_ids_are_waited_for_and_come_once(controller, tmp_path: Path):
    blocks = iter(range(0, 100, 10))
    asked: list[AllocateProducerIdsRequest] = []
    fetched = controller.on_ask

    def on_ask(question: Asked) -> None:
        if question.request.path != "/v1/producer-ids":
            fetched(question)
            return
        asked.append(decode(AllocateProducerIdsRequest, question.request.body, MSGPACK))
        body = encode(AllocateProducerIdsReply(next(blocks), 10), MSGPACK)
        question.give(Reply(200, body, {"content-type": MSGPACK}))

    controller.on_ask = on_ask
    async with BrokerAgent(config(controller), data=tmp_path) as agent:
        async with asyncio.timeout(10):
            taken = await asyncio.gather(*(agent.next_producer_id() for _ in range(25)))
        assert sorted(taken) == list(range(25))
        assert asked[0] == AllocateProducerIdsRequest(BROKER, agent.core.broker_epoch)
        await agent.stop()
        with pytest.raises(AgentGoneError, match="stopped"):
            await asyncio.gather(*(agent.next_producer_id() for _ in range(50)))


@pytest.mark.slow
async def test_its_own_server_tells_the_truth_and_passes_requests_on(controller, tmp_path: Path):
    agent = BrokerAgent(
        config(controller), data=tmp_path, server=own_server(forward_anonymous=True)
    )
    controller.active.silent = True
    async with agent:
        url = f"http://127.0.0.1:{agent.port}"
        assert (await get(url, "/health/ready"))[0] == 503
        assert (await get(url, "/health/live"))[0] == 200
        controller.active.silent = False
        await asyncio.wait_for(agent.wait_online(), 10)
        assert (await get(url, "/health/ready"))[0] == 200
        status, metadata = await get(url, "/v1/metadata")
        assert status == 200
        assert [broker["brokerId"] for broker in metadata["brokers"]] == [BROKER]
        fetched = controller.on_ask
        passed_on: list[Request] = []

        def on_ask(asked: Asked) -> None:
            if asked.is_fetch:
                fetched(asked)
            else:
                passed_on.append(asked.request)
                asked.give(Reply(200, b'{"topics":[]}', {"content-type": "application/json"}))

        controller.on_ask = on_ask
        assert await get(url, "/v1/topics") == (200, {"topics": []})
        assert "x-logberg-on-behalf-of" not in passed_on[0].headers
        # A token is not judged here, and goes on as it came.
        shown: list[str | None] = []
        controller.server._callers._authenticate = lambda _uri, token, *_: (
            shown.append(token and token.text) or ANONYMOUS
        )
        await get(url, "/v1/topics", token="of-alice")
        assert "of-alice" in shown
        assert "x-logberg-on-behalf-of" not in passed_on[1].headers


async def test_a_port_that_is_taken_leaves_nothing_behind(controller, tmp_path: Path):
    taken = OwnServer("127.0.0.1", controller.server.port, authenticate, on_error)
    with pytest.raises(OSError, match="in use"):
        async with BrokerAgent(config(controller), data=tmp_path, server=taken):
            pass
    async with BrokerAgent(config(controller), data=tmp_path) as agent:
        await asyncio.wait_for(agent.wait_online(), 10)


# The process.


async def until_online(controller: Controller) -> None:
    def online() -> bool:
        broker = controller.log.image.cluster.brokers.get(BROKER)
        return broker is not None and not broker.fenced

    await until(online)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_begins_a_controlled_shutdown(controller, tmp_path: Path, capsys, number):
    running = asyncio.ensure_future(
        run_broker(config(controller), data=tmp_path, server=own_server(), log=LOG)
    )
    await until_online(controller)
    os.kill(os.getpid(), number)
    os.kill(os.getpid(), number)
    assert await asyncio.wait_for(running, 10) == 0
    assert controller.log.image.cluster.brokers[BROKER].fenced
    assert capsys.readouterr().err == ""


async def test_an_expelled_process_ends_with_1_and_its_reason(controller, tmp_path: Path, capsys):
    running = asyncio.ensure_future(
        run_broker(config(controller), data=tmp_path, server=own_server(), log=LOG)
    )
    await until_online(controller)
    controller.on_ask = lambda asked: asked.refuse(
        ErrorCode.STALE_BROKER_EPOCH, "another came", leader_epoch=1
    )
    controller.active.wake()
    assert await asyncio.wait_for(running, 10) == 1
    assert "another came" in capsys.readouterr().err


@pytest.mark.parametrize("uri", [f"broker://{CLUSTER_ID}/8", "quorum://another-cluster/1", None])
async def test_who_is_no_controller_of_its_cluster_gets_no_request(tmp_path: Path, uri):
    """The same authority signed it: a broker that took over an address, or another cluster."""
    authority = Authority(tmp_path / "ca")
    controller = Controller(tls=server_context(authority.issue(uri)))
    tls = client_context(authority.path)
    heard: list[Asked] = []
    controller.on_ask = heard.append
    agent = BrokerAgent(config(controller), data=tmp_path / "agent", tls=tls, token="t", log=LOG)
    async with agent:
        await until(lambda: "a controller of cluster" in str(agent.health().last_problem))
    assert heard == []
    await controller.stop()


def test_a_token_is_not_sent_in_clear(tmp_path: Path):
    plain = AgentConfig(cluster_id=CLUSTER_ID, broker_id=1, controllers=("http://127.0.0.1:1",))
    with pytest.raises(ValueError, match="token: the agent would send it over plain HTTP"):
        BrokerAgent(plain, data=tmp_path, token="t")


async def test_certificates_are_read_anew_at_a_signal(tmp_path: Path):
    authority = Authority(tmp_path / "ca")
    files = authority.issue("broker://c/7")
    controller = Controller(
        tls=server_context(authority.issue(f"quorum://{CLUSTER_ID}/1", "controller"))
    )
    reads: list[int] = []
    broken = False

    def read_tls() -> AgentTls:
        reads.append(1)
        if broken:
            raise OSError("no such file")
        return AgentTls(client_context(authority.path, files), server_context(files))

    running = asyncio.ensure_future(
        run_broker(
            config(controller),
            data=tmp_path / "agent",
            server=own_server(),
            read_tls=read_tls,
            log=LOG,
        )
    )
    await until_online(controller)
    os.kill(os.getpid(), signal.SIGHUP)
    await until(lambda: len(reads) == 2)
    broken = True
    os.kill(os.getpid(), signal.SIGHUP)
    await until(lambda: len(reads) == 3)
    assert not running.done(), "a bad certificate does not end it"
    os.kill(os.getpid(), signal.SIGTERM)
    assert await asyncio.wait_for(running, 10) == 0
    await controller.stop()
