"""The backend on a real etcd, through the seam: what the client core relies on."""

import asyncio
from contextlib import asynccontextmanager

import pytest

from coordination.backend import (
    Auth,
    Check,
    Claim,
    Commit,
    EntryExists,
    Fence,
    KeyScope,
    Operation,
    PrefixScope,
    Resource,
)
from coordination.errors import (
    AuthFailed,
    ConfigError,
    Fenced,
    KeyExists,
    KeyMissing,
    NotHeld,
    OutcomeUnknown,
    RevisionMismatch,
    SessionLost,
    TxnTooLarge,
    Unavailable,
)
from coordination.testing.proxy import Address, LinkState, ProxiedLink
from tests.coordination.etcd.conftest import client_of

pytestmark = [pytest.mark.process, pytest.mark.slow]

LOCK = Resource("lock", "a/b")


@pytest.fixture
async def etcd(one_server, request):
    async with client_of(*one_server.endpoints, path=request.node.name) as backend:
        yield backend


@asynccontextmanager
async def linked(servers, path):
    """A client behind proxies, and the link that cuts it off."""
    link = await ProxiedLink.open([Address("127.0.0.1", port) for port in servers.ports])
    try:
        async with client_of(*map(str, link.addresses), path=path) as backend:
            yield backend, link
    finally:
        await link.aclose()


def put(key, data=b"v", **how):
    return Commit((Operation("put", key, data),), **how)


def upsert(key, data=b"v", **how):
    return Commit((Operation("upsert", key, data),), **how)


async def batches(watch, kinds=("snapshot", "changes", "resync")):
    async for batch in watch:
        if batch.kind in kinds:
            yield batch


class TestSessions:
    async def test_a_session_lives_while_it_is_renewed_and_ends_by_itself(self, etcd):
        session = await etcd.open_session(1.0)
        assert session.ttl_s == 2.0, "the granted ttl, not the asked one"
        await etcd.enter(Claim(LOCK, "me", b"", session.id))
        for _ in range(6):
            await asyncio.sleep(0.5)
            assert await etcd.renew(session.id) == 2.0
        assert (await etcd.entries(LOCK)).entries
        await asyncio.sleep(4.5)
        assert not (await etcd.entries(LOCK)).entries
        with pytest.raises(SessionLost):
            await etcd.renew(session.id)

    async def test_an_ended_session_leaves_nothing(self, etcd):
        first = await etcd.open_session(10.0)
        await etcd.enter(Claim(LOCK, "me", b"", first.id))
        await etcd.commit(upsert("k", session=first.id))
        await etcd.end_session(first.id)
        await etcd.end_session(first.id)
        assert not (await etcd.entries(LOCK)).entries
        assert (await etcd.get("k")).session is None, "storage stays"
        second = await etcd.open_session(10.0)
        assert second.epoch > first.epoch
        assert second.id != first.id
        for refused in (
            etcd.enter(Claim(LOCK, "me", b"", first.id)),
            etcd.commit(upsert("k", session=first.id)),
            etcd.renew("no session"),
        ):
            with pytest.raises(SessionLost):
                await refused


class TestResources:
    async def test_a_queue_in_order_of_entry(self, etcd):
        sessions = [(await etcd.open_session(10.0)).id for _ in range(3)]
        entered = [
            await etcd.enter(Claim(LOCK, f"id/{n}", b"%d" % n, session))
            for n, session in enumerate(sessions)
        ]
        assert [entry.granted for entry in entered] == [True, False, False]
        queue = (await etcd.entries(LOCK)).entries
        assert [(entry.id, entry.data) for entry in queue] == [
            ("id/0", b"0"),
            ("id/1", b"1"),
            ("id/2", b"2"),
        ]
        again = await etcd.enter(Claim(LOCK, "id/0", b"new", sessions[0]))
        assert again.token == entered[0].token
        assert again.revision > entered[0].revision
        with pytest.raises(EntryExists) as error:
            await etcd.enter(Claim(LOCK, "id/0", b"", sessions[1]))
        assert error.value.entry.session == sessions[0]
        with pytest.raises(NotHeld):
            await etcd.change(LOCK, "id/0", sessions[1], b"")
        assert not await etcd.leave(LOCK, "id/0", sessions[1], None)
        assert not await etcd.leave(LOCK, "id/0", sessions[0], entered[1].token)
        assert await etcd.leave(LOCK, "id/0", sessions[0], entered[0].token)
        left = (await etcd.entries(LOCK)).entries
        assert [entry.granted for entry in left] == [True, False]
        assert left[0].token > entered[0].token

    async def test_shared_holders_until_an_exclusive_one(self, etcd):
        session = (await etcd.open_session(10.0)).id
        for id_, shared in (("a", True), ("b", True), ("c", False), ("d", True)):
            await etcd.enter(Claim(LOCK, id_, b"", session, shared=shared))
        granted = [entry.id for entry in (await etcd.entries(LOCK)).entries if entry.granted]
        assert granted == ["a", "b"]
        assert await etcd.break_grant(LOCK)
        granted = [entry.id for entry in (await etcd.entries(LOCK)).entries if entry.granted]
        assert granted == ["c"]

    async def test_names_that_begin_alike_are_apart(self, etcd):
        session = (await etcd.open_session(10.0)).id
        for name in ("a", "ab", "a/b", "a%2Fb"):
            await etcd.enter(Claim(Resource("group", name), name, b"", session))
        for name in ("a", "ab", "a/b", "a%2Fb"):
            found = (await etcd.entries(Resource("group", name))).entries
            assert [entry.id for entry in found] == [name]


class TestStorage:
    async def test_put_update_and_delete(self, etcd):
        made = await etcd.commit(put("k", b"1"))
        record = await etcd.get("k")
        assert (record.value, record.version) == (b"1", 1)
        assert record.create_revision == record.mod_revision == made.revision
        with pytest.raises(KeyExists) as error:
            await etcd.commit(put("k", b"2"))
        assert error.value.record == record
        with pytest.raises(KeyMissing):
            await etcd.commit(Commit((Operation("update", "none", b""),)))
        with pytest.raises(RevisionMismatch) as mismatch:
            await etcd.commit(Commit((Operation("update", "k", b"", made.revision - 1),)))
        assert mismatch.value.current == made.revision
        deleted = Commit((Operation("delete", "k"), Operation("delete", "none")))
        assert (await etcd.commit(deleted)).applied == (True, False)
        assert await etcd.get("k") is None

    async def test_a_refused_transaction_changes_nothing_and_names_the_step(self, etcd):
        await etcd.commit(put("there"))
        steps = (Operation("upsert", "x", b""), Operation("put", "there", b""))
        with pytest.raises(KeyExists) as error:
            await etcd.commit(Commit(steps, checks=(Check("none", None),)))
        assert error.value.index == 2
        with pytest.raises(RevisionMismatch) as mismatch:
            await etcd.commit(Commit(steps, checks=(Check("there", None),)))
        assert mismatch.value.index == 0
        assert await etcd.get("x") is None

    async def test_as_many_steps_as_are_declared(self, etcd):
        most = etcd.capabilities.max_txn_operations
        session = (await etcd.open_session(10.0)).id
        steps = tuple(Operation("upsert", f"k{n}", b"") for n in range(most))
        await etcd.commit(Commit(steps, session=session))
        with pytest.raises(TxnTooLarge):
            await etcd.commit(
                Commit((*steps, Operation("upsert", "one more", b"")), session=session)
            )

    async def test_as_many_bytes_as_are_declared(self, etcd):
        value = bytes(etcd.capabilities.max_value_bytes)
        await etcd.commit(put("k" * 1024, value))
        assert (await etcd.get("k" * 1024)).value == value

    async def test_pages_show_one_revision(self, etcd):
        keys = sorted((f"p/{n}é😀" for n in range(10)), key=str.encode)
        for key in keys:
            await etcd.commit(put(key))
        await etcd.commit(put("q"))
        pages = []
        async for page in etcd.pages("p/", keys_only=True, page=3):
            pages.append(page)
            await etcd.commit(upsert("p/later"))
        assert [len(page.records) for page in pages] == [3, 3, 3, 1]
        assert len({page.revision for page in pages}) == 1
        assert [record.key for page in pages for record in page.records] == keys
        assert [page.records async for page in etcd.pages("no", keys_only=False, page=5)] == [()]

    async def test_a_fence_holds_while_its_grant_does(self, etcd):
        session = (await etcd.open_session(10.0)).id
        first = await etcd.enter(Claim(LOCK, "1", b"", session))
        second = await etcd.enter(Claim(LOCK, "2", b"", session))
        guarded = upsert("k", fences=(Fence(LOCK, first.token),))
        await etcd.commit(guarded)
        with pytest.raises(Fenced):
            await etcd.commit(upsert("k", fences=(Fence(LOCK, second.token),)))
        await etcd.leave(LOCK, "1", session, None)
        for _ in range(2):
            with pytest.raises(Fenced) as error:
                await etcd.commit(guarded)
            assert error.value.current_token == second.token
        await etcd.commit(upsert("k", fences=(Fence(LOCK, second.token),)))


class TestLostReplies:
    async def test_a_change_is_found_out(self, one_server, request):
        async with linked(one_server, request.node.name) as (etcd, link):
            session = (await etcd.open_session(10.0)).id
            await etcd.commit(put("gone"))

            async def lose_then_heal():
                link.put(LinkState.LOSING_REPLIES)
                await asyncio.sleep(0.3)
                link.put(LinkState.OPEN)

            async def lost(call):
                return (await asyncio.gather(call, lose_then_heal()))[0]

            entry = await lost(etcd.enter(Claim(LOCK, "me", b"", session)))
            assert entry.granted
            made = await lost(etcd.commit(put("k", b"v", session=session)))
            record = await etcd.get("k")
            assert (record.mod_revision, record.version) == (made.revision, 1)
            named = Commit(
                (Operation("delete", "gone"), Operation("delete", "none")), request_id="r/1"
            )
            made = await lost(etcd.commit(named))
            assert made.applied == (True, False)
            assert await etcd.commit(named) == made
            opened = await lost(etcd.open_session(10.0))
            await lost(etcd.end_session(opened.id))
            assert await lost(etcd.leave(LOCK, "me", session, entry.token))

    async def test_what_cannot_be_found_out_is_unknown(self, one_server, request):
        async with linked(one_server, request.node.name) as (etcd, link):
            session = (await etcd.open_session(30.0)).id
            link.put(LinkState.LOSING_REPLIES)
            with pytest.raises(OutcomeUnknown):
                await etcd.commit(put("k", session=session))
            with pytest.raises(Unavailable):
                await etcd.get("k")
            link.put(LinkState.REFUSED)
            with pytest.raises((Unavailable, OutcomeUnknown)):
                await etcd.commit(upsert("k", session=session))
            link.put(LinkState.OPEN)
            assert (await etcd.get("k")).version == 1


class TestWatches:
    async def test_a_snapshot_then_each_change(self, etcd):
        await etcd.commit(put("p/1", b"1"))
        watch = etcd.watch(PrefixScope("p/"), None)
        told = batches(watch)
        first = await anext(told)
        assert (first.kind, [change.key for change in first.changes]) == ("snapshot", ["p/1"])
        await etcd.commit(Commit((Operation("delete", "p/1"), Operation("put", "p/2", b"2"))))
        await etcd.commit(put("q"))
        made = await etcd.commit(upsert("p/2", b"3"))
        seen = []
        while len(seen) < 3:
            seen += (await anext(told)).changes
        assert [(change.key, change.record and change.record.value) for change in seen] == [
            ("p/1", None),
            ("p/2", b"2"),
            ("p/2", b"3"),
        ]
        assert seen[-1].revision == made.revision
        async for batch in watch:
            assert batch.kind == "progress"
            assert batch.revision >= made.revision
            break
        await watch.aclose()
        assert [batch async for batch in watch] == []

    async def test_only_what_follows_a_revision(self, etcd):
        revisions = [(await etcd.commit(upsert("k", b"%d" % n))).revision for n in range(4)]
        told = batches(etcd.watch(KeyScope("k"), revisions[1]))
        assert [c.record.value for c in (await anext(told)).changes] == [b"2", b"3"]

    async def test_each_state_of_a_resource(self, etcd):
        session = (await etcd.open_session(10.0)).id
        before = (await etcd.entries(LOCK)).revision
        told = batches(etcd.watch(LOCK, None))
        assert (await anext(told)).entries.entries == ()
        for id_ in "ab":
            await etcd.enter(Claim(LOCK, id_, b"", session))
        await etcd.end_session(session)
        seen = [[e.id for e in (await anext(told)).entries.entries] for _ in range(3)]
        assert seen == [["a"], ["a", "b"], []]
        told = batches(etcd.watch(LOCK, before))
        assert [e.id for e in (await anext(told)).entries.entries] == ["a"]

    async def test_forgotten_history_is_a_resync(self, one_server, etcd):
        first = (await etcd.commit(upsert("k", b"0"))).revision
        await etcd.commit(upsert("k", b"1"))
        last = (await etcd.commit(upsert("k", b"2"))).revision
        one_server.ask(0, "/v3/kv/compaction", {"revision": last})
        for scope in (KeyScope("k"), PrefixScope("k")):
            batch = await anext(batches(etcd.watch(scope, first)))
            assert (batch.kind, batch.changes[0].record.value) == ("resync", b"2")
        assert (await anext(batches(etcd.watch(LOCK, first)))).kind == "resync"

    async def test_changes_while_it_was_cut_off_arrive_later(self, one_server, request):
        async with (
            client_of(*one_server.endpoints, path=request.node.name) as other,
            linked(one_server, request.node.name) as (etcd, link),
        ):
            told = batches(etcd.watch(PrefixScope(""), None))
            await anext(told)
            link.put(LinkState.REFUSED)
            for n in range(100):
                await other.commit(put(f"k{n:03}"))
            link.put(LinkState.OPEN)
            seen = []
            while len(seen) < 100:
                seen += [change.key for change in (await anext(told)).changes]
            assert seen == [f"k{n:03}" for n in range(100)]

    async def test_a_thousand_watches_and_none_left_over(self, one_server, etcd):
        watches = [etcd.watch(KeyScope(f"k{n}"), None) for n in range(1000)]
        await asyncio.gather(*(anext(batches(watch)) for watch in watches))
        waiting = [asyncio.ensure_future(anext(batches(watch))) for watch in watches]
        await asyncio.sleep(1.0)
        assert one_server.watches() >= 1000
        for n in range(1000):
            await etcd.commit(put(f"k{n}"))
        async with asyncio.timeout(10):
            assert [b.changes[0].key for b in await asyncio.gather(*waiting)] == [
                f"k{n}" for n in range(1000)
            ]
        await asyncio.gather(*(watch.aclose() for watch in watches))
        await asyncio.sleep(0.5)
        assert one_server.watches() < 100

    async def test_a_reader_that_sleeps_misses_nothing(self, etcd, monkeypatch):
        monkeypatch.setattr("coordination.backends.etcd.subscriptions._MOST_WAITING", 50)
        watch = etcd.watch(PrefixScope(""), None)
        told = batches(watch)
        await anext(told)
        for n in range(300):
            await etcd.commit(put(f"k{n:03}"))
        assert len(watch._subscription.waiting) < 100
        seen = []
        while len(seen) < 300:
            seen += [change.key for change in (await anext(told)).changes]
        assert seen == [f"k{n:03}" for n in range(300)]


class TestServers:
    async def test_any_server_will_do(self, three_servers):
        loop = asyncio.get_running_loop()
        async with client_of("127.0.0.1:9", *three_servers.endpoints, timeout_s=20.0) as etcd:
            assert etcd.capabilities.leader_failover
            session = (await etcd.open_session(60.0)).id
            told = batches(etcd.watch(PrefixScope(""), None))
            await anext(told)
            made = []
            for fault in (three_servers.kill, three_servers.freeze):
                leader = three_servers.leader()
                fault(leader)
                until = loop.time() + 4.0
                while loop.time() < until:
                    key = f"k{len(made)}"
                    await etcd.commit(put(key, session=session))
                    made.append(key)
                await etcd.renew(session)
                three_servers.thaw(leader)
                await asyncio.to_thread(three_servers.start)
            seen = []
            async with asyncio.timeout(10):
                while len(seen) < len(made):
                    seen += [change.key for change in (await anext(told)).changes]
            assert seen == made

    async def test_a_server_without_a_majority_refuses(self, three_servers):
        async with client_of(three_servers.endpoints[0], timeout_s=2.0) as etcd:
            await etcd.commit(put("k"))
            three_servers.kill(1)
            three_servers.kill(2)
            for refused in (etcd.get("k"), etcd.commit(upsert("k"))):
                with pytest.raises((Unavailable, OutcomeUnknown)):
                    await refused

    async def test_logins(self, tmp_path, three_servers):
        three_servers.ask_for_logins("secret")
        right, wrong = Auth("root", "secret"), Auth("root", "guess")
        async with client_of(*three_servers.endpoints, auth=right) as etcd:
            told = batches(etcd.watch(KeyScope("k"), None))
            await anext(told)
            await etcd.commit(put("k"))
            assert (await anext(told)).changes[0].key == "k"
            # Restarted servers have forgotten every login.
            for n in range(3):
                three_servers.kill(n)
            await asyncio.to_thread(three_servers.start)
            await etcd.commit(upsert("k"))
            assert (await anext(told)).changes[0].key == "k"
        for auth in (wrong, None):
            with pytest.raises(AuthFailed):
                async with client_of(*three_servers.endpoints, auth=auth):
                    pass


async def test_what_is_wrong_in_a_url():
    with pytest.raises(ConfigError):
        async with client_of():
            pass
    with pytest.raises(Unavailable):
        async with client_of("127.0.0.1:9", timeout_s=0.5):
            pass
