"""Coordination on real controllers: sessions, elections, keys and watches, through a failover."""

import asyncio
import signal
import time
from collections.abc import Iterator
from typing import Any

import pytest

from coordination.backend import Auth
from coordination.connect import Connecting, connect
from coordination.errors import (
    AuthFailed,
    Fenced,
    InvalidKey,
    KeyExists,
    MemberExists,
    TxnTooLarge,
)
from runtime.asyncio_clock import AsyncioClock
from tests.process.running_cluster import RunningCluster, running

pytestmark = pytest.mark.process


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    with running(tmp_path_factory.mktemp("coordination")) as started:
        yield started


def client(cluster: RunningCluster, **settings: Any) -> Connecting:
    hosts = ",".join(cluster.url(n).removeprefix("https://") for n in cluster.local.controllers)
    auth = settings.pop("auth", Auth(token=cluster.token))
    return connect(f"quorum+https://{hosts}", ssl=cluster.context(), auth=auth, **settings)


async def test_members_leaders_locks_and_keys(cluster: RunningCluster) -> None:
    async with client(cluster, ttl=5.0) as a, client(cluster, ttl=5.0) as b:
        assert a.session.ttl == 5.0
        joined = await a.group("g/ü").join("m", b"data")
        assert (await b.group("g/ü").membership())["m"].token == joined.token
        with pytest.raises(MemberExists) as refused:
            await b.group("g/ü").join("m")
        assert refused.value.member.data == b"data"
        term = await a.election("s").nominate("A", b"1")
        assert await b.election("s").nominate("B") is None
        first = await a.storage.put("k", b"1", fence=term)
        with pytest.raises(KeyExists) as exists:
            await b.storage.put("k", b"2")
        assert exists.value.record.mod_revision == first
        assert await a.election("s").resign("A")
        successor = await b.election("s").nominate("B")
        assert successor.token > term.token
        with pytest.raises(Fenced) as fenced:
            await b.storage.upsert("k", b"3", fence=term.token, resource=term_resource(a))
        assert fenced.value.current_token == successor.token
        moved = a.storage.txn().check("k", first).put("k2", b"x").delete("k")
        assert await moved.commit() > first
        assert [r.key async for r in b.storage.list()] == ["k2"]
        async with a.lock("l")() as grant:
            assert await b.lock("l").try_acquire() is None
            assert grant.token > successor.token
        async with b.lock("l")(timeout=5.0):
            pass
        assert await a.storage.delete("k2")


def term_resource(coordinator: Any) -> Any:
    return coordinator.election("s").resource


async def test_a_watch_sees_every_change_through_a_killed_leader(cluster: RunningCluster) -> None:
    async with client(cluster, ttl=10.0) as a, client(cluster, ttl=10.0) as b:
        id_ = a.session.id
        async with b.storage.watch_prefix("w") as events:
            leader = cluster.leader()
            for n in range(30):
                if n == 10:
                    await asyncio.to_thread(cluster.controller(leader).signal, signal.SIGKILL)
                await written(a, f"w/{n}")
            seen = [await asyncio.wait_for(anext(events), 20.0) for _ in range(30)]
        assert [event.key for event in seen] == [f"w/{n}" for n in range(30)]
        assert not any(event.coalesced for event in seen)
        assert a.session.id == id_
        a.session.check()
    cluster.controller(leader).start()
    await asyncio.to_thread(cluster.until, cluster.settled, "the cluster is whole again")


async def written(coordinator: Any, key: str) -> None:
    """Write a key, and say so only once."""
    await coordinator.storage.upsert(key, b"v", request_id=key)


async def test_the_next_candidate_leads_once_a_killed_leaders_session_is_over(
    cluster: RunningCluster,
) -> None:
    a = await client(cluster, ttl=2.0)
    async with client(cluster, ttl=2.0) as b:
        killed = await a.election("h").nominate("A")
        winning = asyncio.create_task(b.election("h").acquire("B"))
        await asyncio.sleep(1.0)
        assert not winning.done()
        a.session._beats.cancel()
        await a.backend.aclose()
        term = await asyncio.wait_for(winning, 20.0)
        assert not killed.held, "the killed leader knew its end before"
        assert term.token > killed.token
        waiting = asyncio.create_task(b.election("h").acquire("C"))
        await asyncio.sleep(0.3)
        await term.resign()
        assert (await asyncio.wait_for(waiting, 10.0)).token > term.token
    await a.aclose()


async def test_a_wrong_token_is_refused_at_once(cluster: RunningCluster) -> None:
    with pytest.raises(AuthFailed):
        await client(cluster, auth=Auth(token="lbt-nonsense"))


class WrongClock(AsyncioClock):
    """A clock whose date is wrong by so many hours."""

    def __init__(self, hours: int) -> None:
        super().__init__(asyncio.get_running_loop())
        self._off_ms = hours * 3_600_000

    def wall_ms(self) -> int:
        return super().wall_ms() + self._off_ms


@pytest.mark.parametrize("hours", [-100, 100])
async def test_a_client_whose_date_is_wrong_writes_all_the_same(
    cluster: RunningCluster, hours: int
) -> None:
    async with client(cluster, ttl=5.0, clock=WrongClock(hours)) as a:
        first = await a.storage.upsert("date", b"1", request_id="mine")
        assert await a.storage.upsert("date", b"1", request_id="mine") == first
        assert await a.storage.update("date", b"2", expect=first) > first


async def test_bad_keys_and_values_are_refused_and_disturb_no_watch(
    cluster: RunningCluster,
) -> None:
    async with client(cluster, ttl=5.0) as a:
        with pytest.raises(InvalidKey):
            await a.storage.put("\x01", b"")
        large = a.storage.txn()
        for number in range(80):
            large.put(f"large/{number}", bytes(60_000))
        with pytest.raises(TxnTooLarge):
            await large.commit()
        async with a.storage.watch("good") as good, a.storage.watch("\x01") as bad:
            with pytest.raises(InvalidKey):
                await asyncio.wait_for(anext(bad), 10.0)
            assert (await asyncio.wait_for(anext(good), 10.0)).kind == "snapshot"
            await a.storage.upsert("good", b"1")
            assert (await asyncio.wait_for(anext(good), 10.0)).record.value == b"1"


async def test_with_a_heartbeat_thread_a_loop_that_is_held_keeps_its_session(
    cluster: RunningCluster,
) -> None:
    async with client(cluster, ttl=1.0, heartbeat_thread=True) as a:
        async with a.lock("busy")() as grant:
            time.sleep(4.0)  # noqa: ASYNC251 - the loop is held
            await a.storage.upsert("busy", b"", fence=grant)
        async with a.storage.watch("busy") as events:
            assert (await asyncio.wait_for(anext(events), 10.0)).record.value == b""
