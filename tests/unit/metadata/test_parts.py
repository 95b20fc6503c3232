"""A long message in parts has the same bytes as when it is encoded at once."""

from collections.abc import Iterator
from typing import Any

import pytest

from metadata.messages import (
    AlteredReassignment,
    AlterReassignmentsReply,
    BrokerDescription,
    DescribeTopicsReply,
    ListBrokersReply,
    PartitionDescription,
    ReadLogReply,
    ReadRecordsReply,
    TopicDescription,
)
from metadata.messages.brokers import BrokerStateName
from metadata.messages.parts import GROUP, JsonEntries, LongMessage, encode_in_parts
from metadata.messages.wire import JSON, MSGPACK, encode

COUNTS = (0, 1, 15, 16, GROUP, GROUP + 1, 1_000, 70_000)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
@pytest.mark.parametrize("count", COUNTS)
def test_a_topic_with_many_partitions(count: int, content_type: str) -> None:
    partitions = tuple(
        PartitionDescription(n, n % 3, n, 0, (1, 2, 3), (1, 2), offline_replicas=(3,))
        for n in range(count)
    )
    topic = TopicDescription("a", "id", partitions, {"partitions": '"partitions":[]', "x": "[]"})
    reply = DescribeTopicsReply(7, 1, (topic,))
    head = DescribeTopicsReply(7, 1, (TopicDescription("a", "id", (), topic.configs),))
    parts = encode_in_parts(LongMessage(head, "partitions", iter(partitions), count), content_type)
    assert b"".join(parts) == encode(reply, content_type)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_brokers(content_type: str) -> None:
    brokers = tuple(
        BrokerDescription(n, n, "i", BrokerStateName.ONLINE, False, False, rack='"brokers":[]')
        for n in range(100)
    )
    head = ListBrokersReply(7, 1, (), None)
    parts = encode_in_parts(LongMessage(head, "brokers", iter(brokers), 100), content_type)
    assert b"".join(parts) == encode(ListBrokersReply(7, 1, brokers, None), content_type)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_lists_in_lists(content_type: str) -> None:
    """Batches in words: each is long, and so are its records."""
    batches: list[dict[str, Any]] = [
        {"offset": n, "reason": "records", "records": [{"n": k} for k in range(n)]}
        for n in (3, 0, 100)
    ]
    entries = (
        LongMessage({**batch, "records": []}, "records", iter(batch["records"]), n)
        for batch, n in zip(batches, (3, 0, 100), strict=True)
    )
    head = ReadRecordsReply(0, 9, 0, 9)
    parts = encode_in_parts(LongMessage(head, "batches", entries, 3), content_type)
    whole = ReadRecordsReply(0, 9, 0, 9, tuple(batches))
    assert b"".join(parts) == encode(whole, content_type)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
@pytest.mark.parametrize("counts", [(0, 0), (1, 100), (100, 1), (70_000, 3)])
def test_two_long_lists(content_type: str, counts: tuple[int, int]) -> None:
    """A dry run: what became of each partition, and the records."""
    rows = tuple(AlteredReassignment('"records":[]', n) for n in range(counts[0]))
    records = tuple({"n": n, "of": '"partitions":[]'} for n in range(counts[1]))
    inner = LongMessage(AlterReassignmentsReply(()), "partitions", rows, len(rows))
    parts = encode_in_parts(LongMessage(inner, "records", records, len(records)), content_type)
    assert b"".join(parts) == encode(AlterReassignmentsReply(rows, records=records), content_type)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
@pytest.mark.parametrize("counts", [(0, 0), (1, 0), (0, GROUP), (3, GROUP + 1), (100, 1_000)])
def test_entries_that_are_encoded_already(counts: tuple[int, int], content_type: str) -> None:
    """What was found outside and then inside a transaction."""
    records = tuple(
        {"n": n, "of": None, "share": n / 3, "name": 'a"é,', "is": [n < 3, {"m": -n}]}
        for n in range(sum(counts))
    )
    entries, inside = JsonEntries(), JsonEntries()
    for record in records[: counts[0]]:
        entries.add(record)
    for record in records[counts[0] :]:
        inside.add(record)
    entries.extend(inside)
    assert len(entries) == len(records)
    message = LongMessage(ReadRecordsReply(0, 9, 0, 9), "batches", entries, len(entries))
    whole = encode(ReadRecordsReply(0, 9, 0, 9, records), content_type)
    for _ in range(2):  # Many callers get the same entries.
        assert b"".join(encode_in_parts(message, content_type)) == whole
    entries.clear()
    assert (len(entries), list(entries)) == (0, [])


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_no_part_has_two_batches_of_the_log(content_type: str) -> None:
    """A batch may have a megabyte. It is read when its part is made."""
    batches = tuple(bytes([n]) * 1_000 for n in range(2 * GROUP))
    taken = 0

    def read() -> Iterator[bytes]:
        nonlocal taken
        for batch in batches:
            taken += 1
            yield batch

    head = ReadLogReply(0, 9, 0, 9)
    parts, before = [], 0
    for part in encode_in_parts(LongMessage(head, "batches", read(), 2 * GROUP), content_type):
        parts.append(part)
        assert taken <= before + 1
        before = taken
    assert b"".join(parts) == encode(ReadLogReply(0, 9, 0, 9, batches), content_type)
