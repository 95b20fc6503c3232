"""Watches, listeners and buffers: the state first, every change, and nothing left out silently."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordination.backend import KeyScope, ValueChange, WatchBatch
from coordination.buffering import BatchBuffer, merge
from coordination.errors import Compacted
from coordination.interpreters import KeyInterpreter
from coordination.types import Record, Revision
from tests.unit.coordination.virtual_loop import client, store_of, virtual


def change(key: str, revision: int, *, there: bool = True) -> ValueChange:
    record = Record(key, str(revision).encode(), Revision(1), Revision(revision), 1)
    return ValueChange(key, record if there else None, Revision(revision))


@virtual
async def test_a_watch_has_the_state_then_every_change() -> None:
    async with client() as a:
        first = await a.storage.put("k", b"1")
        async with a.storage.watch("k") as events:
            second = await a.storage.update("k", b"2")
            await a.storage.delete("k")
            third = await a.storage.put("k", b"2")
            seen = [await anext(events) for _ in range(4)]
        assert [(e.kind, e.record and e.record.value) for e in seen] == [
            ("snapshot", b"1"),
            ("put", b"2"),
            ("delete", None),
            ("put", b"2"),
        ]
        assert [e.revision for e in seen] == [first, second, third - 1, third]
        async with a.storage.watch("k", after=first) as events:
            again = [await anext(events) for _ in range(3)]
        assert again == seen[1:]


@virtual
async def test_forgotten_history_is_a_resync_or_for_strict_watches_an_error() -> None:
    async with client() as a:
        revision = await a.storage.put("w/1", b"")
        await a.storage.put("w/2", b"")
        store_of(a).compact(Revision(revision + 1))
        async with a.storage.watch_prefix("w", after=Revision(1)) as events:
            seen = [await anext(events) for _ in range(2)]
            assert [(e.key, e.kind, e.coalesced) for e in seen] == [
                ("w/1", "resync", True),
                ("w/2", "resync", True),
            ]
        async with a.storage.watch_prefix("w", after=Revision(1), strict=True) as events:
            with pytest.raises(Compacted):
                await anext(events)
            assert (await events.resync()).kind == "resync"
        await asyncio.sleep(0.1)
        assert store_of(a).watchers == 0


@virtual
async def test_keys_of_a_namespace_are_not_those_of_its_neighbours() -> None:
    async with client() as a, a.storage.watch_keys("n") as events:
        for key in ("n/a", "nn/a", "n/b/c", "n"):
            await a.storage.put(key, b"")
        await a.storage.update("n/a", b"2")
        await a.storage.delete("n/a")
        seen = [await anext(events) for _ in range(3)]
        assert [e.keys for e in seen] == [frozenset(), {"n/a"}, frozenset()]
        assert (seen[1].added, seen[2].removed) == ({"n/a"}, {"n/a"})


@virtual
async def test_members_that_come_and_go_are_named() -> None:
    async with client("a") as a, client("b") as b, b.group("g").watch() as events:
        await a.group("g").join("x", b"1")
        await a.group("g").join("x", b"2")
        await b.group("g").join("y")
        await a.group("g").leave("x")
        seen = [await anext(events) for _ in range(5)]
        assert [set(e.members) for e in seen] == [set(), {"x"}, {"x"}, {"x", "y"}, {"y"}]
        assert [e.joined for e in seen] == [set(), {"x"}, set(), {"y"}, set()]
        assert [e.left for e in seen] == [set(), set(), set(), set(), {"x"}]


@virtual
async def test_a_slow_program_gets_the_last_state_marked_as_coalesced() -> None:
    async with client() as a:
        async with a._watches.open(KeyScope("k"), KeyInterpreter("k"), buffer=10) as events:
            for n in range(200):
                await a.storage.upsert("k", str(n))
            await asyncio.sleep(0.1)
            seen = []
            while not seen or seen[-1].record is None or seen[-1].record.value != b"199":
                seen.append(await anext(events))
        assert len(seen) <= 12
        assert any(e.coalesced for e in seen)
        assert [e.revision for e in seen] == sorted({e.revision for e in seen})


@virtual
async def test_listeners_get_states_and_survive_their_exceptions() -> None:
    failures, values, members, leaders, keys = [], [], [], [], []

    class Group:
        async def on_group_change(self, ids):
            members.append(ids)

    def value_changed(value):
        values.append(value)
        if value == b"1":
            raise RuntimeError("a listener's defect")

    def failed(error, listener):
        failures.append((error, listener))

    async with client(on_listener_error=failed) as a:
        a.listeners.add_value_change_listener("k", value_changed)
        a.listeners.add_value_change_listener("k", value_changed)
        a.listeners.add_key_set_change_listener("", keys.append)
        a.group("g").add_listener(Group())
        a.election("s").add_listener(leaders.append)
        for step in (b"1", b"2"):
            await asyncio.sleep(0.1)
            await a.storage.upsert("k", step)
        await a.group("g").join("m")
        await a.election("s").nominate("A")
        await asyncio.sleep(0.1)
        a.listeners.remove_value_change_listener("k", value_changed)
        a.listeners.remove_value_change_listener("k", value_changed)
        await a.storage.delete("k")
        await asyncio.sleep(0.1)
    assert values == [None, b"1", b"2"]
    assert keys == [frozenset(), {"k"}, frozenset()]
    assert members == [frozenset(), {"m"}]
    assert leaders == [None, "A"]
    assert [listener for _, listener in failures] == [value_changed]


@virtual
async def test_a_listener_that_removes_itself_is_called_once() -> None:
    async with client() as a:
        calls = []

        def once(value):
            calls.append(value)
            a.listeners.remove_value_change_listener("k", once)

        a.listeners.add_value_change_listener("k", once)
        await asyncio.sleep(0.1)
        await a.storage.upsert("k", b"1")
        await asyncio.sleep(0.1)
        assert calls == [None]


@virtual
async def test_a_member_that_asked_for_it_joins_again_with_a_new_token() -> None:
    async with client("a") as a, client("b") as b:
        kept = await a.group("g").join("kept", b"1", rejoin=True)
        lost = await a.group("g").join("lost", b"1")
        token, ended = kept.token, kept.lost
        await a.group("g").update("kept", b"2")
        store_of(a).end_session(a.session.id)
        await asyncio.sleep(20.0)
        members = await b.group("g").membership()
        assert {id_: m.data for id_, m in members.items()} == {"kept": b"2"}
        assert kept.token == members["kept"].token > token
        assert (ended.is_set(), kept.lost.is_set(), lost.lost.is_set()) == (True, False, True)
        assert kept.rejoined.is_set()


KINDS = st.sampled_from(["snapshot", "changes", "resync"])


@given(
    st.lists(st.tuples(KINDS, st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))),
    st.integers(1, 5),
)
def test_a_buffer_that_coalesces_ends_in_the_same_state(batches, limit) -> None:
    """Whoever folds what comes out has the state of whoever folds what went in."""

    def fold(state: dict, batch: WatchBatch) -> dict:
        state = dict(state) if batch.kind == "changes" else {}
        for each in batch.changes:
            state[each.key] = each.record
        return {key: record for key, record in state.items() if record is not None}

    buffer, wanted, revision = BatchBuffer(limit), {}, 0
    for kind, keys in batches:
        changes = []
        for key, there in keys:
            revision += 1
            if there or kind == "changes":
                changes = [c for c in changes if c.key != key or kind == "changes"]
                changes.append(change(key, revision, there=there))
        batch = WatchBatch(kind, Revision(revision), changes=tuple(changes))
        wanted = fold(wanted, batch)
        buffer.add(batch)
        buffer.add(WatchBatch("progress", Revision(revision)))
    found, last = {}, -1
    while (batch := buffer.take()) is not None:
        assert batch.revision >= last
        last = batch.revision
        found = found if batch.kind == "progress" else fold(found, batch)
    assert found == wanted
    assert last == (revision if batches else -1)


def test_what_was_merged_is_marked() -> None:
    merged = merge(
        [
            WatchBatch("snapshot", Revision(1), changes=(change("a", 1),)),
            WatchBatch("changes", Revision(2), changes=(change("a", 2, there=False),)),
            WatchBatch("changes", Revision(3), changes=(change("b", 3),)),
        ]
    )
    assert (merged.kind, merged.revision, merged.coalesced) == ("snapshot", 3, True)
    assert [c.key for c in merged.changes] == ["b"]
