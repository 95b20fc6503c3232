"""Cases K11 to K13 and K17 to K19: sizes, names, long lists and cancelled writes."""

import asyncio
import unicodedata

from coordination.coordinator import Coordinator
from coordination.errors import InvalidKey, TxnTooLarge, ValueTooLarge
from coordination.testing.case import Trait, case
from coordination.testing.cases.storage import fetched
from coordination.testing.expected_errors import refusal
from coordination.testing.harness import Harness
from coordination.testing.store import Ability

MEBIBYTE = 1024 * 1024
KEYS = 10_000
BATCH = 100
LONG_KEY = 512
LONGEST_KEY = 1024


@case(busy=True)
async def k11_sizes_of_values(h: Harness) -> None:
    """Values up to the limit come back whole; larger ones are refused at once."""
    a, b = await h.make_clients(2)
    limit = h.capabilities.max_value_bytes
    for size in (0, 1, 64 * 1024, MEBIBYTE - 64 * 1024, limit):
        if size <= limit:
            value = bytes(n & 255 for n in range(1024)) * (size // 1024 + 1)
            await a.storage.upsert("k", value[:size])
            assert (await fetched(b, "k")).value == value[:size]
    error = await refusal(ValueTooLarge, h.in_time(a.storage.upsert("k", bytes(limit + 1))))
    assert error.limit == limit
    await a.storage.upsert("k", b"still usable")
    assert (await fetched(b, "k")).value == b"still usable"


def odd_keys() -> list[str]:
    """Return keys that stores have mistaken for others, or for their own syntax."""
    word = "\N{LATIN SMALL LETTER E WITH ACUTE}"
    return [
        "plain",
        "Ключ",
        "鍵",
        "🗝",
        unicodedata.normalize("NFC", word),
        unicodedata.normalize("NFD", word),
        "a b",
        "%41",
        "*",
        "<default>",
        "/leading",
        "trailing/",
        "..",
        "a/../b",
        "a//b",
    ]


@case(busy=True)
async def k12_names_of_keys(h: Harness) -> None:
    """Odd keys come back and are listed unchanged; empty and overlong ones are refused."""
    a, b = await h.make_clients(2)
    keys = odd_keys()
    room = h.capabilities.max_key_bytes - len(h.namespace.encode()) - 1
    keys.append("x" * min(LONG_KEY, room))
    for key in keys:
        await a.storage.put(key, key.encode())
    for key in keys:
        record = await fetched(b, key)
        assert (record.key, record.value) == (key, key.encode())
    assert {record.key async for record in b.storage.list()} == set(keys)
    for wrong in ("", "x" * (max(LONGEST_KEY, h.capabilities.max_key_bytes) + 1)):
        await refusal(InvalidKey, a.storage.put(wrong, b"v"))


@case(busy=True)
async def k13_lists(h: Harness) -> None:
    """A list has the right keys in the order of their bytes and nothing of a longer name."""
    a, b = await h.make_clients(2)
    inside = {"a/1", "a/2", "a/10", "a/b/c", "a/Ω", "a/🦓"}
    for key in (*inside, "ab", "a", "b/1"):
        await a.storage.put(key, key.encode())
    listed = [record async for record in b.storage.list("a/")]
    assert {record.key for record in listed} == inside
    names = [record.key for record in listed]
    assert names == sorted(names, key=str.encode)
    assert all(record.value == record.key.encode() for record in listed)
    revision, records = await b.storage.snapshot("a/")
    assert set(records) == inside
    assert revision >= max(record.mod_revision for record in records.values())
    if h.capabilities.atomic_list and h.capabilities.txn:
        await _lists_are_atomic(h, a, b)


async def _lists_are_atomic(h: Harness, writer: Coordinator, reader: Coordinator) -> None:
    """Two keys change together; a list never shows one of them changed alone."""
    for key in ("p/left", "p/right"):
        await writer.storage.put(key, b"0")

    async def write() -> None:
        for turn in range(50):
            value = str(turn).encode()
            txn = writer.storage.txn().update("p/left", value).update("p/right", value)
            await txn.commit()

    writing = h.start(write())
    while not writing.done():
        _, records = await reader.storage.snapshot("p/")
        assert records["p/left"].value == records["p/right"].value
    await writing


@case(Trait.TXN)
async def k17_large_transactions(h: Harness) -> None:
    """A transaction over the limit is refused as a whole and named so."""
    a = await h.make_client()
    txn = a.storage.txn()
    for number in range(h.capabilities.max_txn_operations + 1):
        txn = txn.put(f"t/{number}", b"v")
    await refusal(TxnTooLarge, txn.commit())
    assert [record async for record in a.storage.list("t/")] == []


@case(busy=True)
async def k18_ten_thousand_keys(h: Harness) -> None:
    """A list of 10,000 keys is complete over its pages."""
    a, b = await h.make_clients(2)
    count = h.volume(KEYS)
    keys = [f"many/{number:05}" for number in range(count)]
    for begin in range(0, count, BATCH):
        await asyncio.gather(*(a.storage.put(key, b"v") for key in keys[begin : begin + BATCH]))
    listed = [record.key async for record in b.storage.list("many/", page=997)]
    assert listed == keys
    only = [record.key async for record in b.storage.list("many/", keys_only=True)]
    assert only == keys


@case(Ability.CUT)
async def k19_a_cancelled_put(h: Harness) -> None:
    """After a pending put is cancelled it is made or not, and the client goes on."""
    a, b = await h.make_clients(2)
    h.cut(a)
    put = h.start(a.storage.put("k", b"v"))
    await asyncio.sleep(h.ttl / 20)
    put.cancel()
    await h.in_time(asyncio.gather(put, return_exceptions=True), "the put ends")
    h.heal(a)
    for _ in range(3):
        now = h.start(a.storage.put("k2", b"v"))
        await asyncio.sleep(0)
        now.cancel()
        await asyncio.gather(now, return_exceptions=True)
    await h.in_time(a.storage.upsert("k3", b"v"), "the client is usable")
    assert (await fetched(b, "k3")).value == b"v"
    record = await b.storage.fetch("k")
    assert record is None or (record.value, record.version) == (b"v", 1)
