"""An import is all or nothing, never overwrites, and writes nothing the second time (M3, M5)."""

from base64 import b64encode
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest

from controller.config import CoordinationLimits
from logberg.importing.kafka_layout import read_kafka
from metadata.codec import encode_records
from metadata.image import MetadataDelta
from metadata.records import (
    AccessControlEntryRecord,
    BeginTransactionRecord,
    ClientQuotaRecord,
    ConfigRecord,
    DelegationTokenRecord,
    EndTransactionRecord,
    EntityData,
    KeyRecord,
    NoOpRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)
from metadata.sealed_places import scram_place
from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import DECLARED, Cluster
from tests.unit.logberg.importing.trees import kafka_tree

KEY = ClusterKey(bytes(range(32)))
TREE = read_kafka(kafka_tree()).records
TOPIC_ID = bytes(range(16))
ALICE = (EntityData("user", "alice"),)


class ImportCluster:
    """One controller without brokers, asked over HTTP."""

    def __init__(self, **settings: Any) -> None:
        chosen = {"cluster_key": KEY} | settings
        self.cluster: Any = Cluster(nodes=1, **chosen)
        self.cluster.run(2)

    def ask(self, records: Sequence[Record] | bytes, **more: Any) -> tuple[int, dict[str, Any]]:
        data = records if isinstance(records, bytes) else encode_records(records)
        body = {
            "records": b64encode(data).decode(),
            "source": "zookeeper://zk:2181/kafka",
            "revision": 4299,
        }
        return self.cluster.ask("POST", "/v1/import", body | more)

    def imported(self, records: Sequence[Record], **more: Any) -> dict[str, Any]:
        status, reply = self.ask(records, **more)
        assert status == 200, reply
        return reply

    @property
    def image(self) -> Any:
        self.cluster.run(0.05)
        return self.cluster.image


@pytest.fixture
def cluster() -> ImportCluster:
    return ImportCluster()


def topic(
    name: str = "a", replicas: Sequence[int] = (1, 2), **changed: Any
) -> tuple[TopicRecord, PartitionRecord]:
    partition = PartitionRecord(0, TOPIC_ID, tuple(replicas), tuple(replicas), (), (), 1, 5, 7)
    return TopicRecord(name, TOPIC_ID), msgspec.structs.replace(partition, **changed)


def test_nothing_is_imported_from_nothing(cluster: ImportCluster) -> None:
    before = cluster.image.offset
    reply = cluster.imported([])
    assert (reply["written"], reply["same"], reply["conflicts"]) == (0, 0, [])
    assert cluster.image.offset == before


def test_the_tree_that_kafka_left_is_imported_once(cluster: ImportCluster) -> None:
    first = cluster.imported(TREE)
    assert first["conflicts"] == []
    assert first["expired"] == 1
    assert first["written"] == len(TREE) - 1
    image = cluster.image
    orders = image.topics.named("orders")
    third = image.topics.partitions[orders.topic_id, 2]
    assert (third.isr, third.leader, third.leader_epoch, third.partition_epoch) == ((2,), -1, 9, 9)
    assert image.configs.value(2, "orders", "retention.ms") == "604800000"
    assert image.client_quotas.of(*ALICE)["request_percentage"] == 50
    assert image.producer_ids.next_producer_id == 4000
    assert len(image.acls.entries) == 10
    before, again = image.offset, cluster.imported(TREE)
    assert (again["written"], again["same"]) == (0, len(TREE) - 1)
    assert cluster.image.offset == before


def test_a_leader_of_the_source_leads_no_more_and_its_epoch_is_fenced(
    cluster: ImportCluster,
) -> None:
    cluster.imported(topic())
    here = cluster.image.topics.partitions[TOPIC_ID, 0]
    assert (here.leader, here.leader_epoch, here.isr) == (-1, 6, (1, 2))


def test_brokers_that_come_lead_what_was_imported_and_the_import_stays_the_same() -> None:
    cluster = ImportCluster()
    cluster.imported(topic())
    cluster.cluster.online(1, 2, 3, features=DECLARED)
    here = cluster.image.topics.partitions[TOPIC_ID, 0]
    assert here.leader in (1, 2)
    assert cluster.imported(topic())["written"] == 0


def test_credentials_are_sealed_and_compared(cluster: ImportCluster) -> None:
    records = [each for each in TREE if isinstance(each, UserScramCredentialRecord)]
    cluster.imported(records)
    for clear in records:
        sealed = cluster.image.scram.credentials["alice", clear.mechanism]
        assert sealed.stored_key != clear.stored_key
        place = scram_place("alice", clear.mechanism, "storedKey")
        assert KEY.open(place, sealed.stored_key) == clear.stored_key
    assert cluster.imported(records)["same"] == 2
    other = msgspec.structs.replace(records[0], stored_key=bytes(32))
    reply = cluster.imported([other])
    assert reply["conflicts"][0]["name"] == "user alice"


def test_without_a_cluster_key_a_credential_is_a_conflict() -> None:
    reply = ImportCluster(cluster_key=None).imported(TREE)
    assert reply["written"] == 0
    assert {each["name"] for each in reply["conflicts"]} == {"user alice"}


def quota(value: float) -> Record:
    return ClientQuotaRecord(ALICE, "request_percentage", value, False)


def acl(**changed: Any) -> Record:
    entry = AccessControlEntryRecord(bytes(16), 2, "t", 3, "User:a", "*", 3, 3)
    return msgspec.structs.replace(entry, **changed)


def token(owner: str = "User:a") -> Record:
    end = 4_102_444_800_000
    return DelegationTokenRecord(owner, owner, (), 1, end, end, "token")


@pytest.mark.parametrize(
    ("before", "then", "name"),
    [
        (topic(), (TopicRecord("b", TOPIC_ID), topic()[1]), "topic b"),
        (topic(), (TopicRecord("a", bytes(16)), topic(topic_id=bytes(16))[1]), "topic a"),
        (topic(), topic(replicas=(2, 1)), "topic a"),
        (topic(), topic(leader_epoch=9), "topic a"),
        (topic(), (topic()[0], topic(partition_id=1)[1]), "topic a"),
        (topic("a_b"), (TopicRecord("a.b", bytes(16)), topic(topic_id=bytes(16))[1]), "topic a.b"),
        (
            (topic()[0], ConfigRecord(2, "a", "retention.ms", "5"), topic()[1]),
            (topic()[0], ConfigRecord(2, "a", "retention.ms", "6")),
            "topic a",
        ),
        (
            [ConfigRecord(4, "1", "log.cleaner.threads", "2")],
            [ConfigRecord(4, "1", "log.cleaner.threads", "3")],
            "configs of broker 1",
        ),
        ([quota(50.0)], [quota(51.0)], "quota:user=alice"),
        ([token()], [token("User:b")], "token token"),
    ],
)
def test_what_is_here_and_differs_is_a_conflict_and_nothing_is_written(
    cluster: ImportCluster, before: list[Record], then: list[Record], name: str
) -> None:
    assert cluster.imported(before)["conflicts"] == []
    at = cluster.image.offset
    missing = ClientQuotaRecord((EntityData("user", "new"),), "request_percentage", 1.0, False)
    reply = cluster.imported([*then, missing])
    assert {each["name"] for each in reply["conflicts"]} == {name}
    assert reply["conflictCount"] >= 1
    assert reply["written"] == 0
    assert cluster.image.offset == at


@pytest.mark.parametrize(
    "records",
    [
        topic("no/name"),
        topic(replicas=(1, 1)),
        topic(isr=(7,)),
        topic(leader=7),
        topic(leader_epoch=-1),
        topic(leader_recovery_state=5),
        topic(directories=(bytes(16), bytes(16))),
        topic(partition_id=3),
        (topic()[0],),
        (*topic(), *topic()),
        (topic()[0], ConfigRecord(2, "a", "retention.ms", "soon"), topic()[1]),
        (ConfigRecord(4, "one", "log.cleaner.threads", "2"),),
        (ConfigRecord(4, "1", "log.cleaner.threads", "many"),),
        (quota(-1.0),),
        (quota(1.0), quota(1.0)),
        (ClientQuotaRecord((EntityData("planet", "a"),), "request_percentage", 1.0, False),),
        (acl(operation=99),),
        (acl(principal="alice"),),
        (UserScramCredentialRecord("a", 1, b"salt", bytes(32), bytes(31), 4096),),
        (UserScramCredentialRecord("a", 9, b"salt", bytes(32), bytes(32), 4096),),
        (UserScramCredentialRecord("a", 1, b"salt", bytes(32), bytes(32), 1),),
        (ProducerIdsRecord(1, -1, -5),),
        (token(), token()),
    ],
)
def test_what_could_not_be_here_is_a_conflict(
    cluster: ImportCluster, records: Sequence[Record]
) -> None:
    reply = cluster.imported(records)
    assert reply["written"] == 0
    assert len(reply["conflicts"]) == 1


@pytest.mark.parametrize(
    "records",
    [
        b"\xc1",
        b"",
        [NoOpRecord()],
        [BeginTransactionRecord()],
        [topic()[1]],
        [topic()[0], ConfigRecord(2, "b", "retention.ms", "5")],
        [topic()[0], ConfigRecord(2, "a", "retention.ms", None)],
        [*topic(), topic()[1]],
        [ConfigRecord(16, "a", "metrics", "*")],
        [ConfigRecord(4, "1", "log.cleaner.threads", None)],
    ],
)
def test_what_is_no_import_is_refused(
    cluster: ImportCluster, records: Sequence[Record] | bytes
) -> None:
    status, reply = cluster.ask(records)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_a_dry_run_shows_the_records_and_no_secret(cluster: ImportCluster) -> None:
    before = cluster.image.offset
    reply = cluster.imported(TREE, dryRun=True)
    assert len(reply["records"]) == reply["written"] == len(TREE) - 1
    assert cluster.image.offset == before
    shown = [r for r in reply["records"] if r["type"] == "USER_SCRAM_CREDENTIAL_RECORD"]
    assert {r["data"]["storedKey"] for r in shown} == {"***"}


def test_the_log_says_what_was_imported_from_where(cluster: ImportCluster) -> None:
    begin = cluster.image.offset
    cluster.imported(topic())
    batches = [each.header for each in cluster.cluster.batches()]
    (provenance,) = (each.provenance for each in batches if each.base_offset == begin)
    assert provenance.operation == "Import"
    assert provenance.reason == "import of zookeeper://zk:2181/kafka at revision 4299"


def many(count: int) -> list[Record]:
    row = PartitionRecord(0, TOPIC_ID, (1, 2, 3), (1, 2, 3), (), (), 1, 5, 7)
    rows = [msgspec.structs.replace(row, partition_id=number) for number in range(count)]
    return [TopicRecord("wide", TOPIC_ID), *rows]


def test_a_large_import_is_one_transaction_and_half_of_it_shows_nothing(
    cluster: ImportCluster,
) -> None:
    before = cluster.image
    reply = cluster.imported(many(5_000))
    assert reply["written"] == 5_001
    records = cluster.cluster.records(before.offset)
    assert isinstance(records[0], BeginTransactionRecord)
    assert isinstance(records[-1], EndTransactionRecord)
    for cut in (1, 2, 2_000, len(records) - 1):
        assert replayed(before, records[:cut]).topics.named("wide") is None
    assert replayed(before, records).topics.named("wide") is not None


def replayed(image: Any, records: Sequence[Record]) -> Any:
    """Return what readers see after these records."""
    delta = MetadataDelta(image)
    for number, record in enumerate(records):
        delta.replay(record, image.offset + number)
    delta.finish_batch(image.offset + len(records), image.epoch, image.timestamp_ms)
    return delta.apply()


def test_an_import_pays_for_its_new_partitions_only(
    cluster: ImportCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    imports = cluster.cluster.leader._leader.imports
    charged: list[int] = []
    touches: Callable[..., Any] = imports.touches

    def counted(*arguments: Any) -> Any:
        charged.append((yield from touches(*arguments)))
        return charged[-1]

    monkeypatch.setattr(imports, "touches", counted)
    cluster.imported(many(10))
    cluster.imported(many(10))
    assert charged == [10, 0]


def key(name: str, value: bytes = b"v") -> KeyRecord:
    return KeyRecord(name, value, 0, 0, 1)


def test_keys_are_imported_once_with_revisions_of_this_log(cluster: ImportCluster) -> None:
    keys = [key("b"), key("a"), key("n/c", b"")]
    reply = cluster.imported([*topic(), *keys], tokensAbove=10**12)
    assert (reply["written"], reply["conflicts"]) == (5, [])
    image = cluster.image
    here = image.coordination.keys
    assert {name: here[name].value for name in ("a", "b", "n/c")} == {
        "a": b"v",
        "b": b"v",
        "n/c": b"",
    }
    assert here["b"].mod_revision + 1 == here["a"].mod_revision == here["a"].create_revision
    assert here["n/c"].version == 1
    assert image.coordination.token_base + image.offset > 10**12
    again = cluster.imported([*topic(), *keys], tokensAbove=10**12)
    assert (again["written"], again["same"]) == (0, 5)
    assert cluster.image.offset == image.offset
    cluster.cluster.assert_equal()


def test_many_keys_are_one_transaction_and_their_revisions_are_offsets(
    cluster: ImportCluster,
) -> None:
    before = cluster.image.offset
    cluster.imported([key(f"{n:05}", bytes(500)) for n in range(1_000)], tokensAbove=10**9)
    image = cluster.image
    revisions = {each.mod_revision for each in image.coordination.keys.values()}
    written = cluster.cluster.records(before)
    kinds = [type(each) for each in written]
    assert kinds[0] is BeginTransactionRecord
    assert revisions == {before + n for n, each in enumerate(written) if type(each) is KeyRecord}
    assert image.coordination.token_base > 0
    cluster.cluster.assert_equal()


def test_a_lower_token_writes_nothing(cluster: ImportCluster) -> None:
    before = cluster.image.offset
    cluster.imported([], tokensAbove=0)
    assert cluster.image.offset == before
    cluster.imported([], tokensAbove=10**9)
    assert cluster.image.offset > before


KEY_CONFLICTS = [
    ([key("there", b"other")], "key there", "another value"),
    ([key("a"), key("a")], "key a", "twice"),
    ([key("")], "key ", "0 bytes"),
    ([key("x" * 1025)], "key x", "1025 bytes"),
    ([key("a\x07")], "key a", "U+0007"),
    ([key("a", bytes(1 << 20))], "key a", "the most are"),
    ([key(f"{n}") for n in range(6)], "keys", "no room for more keys"),
]


@pytest.mark.parametrize(("records", "name", "why"), KEY_CONFLICTS, ids=lambda x: str(x)[:30])
def test_a_key_that_differs_stops_the_whole_import(
    records: Sequence[Record], name: str, why: str
) -> None:
    cluster = ImportCluster(coordination=CoordinationLimits(keys=6))
    cluster.imported([key("there")])
    offset = cluster.image.offset
    reply = cluster.imported([*records, key("other")], tokensAbove=10**9)
    assert reply["written"] == 0
    (conflict,) = reply["conflicts"]
    assert conflict["name"].startswith(name)
    assert why in conflict["why"]
    assert cluster.image.offset == offset
