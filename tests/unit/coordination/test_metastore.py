"""ZooKeeper's requests on a store of ours: handlers, sessions and what several clients do.

What each request answers is compared with a real ZooKeeper in tests/coordination/metastore.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from coordination.connect import connect
from coordination.metastore.metastore import KafkaMetastore
from coordination.metastore.requests import (
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    ResultCode,
    SetDataRequest,
)
from runtime.randomness import from_system

Open = Callable[[], Awaitable[KafkaMetastore]]
LIMIT_S = 10.0


@pytest.fixture
async def open_one() -> AsyncIterator[Open]:
    """Opens clients of one store of this test's own."""
    store = f"memory://metastore-{from_system().getrandbits(48):x}"
    made = []

    async def open_metastore() -> KafkaMetastore:
        coordinator = await connect(store, ttl=2.0)
        metastore = await KafkaMetastore.open(coordinator)
        made.append((metastore, coordinator))
        return metastore

    yield open_metastore
    for metastore, coordinator in made:
        await metastore.close()
        await coordinator.aclose()


class Told:
    """A handler of all kinds that notes what it is told."""

    def __init__(self, path: str) -> None:
        self.path = self.name = path
        self.heard: asyncio.Queue[str] = asyncio.Queue()

    def handle_creation(self) -> None:
        self.heard.put_nowait("creation")

    def handle_deletion(self) -> None:
        self.heard.put_nowait("deletion")

    def handle_data_change(self) -> None:
        self.heard.put_nowait("data")

    def handle_child_change(self) -> None:
        self.heard.put_nowait("children")

    def before_initializing_session(self) -> None:
        self.heard.put_nowait("before")

    def after_initializing_session(self) -> None:
        self.heard.put_nowait("after")

    async def next(self) -> str:
        return await asyncio.wait_for(self.heard.get(), LIMIT_S)


async def test_a_handler_is_told_once_and_again_after_the_next_read(open_one: Open) -> None:
    watcher, writer = await open_one(), await open_one()
    told = Told("/a")
    watcher.register_znode_change_handler(told)
    assert (await watcher.handle_request(ExistsRequest("/a"))).code is ResultCode.NO_NODE
    await writer.handle_request(CreateRequest("/a", b"1"))
    assert await told.next() == "creation"
    await writer.handle_request(SetDataRequest("/a", b"2"))
    assert (await watcher.handle_request(GetDataRequest("/a"))).data == b"2"
    await writer.handle_request(SetDataRequest("/a", b"3"))
    assert await told.next() == "data"
    assert (await watcher.handle_request(ExistsRequest("/a"))).code is ResultCode.OK
    await writer.handle_request(DeleteRequest("/a"))
    assert await told.next() == "deletion"
    assert told.heard.empty()


async def test_data_of_a_missing_node_and_a_path_without_handler_are_not_watched(
    open_one: Open,
) -> None:
    metastore = await open_one()
    told = Told("/a")
    metastore.register_znode_change_handler(told)
    await metastore.handle_request(GetDataRequest("/a"))
    await metastore.handle_request(CreateRequest("/a", b""))
    metastore.unregister_znode_change_handler("/a")
    await metastore.handle_request(ExistsRequest("/a"))
    await metastore.handle_request(SetDataRequest("/a", b"x"))
    await asyncio.sleep(0.1)
    assert told.heard.empty()


async def test_children_are_watched_by_a_list_that_asks_for_it(open_one: Open) -> None:
    metastore = await open_one()
    told = Told("/")
    metastore.register_znode_child_change_handler(told)
    await metastore.handle_request(GetChildrenRequest("/", register_watch=False))
    await metastore.handle_request(CreateRequest("/a", b""))
    listed = await metastore.handle_request(GetChildrenRequest("/"))
    assert listed.children == ("a",)
    await metastore.handle_request(SetDataRequest("/a", b"no child of the root changes"))
    await metastore.handle_request(CreateRequest("/b", b""))
    assert await told.next() == "children"
    assert told.heard.empty()


async def test_ephemeral_nodes_go_with_their_session_and_others_see_it(open_one: Open) -> None:
    owner, other = await open_one(), await open_one()
    made = await owner.handle_request(CreateRequest("/id", b"", CreateMode.EPHEMERAL))
    assert made.stat is not None
    assert made.stat.ephemeral_owner == owner.session_id
    told, states = Told("/id"), Told("owner")
    other.register_znode_change_handler(told)
    owner.register_state_change_handler(states)
    await other.handle_request(ExistsRequest("/id"))
    before = owner.session_id
    await owner._coordinator.backend.end_session(before)
    assert await told.next() == "deletion"
    assert [await states.next(), await states.next()] == ["before", "after"]
    await owner.wait_until_connected()
    assert owner.session_id != before
    again = await owner.handle_request(CreateRequest("/id", b"", CreateMode.EPHEMERAL))
    assert again.code is ResultCode.OK


async def test_many_requests_are_answered_in_their_order(open_one: Open) -> None:
    first, second = await open_one(), await open_one()
    await first.handle_request(CreateRequest("/q", b""))
    mode = CreateMode.PERSISTENT_SEQUENTIAL
    requests = [CreateRequest("/q/n-", b"", mode, ctx=n) for n in range(20)]
    ours, theirs = await asyncio.gather(
        first.handle_requests(requests), second.handle_requests(requests)
    )
    for responses in (ours, theirs):
        assert [response.ctx for response in responses] == list(range(20))
        names = [response.name for response in responses]
        assert names == sorted(names)
    assert {r.name for r in ours} | {r.name for r in theirs} == {
        f"/q/n-{n:010d}" for n in range(40)
    }


async def test_a_session_that_is_over_is_said_so(open_one: Open) -> None:
    metastore = await open_one()
    await metastore._coordinator.backend.end_session(metastore.session_id)
    metastore._tasks[0].cancel()
    await metastore._coordinator.session.wait_lost()
    response = await metastore.handle_request(CreateRequest("/a", b""))
    assert response.code is ResultCode.SESSION_EXPIRED
