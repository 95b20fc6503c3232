"""The same requests to a real ZooKeeper and to our view of one: the answers are equal.

Compared are codes, names, data, children and what the stats count. Zxids differ by their nature, so
of these only the order is compared: which of two is larger, and which are equal.
"""

import random
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from kazoo import exceptions as zk
from kazoo.client import KazooClient
from kazoo.protocol.states import ZnodeStat as TheirStat

from coordination.connect import connect
from coordination.metastore.metastore import KafkaMetastore
from coordination.metastore.requests import (
    CheckRequest,
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MetastoreResponse,
    MultiRequest,
    Operation,
    Request,
    ResultCode,
    SetDataRequest,
    ZnodeStat,
)
from runtime.randomness import from_system
from tests.coordination.servers.tier import serving
from tests.coordination.servers.zookeeper import ZooKeeperServers

CODES = {
    zk.NoNodeError: ResultCode.NO_NODE,
    zk.NodeExistsError: ResultCode.NODE_EXISTS,
    zk.BadVersionError: ResultCode.BAD_VERSION,
    zk.NotEmptyError: ResultCode.NOT_EMPTY,
    zk.NoChildrenForEphemeralsError: ResultCode.NO_CHILDREN_FOR_EPHEMERALS,
    zk.RuntimeInconsistency: ResultCode.RUNTIME_INCONSISTENCY,
    zk.RolledBackError: ResultCode.RUNTIME_INCONSISTENCY,
}
NAMES = ["a", "b", "a/x", "a/y", "b/x", "a/x/deep", "c"]
REQUESTS = 3_000
Answer = tuple[Any, ...]


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KazooClient]:
    with serving(lambda: ZooKeeperServers(tmp_path_factory.mktemp("zookeeper"))) as servers:
        client = KazooClient(",".join(servers.endpoints))
        client.start()
        yield client
        client.stop()
        client.close()


@pytest.fixture
async def metastore() -> AsyncIterator[KafkaMetastore]:
    store = f"memory://beside-zookeeper-{from_system().getrandbits(48):x}"
    async with connect(store) as coordinator:
        opened = await KafkaMetastore.open(coordinator)
        yield opened
        await opened.close()


def drawn(dice: random.Random) -> Request:
    """Draw a request about one of few nodes, so that they meet."""
    if dice.random() < 0.2:
        return MultiRequest(tuple(drawn_operation(dice) for _ in range(dice.randint(1, 4))))
    if dice.random() < 0.35:
        path = f"/t/{dice.choice(NAMES)}"
        return dice.choice([ExistsRequest, GetDataRequest, GetChildrenRequest])(path)
    operation = drawn_operation(dice)
    while isinstance(operation, CheckRequest):
        operation = drawn_operation(dice)
    return operation


def drawn_operation(dice: random.Random) -> Operation:
    path = f"/t/{dice.choice(NAMES)}"
    version = dice.choice([-1, -1, 0, 1, 2])
    kind = dice.choice([CreateRequest, CreateRequest, SetDataRequest, DeleteRequest, CheckRequest])
    if kind is CreateRequest:
        return CreateRequest(path, dice.randbytes(3), dice.choice(list(CreateMode)))
    if kind is SetDataRequest:
        return SetDataRequest(path, dice.randbytes(3), version)
    return DeleteRequest(path, version) if kind is DeleteRequest else CheckRequest(path, version)


class Theirs:
    """Asks ZooKeeper."""

    def __init__(self, client: KazooClient) -> None:
        self._client = client
        self._session = client.client_id[0]

    def answer(self, request: Request) -> Answer:
        if isinstance(request, MultiRequest):
            results = self._multi(request)
            return ("multi", *results)
        asked: dict[type, Callable[[Any], Answer]] = {
            CreateRequest: self._create,
            SetDataRequest: lambda r: self._stat(self._client.set(r.path, r.data, r.version)),
            DeleteRequest: lambda r: self._none(self._client.delete(r.path, r.version)),
            ExistsRequest: self._exists,
            GetDataRequest: self._get,
            GetChildrenRequest: self._children,
        }
        try:
            return (ResultCode.OK, *asked[type(request)](request))
        except tuple(CODES) as error:
            return (CODES[type(error)],)

    def _create(self, r: CreateRequest) -> Answer:
        ephemeral, sequence = r.mode.value
        made, stat = self._client.create(
            r.path, r.data, ephemeral=ephemeral, sequence=sequence, include_data=True
        )
        return (made, *self._stat(stat))

    def _exists(self, r: ExistsRequest) -> Answer:
        stat = self._client.exists(r.path)
        if stat is None:
            raise zk.NoNodeError
        return self._stat(stat)

    def _get(self, r: GetDataRequest) -> Answer:
        data, stat = self._client.get(r.path)
        return (data, *self._stat(stat))

    def _children(self, r: GetChildrenRequest) -> Answer:
        children, stat = self._client.get_children(r.path, include_data=True)
        return (tuple(sorted(children)), *self._stat(stat))

    def _none(self, _: object) -> Answer:
        return ()

    def _multi(self, request: MultiRequest) -> Answer:
        transaction = self._client.transaction()
        for r in request.operations:
            if isinstance(r, CreateRequest):
                ephemeral, sequence = r.mode.value
                transaction.create(r.path, r.data, ephemeral=ephemeral, sequence=sequence)
            elif isinstance(r, SetDataRequest):
                transaction.set_data(r.path, r.data, r.version)
            elif isinstance(r, DeleteRequest):
                transaction.delete(r.path, r.version)
            else:
                transaction.check(r.path, r.version)
        return tuple(
            CODES[type(result)] if isinstance(result, Exception) else ResultCode.OK
            for result in transaction.commit()
        )

    def _stat(self, stat: TheirStat) -> Answer:
        owner = stat.ephemeralOwner == self._session
        zxids = ranks(stat.czxid, stat.mzxid, stat.pzxid)
        return (stat.version, stat.cversion, owner, stat.dataLength, stat.numChildren, zxids)


def ranks(*zxids: int) -> Answer:
    """Return the order of some zxids, whatever their values are."""
    return tuple(sorted(set(zxids)).index(zxid) for zxid in zxids)


def ours(request: Request, response: MetastoreResponse, session: str) -> Answer:
    if isinstance(request, MultiRequest):
        return ("multi", *(result.code for result in response.results))
    if response.code is not ResultCode.OK:
        return (response.code,)
    answer: Answer = (response.code,)
    if isinstance(request, CreateRequest):
        answer += (response.name,)
    elif isinstance(request, GetDataRequest):
        answer += (response.data,)
    elif isinstance(request, GetChildrenRequest):
        answer += (response.children,)
    return answer if response.stat is None else answer + _counts(response.stat, session)


def _counts(s: ZnodeStat, session: str) -> Answer:
    owner = s.ephemeral_owner == session
    zxids = ranks(s.czxid, s.mzxid, s.pzxid)
    return (s.version, s.cversion, owner, s.data_length, s.num_children, zxids)


@pytest.mark.parametrize("seed", range(3))
async def test_the_answers_are_zookeepers(
    zookeeper: KazooClient, metastore: KafkaMetastore, seed: int
) -> None:
    dice = random.Random(seed)
    if zookeeper.exists("/t"):
        zookeeper.delete("/t", recursive=True)
    zookeeper.create("/t")
    await metastore.handle_request(CreateRequest("/t", b""))
    theirs = Theirs(zookeeper)
    codes = set()
    for number in range(REQUESTS):
        request = drawn(dice)
        expected = theirs.answer(request)
        answer = ours(request, await metastore.handle_request(request), metastore.session_id)
        assert answer == expected, f"request {number} of seed {seed}: {request}"
        codes.add(answer[0])
    assert len(codes) > 5, "the requests meet too little"
