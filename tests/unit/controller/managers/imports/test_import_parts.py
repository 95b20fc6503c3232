"""A large import comes in parts: nothing is shown before its end, and what is missing is named."""

from base64 import b64encode
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

import pytest

from controller.leader import import_parts
from metadata.codec import encode_records
from metadata.records import BeginTransactionRecord, KeyRecord, PartitionRecord, Record, TopicRecord
from tests.unit.controller.cluster import Cluster

TOPIC_ID = bytes(range(16))
TOPIC: list[Record] = [TopicRecord("a", TOPIC_ID)]
PARTITIONS: list[Record] = [
    PartitionRecord(n, TOPIC_ID, (1, 2), (1, 2), (), (), 1, 5, 7) for n in range(3)
]
KEYS: list[Record] = [KeyRecord(f"k/{n:04}", bytes(900), 0, 0, 1) for n in range(900)]
PARTS = [encode_records(each) for each in (TOPIC, [*PARTITIONS, *KEYS[:450]], KEYS[450:])]
WRITTEN = 1 + len(PARTITIONS) + len(KEYS)


def digest_of(parts: Sequence[bytes]) -> str:
    return sha256(b"".join(sha256(part).digest() for part in parts)).hexdigest()


DIGEST = digest_of(PARTS)


class PartsCluster:
    """Three controllers, asked over HTTP."""

    def __init__(self) -> None:
        self.cluster: Any = Cluster()
        self.cluster.run(2)

    def change_leader(self) -> None:
        self.cluster.kill(1)
        self.cluster.lead(2)
        self.cluster.run(2)

    def keep(self, number: int, digest: str = DIGEST, **more: Any) -> tuple[int, Any]:
        records = b64encode(PARTS[number]).decode()
        body = {"digest": digest, "number": number, "records": records} | more
        return self.cluster.ask("POST", "/v1/import/parts", body)

    def whole(self, digest: str = DIGEST, **more: Any) -> tuple[int, Any]:
        body = {
            "records": b64encode(encode_records(())).decode(),
            "source": "etcd+http://a:2379",
            "revision": 5,
            "parts": len(PARTS),
            "digest": digest,
        }
        headers = more.pop("headers", None)
        return self.cluster.ask("POST", "/v1/import", body | more, headers=headers)


@pytest.fixture
def parts() -> PartsCluster:
    return PartsCluster()


def test_parts_change_nothing_until_the_import_which_is_one_transaction(
    parts: PartsCluster,
) -> None:
    before = parts.cluster.image
    for number in (2, 0, 1):
        status, reply = parts.keep(number)
        assert status == 200, reply
    assert reply["kept"] == [0, 1, 2]
    assert parts.cluster.image.offset == before.offset
    status, rehearsed = parts.whole(dryRun=True)
    assert (status, rehearsed["written"]) == (200, WRITTEN)
    status, reply = parts.whole()
    assert (status, reply["written"], reply["conflicts"]) == (200, WRITTEN, [])
    parts.cluster.run(1)
    image = parts.cluster.image
    assert len(image.coordination.keys) == len(KEYS)
    assert image.topics.named("a").topic_id == TOPIC_ID
    written = parts.cluster.records(before.offset)
    assert [type(each) for each in written].count(BeginTransactionRecord) == 1
    assert parts.whole()[1]["same"] == len(KEYS) + 1 + len(PARTITIONS)
    parts.cluster.assert_equal()


def test_a_new_leader_names_the_parts_that_it_lacks(parts: PartsCluster) -> None:
    for number in range(3):
        parts.keep(number)
    parts.change_leader()
    offset = parts.cluster.image.offset
    status, error = parts.whole()
    assert (status, error["code"]) == (409, "IMPORT_INCOMPLETE")
    assert error["details"]["missing"] == "0,1,2"
    parts.keep(1)
    assert parts.whole()[1]["details"]["missing"] == "0,2"
    assert parts.cluster.image.offset == offset
    parts.keep(0)
    assert parts.keep(2)[1]["kept"] == [0, 1, 2]
    assert parts.whole()[1]["written"] == WRITTEN


def test_an_import_whose_answer_was_lost_is_made_once_also_without_its_parts(
    parts: PartsCluster,
) -> None:
    for number in range(3):
        parts.keep(number)
    status, done = parts.whole()
    assert status == 200
    parts.change_leader()
    headers = {"x-logberg-request-id": done["requestId"]}
    status, again = parts.whole(headers=headers)
    assert (status, again["written"], again["offset"]) == (200, WRITTEN, done["offset"])


def test_other_parts_than_the_digest_says_are_refused(parts: PartsCluster) -> None:
    wrong = digest_of(PARTS[::-1])
    for number in range(3):
        assert parts.keep(number, wrong)[0] == 200
    status, error = parts.whole(wrong)
    assert (status, error["details"]["missing"]) == (409, "0,1,2")


def test_parts_that_nobody_asks_for_are_forgotten(parts: PartsCluster) -> None:
    for number in range(3):
        parts.keep(number)
    parts.cluster.run(import_parts.KEPT_S * 2)
    assert parts.whole()[1]["details"]["missing"] == "0,1,2"
    parts.keep(0)
    parts.cluster.run(import_parts.KEPT_S * 0.9)
    parts.keep(1)
    parts.cluster.run(import_parts.KEPT_S * 0.9)
    assert parts.whole()[1]["details"]["missing"] == "2"


def test_the_memory_for_parts_is_bounded(
    parts: PartsCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_parts, "IMPORT_WHOLE_BYTES_MAX", len(PARTS[0]) + len(PARTS[1]))
    monkeypatch.setattr(import_parts, "KEPT_BYTES_MAX", len(PARTS[0]) + len(PARTS[1]) + 10)
    assert parts.keep(0)[0] == 200
    assert parts.keep(1)[0] == 200
    assert parts.keep(1)[0] == 200, "a part that comes again takes no more room"
    status, error = parts.keep(2)
    assert (status, error["code"]) == (413, "BODY_TOO_LARGE")
    status, error = parts.keep(0, "0" * 64)
    assert error["code"] == "THROTTLED"


@pytest.mark.parametrize(
    "changed", [{"digest": "x"}, {"number": -1}, {"number": 64}, {"records": "!"}]
)
def test_a_bad_part_is_refused(parts: PartsCluster, changed: dict[str, Any]) -> None:
    body = {"digest": DIGEST, "number": 0, "records": "kA=="} | changed
    status, error = parts.cluster.ask("POST", "/v1/import/parts", body)
    assert status == 400, error


def test_a_part_that_is_no_array_of_records_stops_the_import(parts: PartsCluster) -> None:
    bad = [PARTS[0], b"\x91\xc1", PARTS[2]]
    digest = digest_of(bad)
    for number, part in enumerate(bad):
        parts.keep(number, digest, records=b64encode(part).decode())
    status, error = parts.whole(digest)
    assert (status, error["code"]) == (400, "INVALID_REQUEST")
