"""Which events a record becomes, with which words and traits."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from audit.findings.event_making import EventMaker
from audit.findings.events import KINDS, TRAITS, AuditEvent
from audit.reading.settling import SETTLED, Logged, Moment
from controller.leader.idempotency import Answer, RequestKey, outcome_record
from ledger.batch import BatchHeader, Provenance
from metadata.messages.errors import ErrorReply
from metadata.messages.topics import CreatedTopic, CreateTopicsReply
from metadata.records import (
    AccessControlEntryRecord,
    AccessTokenRecord,
    BeginEpochRecord,
    BrokerRegistrationChangeRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    ConfigRecord,
    DelegationTokenRecord,
    JoinTokenRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveTopicRecord,
    TopicRecord,
    UserScramCredentialRecord,
    VotersRecord,
)
from metadata.uuids import uuid7

TOPIC, ENTRY, PROCESS = b"t" * 16, b"e" * 16, b"p" * 16
ALICE = Provenance("User:alice", "token", "", "10.0.0.1", operation="Op", reason="because")
ALL, READ, CLUSTER_ACTION, ALLOW, DENY = 2, 3, 9, 3, 2


def entry(
    operation: int = READ,
    kind: int = 2,
    name: str = "orders",
    principal: str = "User:kim",
    permission: int = ALLOW,
    pattern: int = 3,
) -> Record:
    return AccessControlEntryRecord(
        ENTRY, kind, name, pattern, principal, "*", operation, permission
    )


def config(key: str, value: str | None, name: str = "orders", kind: int = 2) -> Record:
    return ConfigRecord(kind, name, key, value)


def created(leader: int = 1) -> list[Record]:
    partition = PartitionRecord(0, TOPIC, (1, 2), (1, 2), (), (), leader, 0, 0)
    return [TopicRecord("orders", TOPIC), partition]


def leads(leader: int, recovery: int = -1) -> Record:
    return PartitionChangeRecord(0, TOPIC, leader=leader, leader_recovery_state=recovery)


def registered(incarnation: bytes = PROCESS, *, fenced: bool = True) -> Record:
    return RegisterBrokerRecord(7, incarnation, 1, (), (), None, fenced)


def answered(codes: Sequence[str]) -> Record:
    """The outcome of a request as the controller remembers it; one more topic was created."""
    refused = [CreatedTopic("t", ErrorReply(code, "whoseFault")) for code in codes]
    reply = CreateTopicsReply((*refused, CreatedTopic("whoseFault")), 9)
    answer = Answer(200, msgspec.msgpack.encode(reply), 9, 1)
    return outcome_record(RequestKey(b"r" * 16, b"d" * 32), answer, 0)


def made(*moments: Sequence[Record], by: Provenance = ALICE) -> list[AuditEvent]:
    """Return the events of the last moment, without `activity`."""
    maker, offset = EventMaker(), 0
    events: list[AuditEvent] = []
    for number, records in enumerate(moments):
        header = BatchHeader(offset, len(records), 1, 1_000 * number, by, b"")
        logged = [
            Logged(offset + n, header, record, SETTLED, offset, header.timestamp_ms)
            for n, record in enumerate(records)
        ]
        maker = EventMaker(maker.carried())
        events = maker.step(Moment(offset, header.timestamp_ms, logged))
        offset += len(records)
    return [event for event in events if event.kind != "activity"]


SCRAM = UserScramCredentialRecord("kim", 1, b"s", b"k", b"k", 4_096)
TOKEN = DelegationTokenRecord("User:job", "User:job", (), 1, 2, 3, "tok")
ACCESS = AccessTokenRecord("id", "User:kim", "", b"h", "User:root", 1, 2, -1, "")
JOIN = JoinTokenRecord("id", b"h", 1, 7, ("a",), "User:root", 1, 2, -1, -1, b"", b"")
CASES: list[tuple[list[Sequence[Record]], list[Any]]] = [
    ([[entry()]], ["acl_added", "User:kim", "allow READ on TOPIC orders"]),
    ([[entry(ALL)]], ["acl_added", "User:kim", "allow ALL on TOPIC orders", "wide"]),
    ([[entry(name="*")]], ["acl_added", "User:kim", "allow READ on TOPIC *", "wide"]),
    ([[entry(principal="User:*")]], ["acl_added", "User:*", "allow READ on TOPIC orders", "wide"]),
    ([[entry(8, name="*")]], ["acl_added", "User:kim", "allow DESCRIBE on TOPIC *"]),
    (
        [[entry(CLUSTER_ACTION, 4, "c")]],
        ["acl_added", "User:kim", "allow CLUSTER_ACTION on CLUSTER c", "wide"],
    ),
    ([[entry(12, 4, "c")]], ["acl_added", "User:kim", "allow IDEMPOTENT_WRITE on CLUSTER c"]),
    (
        [[entry(pattern=4, name="")]],
        ["acl_added", "User:kim", "allow READ on TOPIC prefix ", "wide"],
    ),
    (
        [[entry(ALL, permission=DENY)]],
        ["acl_added", "User:kim", "deny ALL on TOPIC orders", "deny"],
    ),
    (
        [[entry(ALL)], [RemoveAccessControlEntryRecord(ENTRY)]],
        ["acl_removed", "User:kim", "allow ALL on TOPIC orders"],
    ),
    (
        [[entry(permission=DENY)], [RemoveAccessControlEntryRecord(ENTRY)]],
        ["acl_removed", "User:kim", "deny READ on TOPIC orders", "deny", "wide"],
    ),
    ([[SCRAM]], ["user_set", "User:kim", ""]),
    ([[TOKEN]], ["token_set", "User:job", ""]),
    ([[ACCESS]], ["token_set", "User:kim", ""]),
    ([[replace(ACCESS, revoked_ms=5)]], ["token_removed", "User:kim", ""]),
    ([[JOIN]], ["token_set", "Broker:7", ""]),
    ([[replace(JOIN, role=2)]], ["token_set", "Controller:7", ""]),
    ([[replace(JOIN, used_ms=5)]], ["token_removed", "Broker:7", ""]),
    ([[replace(JOIN, revoked_ms=5)]], ["token_removed", "Broker:7", ""]),
    ([[TOKEN], [RemoveDelegationTokenRecord("tok")]], ["token_removed", "User:job", ""]),
    ([[config("min.insync.replicas", "2")]], ["config_set", "", "2", "raised"]),
    (
        [[config("min.insync.replicas", "2")], [config("min.insync.replicas", "1")]],
        ["config_set", "", "1", "lowered"],
    ),
    (
        [[config("min.insync.replicas", "2")], [config("min.insync.replicas", None)]],
        ["config_removed", "", "", "lowered"],
    ),
    (
        [
            [config("min.insync.replicas", "3", "", 4)],
            [config("min.insync.replicas", "2")],
            [config("min.insync.replicas", None)],
        ],
        ["config_removed", "", "", "raised"],
    ),
    ([[config("min.insync.replicas", "many")]], ["config_set", "", "many"]),
    ([[config("retention.ms", "1")]], ["config_set", "", "1", "lowered"]),
    ([[config("retention.ms", "-1")]], ["config_set", "", "-1", "raised"]),
    (
        [[config("retention.ms", "-1")], [config("retention.ms", "604800001")]],
        ["config_set", "", "604800001", "lowered"],
    ),
    ([[config("ssl.keystore.password", "x", "1", 4)]], ["config_set", "", "***", "secret"]),
    (
        [[config("unclean.leader.election.enable", "true")]],
        ["unclean_allowed", "", "true", "unclean"],
    ),
    ([[config("unclean.leader.election.enable", "false")]], ["unclean_allowed", "", "false"]),
    ([[config("unclean.leader.election.enable", None)]], ["config_removed", "", ""]),
    ([created(), [leads(-1)]], ["leader_lost", "", ""]),
    ([created(), [leads(-1)], [leads(2)]], ["leader_found", "", "broker 2"]),
    ([created(), [leads(2)]], []),
    ([created(), [leads(-1)], [leads(-1)]], []),
    ([created(), [leads(-2)]], []),
    ([created(), [leads(2, 1)]], ["unclean_elected", "", "broker 2"]),
    ([[registered()]], ["broker_registered", "", ""]),
    (
        [[registered()], [BrokerRegistrationChangeRecord(7, 1, -1)]],
        ["broker_unfenced", "", ""],
    ),
    ([[registered()], [BrokerRegistrationChangeRecord(7, 1, 1)]], []),
    (
        [[registered(fenced=False)], [BrokerRegistrationChangeRecord(7, 1, 1)]],
        ["broker_fenced", "", ""],
    ),
    ([[VotersRecord(())]], ["voters_set", "", "voters "]),
    ([[VotersRecord(())], [VotersRecord(())]], ["voters_set", "", "voters ", "replaced"]),
    ([[ClusterGenerationRecord(1, "")]], ["voters_set", "", "generation 1"]),
    ([[ClusterGenerationRecord(2, "fire")]], ["voters_set", "", "generation 2", "replaced"]),
    ([[ClusterKeyRecord(b"k")], [ClusterKeyRecord(b"k")]], ["key_set", "", "key 6b"]),
    ([[ClusterKeyRecord(b"k")], [ClusterKeyRecord(b"l")]], ["key_set", "", "key 6c", "replaced"]),
    ([[BeginEpochRecord(3, (), ())]], ["epoch_begun", "", ""]),
    ([[answered(["INVALID_TOPIC", "INVALID_TOPIC"])]], ["refused", "", "INVALID_TOPIC"]),
    ([[answered([])]], []),
]


@pytest.mark.parametrize(("moments", "expected"), CASES)
def test_a_record_s_event(moments: list[Sequence[Record]], expected: list[Any]) -> None:
    events = made(*moments)
    assert [[one.kind, one.grantee, one.what, *one.traits] for one in events] == (
        [expected] if expected else []
    )


def test_deleting_a_topic_ends_what_its_partitions_lack_and_its_configs() -> None:
    lost = [*created(), config("retention.ms", "5")]
    events = made(lost, [leads(-1)], [RemoveTopicRecord(TOPIC)])
    assert [(one.kind, one.subject) for one in events] == [
        ("topic_removed", "topic:orders"),
        ("leader_found", "partition:orders-0"),
    ]
    gone = [RemoveTopicRecord(TOPIC)]
    again = [TopicRecord("orders", b"u" * 16)]
    assert made(lost, gone, again, [config("retention.ms", "9")])[-1].traits == ("lowered",)


def test_what_a_topic_s_creation_sets_is_no_change() -> None:
    events = made([*created(), config("retention.ms", "5")])
    assert [one.traits for one in events if one.kind == "config_set"] == [()]


def test_who_asked_and_what_the_controllers_did_themselves() -> None:
    (mine,) = made([entry()])
    assert (mine.caller.principal, mine.caller.address) == ("User:alice", "10.0.0.1")
    assert mine.caller.reason == "because"
    (theirs,) = made([entry()], by=Provenance("Controller:1", "internal"))
    assert theirs.traits == ("internal",)
    (silent,) = made([entry()], by=Provenance("User:alice", "token"))
    assert silent.traits == ("unexplained",)


@pytest.mark.parametrize("apart_ms", [-700_000, -59_000, 0, 59_000, 700_000])
def test_clocks_are_compared_by_the_request_s_id(apart_ms: int) -> None:
    drawn = Provenance("User:a", "token", request_id=uuid7(1_000_000_000 - apart_ms, 5))
    header = BatchHeader(0, 1, 1, 1_000_000_000, drawn, b"")
    logged = Logged(0, header, entry(), SETTLED, 0, header.timestamp_ms)
    events = EventMaker().step(Moment(0, header.timestamp_ms, [logged]))
    apart = [one.amount for one in events if one.kind == "clock_apart"]
    assert apart == ([apart_ms] if abs(apart_ms) >= 60_000 else [])


def test_kinds_and_marks_are_explained() -> None:
    events = [event for moments, _ in CASES for event in made(*moments)]
    assert {one.kind for one in events} <= KINDS.keys()
    assert {trait for one in events for trait in one.traits} <= TRAITS.keys()
