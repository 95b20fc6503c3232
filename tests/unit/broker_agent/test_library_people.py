"""An agent inside a program gets the keys, and judges people by their pseudonyms from then on."""

import asyncio
import json
from pathlib import Path

import pytest

from broker_agent.library import BrokerAgent
from broker_agent.people import AgentPeople
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import SubjectKeysReply
from metadata.messages.wire import MSGPACK, encode
from metadata.sealed_places import tree_place
from runtime.http.requests import Reply, Request, whole
from tests.unit.broker_agent.fake_cluster import Asked, partition, topic
from tests.unit.broker_agent.test_library import Controller, config, own_server, until
from tests.unit.broker_agent.tied_names import (
    ALICE,
    CAROLS,
    P_ALICE,
    TREE,
    describing,
    erased,
    key_with,
    keys_named,
    tied,
)


@pytest.fixture
async def controller():
    """A controller that gives out the keys when the test says so.

    The log denies topic-2 to the pseudonym of alice.
    """
    controller = Controller()
    for number in (1, 2):
        controller.log.append(topic(number), partition(number, 0, (7, 8), 7))
    controller.log.append(*keys_named(), tied(), tied(CAROLS, "carol"))
    controller.log.append(
        describing("User:*", "topic-1", allow=True, number=1),
        describing("User:*", "topic-2", allow=True, number=2),
        describing(P_ALICE, "topic-2", allow=False, number=3),
    )
    fetched = controller.on_ask

    def on_ask(asked: Asked) -> None:
        if asked.request.path == "/v1/subject-keys":
            controller.waiting.append(asked)
        else:
            fetched(asked)

    controller.on_ask = on_ask
    yield controller
    await controller.stop()


def give_keys(controller: Controller) -> None:
    """Answer who waits for the keys."""
    sealed = key_with().seal(tree_place(TREE.id.hex()), TREE.encode(), bytes(16))
    body = encode(SubjectKeysReply(TREE.id.hex(), sealed.block), MSGPACK)
    (asked,) = controller.waiting
    asked.give(Reply(200, body, {"content-type": MSGPACK}))


def judged(agent: BrokerAgent) -> str | ErrorCode:
    try:
        return agent.people.principal_of(ALICE)
    except LogbergError as error:
        return error.code


def in_memory(people: AgentPeople) -> list[str]:
    return sorted(people._people._names.values())


def names(agent: BrokerAgent) -> list[str]:
    replies: list[Reply] = []
    agent.handle(Request("GET", "/v1/metadata", caller=ALICE), replies.append)
    (reply,) = replies
    return [each["name"] for each in json.loads(whole(reply).body).get("topics", [])]


async def test_with_the_cluster_key_people_are_judged_until_they_are_erased(
    controller: Controller, tmp_path: Path
):
    settings = config(controller, authorization="on")
    agent = BrokerAgent(settings, data=tmp_path, server=own_server(), cluster_key=key_with(None))
    async with agent:
        await asyncio.wait_for(agent.wait_online(), 10)
        await until(lambda: len(controller.waiting) == 1)
        assert judged(agent) is ErrorCode.THROTTLED
        give_keys(controller)
        people = agent.people
        # The agent opens names, and forgets them, before anybody asks.
        await until(lambda: in_memory(people) == ["alice", "carol"])
        assert judged(agent) == P_ALICE
        assert names(agent) == ["topic-1"]
        controller.active.commit(erased())
        await until(lambda: in_memory(people) == ["carol"])
        assert judged(agent) == "User:alice"
        assert names(agent) == ["topic-1", "topic-2"]
    assert in_memory(people) == []


async def test_without_the_cluster_key_people_are_refused(controller: Controller, tmp_path: Path):
    settings = config(controller, authorization="on")
    async with BrokerAgent(settings, data=tmp_path, server=own_server()) as agent:
        await asyncio.wait_for(agent.wait_online(), 10)
        assert judged(agent) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert names(agent) == []
