"""Storage and transactions: KIP-30's contracts, revisions, fences and outcomes."""

import asyncio

import pytest

from coordination.backend import Resource
from coordination.errors import (
    ConfigError,
    Fenced,
    InvalidKey,
    KeyExists,
    KeyMissing,
    RevisionMismatch,
    SessionLost,
    TxnTooLarge,
    ValueTooLarge,
)
from coordination.fencing import FenceGuard, fencing_header, parse_fencing_header
from coordination.types import Token
from tests.unit.coordination.virtual_loop import client, store_of, virtual


@virtual
async def test_put_update_delete_and_their_refusals() -> None:
    async with client() as a:
        assert await a.storage.fetch("k") is None
        with pytest.raises(KeyMissing):
            await a.storage.update("k", b"")
        first = await a.storage.put("k", "ü")
        record = await a.storage.fetch("k")
        assert (record.value, record.create_revision, record.mod_revision, record.version) == (
            "ü".encode(),
            first,
            first,
            1,
        )
        with pytest.raises(KeyExists) as exists:
            await a.storage.put("k", b"other")
        assert exists.value.record == record
        second = await a.storage.update("k", b"", expect=first)
        with pytest.raises(RevisionMismatch) as mismatch:
            await a.storage.update("k", b"late", expect=first)
        assert mismatch.value.current == second
        assert await a.storage.delete("k", expect=second)
        assert not await a.storage.delete("k")
        assert await a.storage.put("k", b"") > second
        with pytest.raises(ValueTooLarge) as large:
            await a.storage.upsert("k", b"x" * ((1 << 20) + 1))
        assert large.value.limit == 1 << 20


@virtual
async def test_one_of_fifty_compare_and_sets_succeeds() -> None:
    async with client() as a:
        seen = await a.storage.put("k", b"")
        tries = (a.storage.update("k", str(n), expect=seen) for n in range(50))
        ended = await asyncio.gather(*tries, return_exceptions=True)
        assert sum(isinstance(each, int) for each in ended) == 1
        assert sum(isinstance(each, RevisionMismatch) for each in ended) == 49


@virtual
async def test_a_transaction_is_all_or_nothing_and_names_the_step() -> None:
    async with client() as a:
        at = await a.storage.put("a", b"")
        grant = await a.lock("l").acquire()
        # The step's number is that of the caller's order, not of checks before operations.
        txn = a.storage.txn().put("b", b"").fence(grant).update("c", b"").check("a", at)
        with pytest.raises(KeyMissing) as missing:
            await txn.commit()
        assert missing.value.index == 2
        assert await a.storage.fetch("b") is None
        with pytest.raises(KeyExists) as exists:
            await a.storage.txn().put("b", b"").check("a", "absent").commit()
        assert exists.value.index == 1
        late = a.storage.txn().upsert("a", b"").fence(Token(1), resource=Resource("lock", "l"))
        with pytest.raises(Fenced) as fenced:
            await late.commit()
        assert (fenced.value.index, fenced.value.current_token) == (1, grant.token)
        both = a.storage.txn().check("a", at).put("b", b"1").delete("a").fence(grant)
        revision = await both.commit()
        assert (await a.storage.fetch("b")).mod_revision == revision
        assert await a.storage.fetch("a") is None
        with pytest.raises(InvalidKey, match="already"):
            a.storage.txn().put("x", b"").delete("x")
        many = a.storage.txn()
        for n in range(129):
            many.upsert(f"k{n}", b"")
        with pytest.raises(TxnTooLarge):
            await many.commit()
        with pytest.raises(ConfigError, match="resource="):
            await a.storage.upsert("k", b"", fence=5)


@virtual
async def test_the_same_request_id_is_the_same_request() -> None:
    async with client() as a:
        first = await a.storage.put("k", b"", request_id="r")
        assert await a.storage.put("k", b"", request_id="r") == first
        assert (await a.storage.fetch("k")).version == 1


@virtual
async def test_a_change_whose_session_ends_meanwhile_is_of_unknown_outcome() -> None:
    async with client() as a:
        commit = a.backend.commit

        async def slow(work):
            made = await commit(work)
            await asyncio.sleep(5.0)
            return made

        a.backend.commit = slow
        putting = asyncio.create_task(a.storage.put("k", b""))
        await asyncio.sleep(1.0)
        a.session.lose("the store says so")
        with pytest.raises(SessionLost) as lost:
            await putting
        assert lost.value.outcome == "unknown"
        assert "k" in store_of(a).keys


@virtual
async def test_a_list_is_sorted_by_bytes_in_pages_of_one_revision() -> None:
    async with client() as a:
        names = ["a", "é", "z", "𝄞", "n/1", "n/2/3", "nn"]
        for name in names:
            await a.storage.put(name, b"v")
        listed = [record.key async for record in a.storage.list(page=2)]
        assert listed == sorted(names, key=str.encode)
        assert [record.key async for record in a.storage.list("n")] == ["n/1", "n/2/3"]
        revision, records = await a.storage.snapshot("n")
        assert set(records) == {"n/1", "n/2/3"}
        assert revision == store_of(a).revision
        with pytest.raises(ConfigError):
            await anext(a.storage.list(page=0))


def test_a_guard_refuses_smaller_tokens_of_the_same_resource() -> None:
    guard = FenceGuard()
    assert [guard.accept("a", token) for token in (3, 3, 2, 5, 4)] == [
        True,
        True,
        False,
        True,
        False,
    ]
    assert guard.accept("b", 1)
    with pytest.raises(Fenced) as fenced:
        guard.check("a", 4)
    assert fenced.value.current_token == 5


@virtual
async def test_a_token_travels_in_a_header() -> None:
    async with client(namespace="n") as a:
        grant = await a.lock("x=1/ü").acquire()
        name, value = fencing_header(grant)
        assert name == "Fencing-Token"
        assert parse_fencing_header(value) == (Resource("lock", "n/x=1/ü"), grant.token)
        a.session.lose("gone")
        with pytest.raises(SessionLost):
            fencing_header(grant)
    for wrong in ("", "lock:x", "lock:=1", "door:x=1", "lock:x=-1"):
        with pytest.raises(ValueError, match="kind:name=token"):
            parse_fencing_header(wrong)
