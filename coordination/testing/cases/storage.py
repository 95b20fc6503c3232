"""Cases K1 to K10 and K14 to K16: what single keys and transactions promise."""

import asyncio
from contextlib import suppress

from coordination.coordinator import Coordinator
from coordination.errors import KeyExists, KeyMissing, OutcomeUnknown, RevisionMismatch
from coordination.testing.case import Trait, case
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability
from coordination.types import Record, Revision


async def fetched(client: Coordinator, key: str) -> Record:
    """Return the record of a key that is there."""
    record = await client.storage.fetch(key)
    assert record is not None, f"{key} is missing"
    return record


async def update_refused(client: Coordinator, key: str, expect: Revision) -> bool:
    """Update with an expected revision; return whether it was refused."""
    try:
        await client.storage.update(key, b"swapped", expect=expect)
    except RevisionMismatch:
        return True
    return False


@case()
async def k1_a_missing_key(h: Harness) -> None:
    """A missing key is None."""
    a = await h.make_client()
    assert await a.storage.fetch("k") is None


@case()
async def k2_put_makes_a_key(h: Harness) -> None:
    """A put returns the revision at which the key is made, with version 1."""
    a, b = await h.make_clients(2)
    revision = await a.storage.put("k", b"v")
    record = await fetched(b, "k")
    assert record == Record("k", b"v", revision, revision, 1, None)


@case()
async def k3_put_refuses_an_existing_key(h: Harness) -> None:
    """A put of a key that exists raises KeyExists, which carries its revision; the value stays."""
    a, b = await h.make_clients(2)
    revision = await a.storage.put("k", b"first")
    error = await refusal(KeyExists, b.storage.put("k", b"second"))
    assert error.record is not None
    assert error.record.mod_revision == revision
    assert error.outcome == "not_applied"
    assert (await fetched(a, "k")).value == b"first"


@case()
async def k4_update_needs_the_key(h: Harness) -> None:
    """An update of a missing key raises KeyMissing and doesn't make it."""
    a = await h.make_client()
    await refusal(KeyMissing, a.storage.update("k", b"v"))
    assert await a.storage.fetch("k") is None


@case()
async def k5_update_changes_a_key(h: Harness) -> None:
    """An update moves the mod revision and the version; the create revision stays."""
    a = await h.make_client()
    made = await a.storage.put("k", b"1")
    changed = await a.storage.update("k", b"2")
    assert changed > made
    assert await fetched(a, "k") == Record("k", b"2", made, changed, 2, None)
    again = await a.storage.upsert("k", b"3")
    assert await fetched(a, "k") == Record("k", b"3", made, again, 3, None)


@case()
async def k6_delete(h: Harness) -> None:
    """A delete says whether a key was there; a key made again has a later create revision."""
    a = await h.make_client()
    made = await a.storage.put("k", b"1")
    assert await a.storage.delete("k")
    assert not await a.storage.delete("k")
    assert await a.storage.fetch("k") is None
    again = await a.storage.put("k", b"2")
    record = await fetched(a, "k")
    assert record.create_revision == again > made
    assert record.version == 1


@case(busy=True)
async def k7_compare_and_set_has_one_winner(h: Harness) -> None:
    """Of 50 concurrent updates that expect one revision, one succeeds."""
    clients = await h.make_clients(5)
    made = await clients[0].storage.put("k", b"0")
    results = await asyncio.gather(*(update_refused(clients[n % 5], "k", made) for n in range(50)))
    assert results.count(False) == 1
    assert (await fetched(clients[0], "k")).version == 2


@case()
async def k8_a_value_that_returns(h: Harness) -> None:
    """An update that expects the revision of an equal, earlier value is refused."""
    a = await h.make_client()
    first = await a.storage.put("k", b"A")
    await a.storage.update("k", b"B")
    await a.storage.update("k", b"A")
    assert await update_refused(a, "k", first)
    assert (await fetched(a, "k")).value == b"A"


@case()
async def k9_a_key_that_returns(h: Harness) -> None:
    """An update that expects the revision of an equal key from before a delete is refused."""
    a = await h.make_client()
    first = await a.storage.put("k", b"A")
    await a.storage.delete("k")
    await a.storage.put("k", b"A")
    assert await update_refused(a, "k", first)
    assert (await fetched(a, "k")).value == b"A"
    try:
        deleted = await a.storage.delete("k", expect=first)
    except RevisionMismatch:
        deleted = False
    assert not deleted
    assert (await fetched(a, "k")).value == b"A"


@case()
async def k10_an_empty_value(h: Harness) -> None:
    """An empty value is no missing key."""
    a = await h.make_client()
    await a.storage.put("k", b"")
    assert (await fetched(a, "k")).value == b""
    assert await a.storage.fetch("other") is None


@case(Trait.LINEARIZABLE_READS, busy=True)
async def k14_reads_see_what_is_acknowledged(h: Harness) -> None:
    """A read sees its own client's writes, and those acknowledged to others before it began."""
    a, b = await h.make_clients(2)
    await a.storage.put("k", b"0")
    for turn in range(1, 51):
        value = str(turn).encode()
        writer, reader = (a, b) if turn % 2 else (b, a)
        revision = await writer.storage.update("k", value)
        for client in (writer, reader):
            record = await fetched(client, "k")
            assert (record.value, record.mod_revision) == (value, revision)


@case(Ability.CUT)
async def k15_a_puts_reply_is_lost(h: Harness) -> None:
    """A put whose reply was lost succeeds or is unknown, and isn't made twice when tried again."""
    a, b = await h.make_clients(2)

    async def applied() -> bool:
        return await b.storage.fetch("k") is not None

    put = await h.drop_next_reply(
        a, a.storage.put("k", b"v", request_id=f"once-{h.namespace}"), applied
    )
    with suppress(OutcomeUnknown):
        assert await h.in_time(put) == (await fetched(b, "k")).create_revision
    again = await h.in_time(
        a.storage.put("k", b"v", request_id=f"once-{h.namespace}"), "the second try returns"
    )
    record = await fetched(b, "k")
    assert again == record.create_revision
    assert record.version == 1


@case(Trait.TXN, busy=True)
async def k16_transactions(h: Harness) -> None:
    """A transaction makes all of its changes or none, and a failing check names its index."""
    a, b = await h.make_clients(2)
    old = await a.storage.put("n/old", b"1")
    gone = await a.storage.put("n/gone", b"1")
    txn = a.storage.txn().check("n/old", old).check("n/new", "absent")
    txn = txn.put("n/new", b"new").update("n/old", b"2").delete("n/gone")
    revision = await txn.commit()
    # In some stores each change of a transaction has a revision of its own, in others all have one.
    made = (await fetched(b, "n/new")).create_revision
    assert gone < made <= revision
    assert made <= (await fetched(b, "n/old")).mod_revision <= revision
    assert await b.storage.fetch("n/gone") is None
    late = a.storage.txn().check("n/new", made).check("n/old", gone)
    late = late.update("n/new", b"never").put("n/gone", b"never")
    error = await refusal(RevisionMismatch, late.commit())
    assert error.index == 1
    assert (await fetched(b, "n/new")).value == b"new"
    assert await b.storage.fetch("n/gone") is None
    twice = a.storage.txn().update("n/new", b"never").put("n/old", b"never")
    assert (await refusal(KeyExists, twice.commit())).index in (1, None)
    assert (await fetched(b, "n/new")).value == b"new"
