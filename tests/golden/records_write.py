"""Writes tests/golden/records.json: `python -m tests.golden.records_write`.

Rule: write the file anew only to add a record or a version. A vector in it never changes, since
logs with those bytes exist.
"""

import json
from pathlib import Path

from metadata.codec import encode_records
from metadata.messages.records_json import record_to_json
from metadata.records import (
    DIRECTORY_LOST,
    DIRECTORY_UNASSIGNED,
    AbortTransactionRecord,
    AccessControlEntryRecord,
    AccessTokenRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    AttemptDetail,
    AttemptOutcome,
    AttemptsRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    BridgeRecord,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    CertificateRevocationRecord,
    ClearElrRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ClusterKeyRecord,
    ConfigRecord,
    ConfigResourceType,
    ControllerEndpoint,
    ControllerFeature,
    DelegationTokenRecord,
    EndSessionRecord,
    EndTransactionRecord,
    EntityData,
    EntryRecord,
    EpochStartRecord,
    EpochVoter,
    FeatureLevelRecord,
    FenceBrokerRecord,
    FencingChange,
    HeadKeyRecord,
    HeadSignature,
    JoinTokenRecord,
    KeyRecord,
    KRaftVersionRecord,
    LegacyBrokerRecord,
    NoOpRecord,
    OutcomeFloorRecord,
    PartitionChangeRecord,
    PartitionRecord,
    ProducerIdsRecord,
    PseudonymRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveAccessControlEntryRecord,
    RemoveAccessTokenRecord,
    RemoveCertificateRevocationRecord,
    RemoveDelegationTokenRecord,
    RemoveEntryRecord,
    RemoveJoinTokenRecord,
    RemoveKeyRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    RequestOutcomeRecord,
    ScramMechanism,
    SessionRecord,
    ShutdownOffsetRecord,
    SignedHeadRecord,
    SubjectErasedRecord,
    SubjectKeysRecord,
    TokenBaseRecord,
    TopicRecord,
    UnfenceBrokerRecord,
    UnregisterBrokerRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    Voter,
    VoterEndpoint,
    VoterKRaftVersions,
    VotersRecord,
    ZkMigrationState,
    ZkMigrationStateRecord,
)

PATH = Path(__file__).with_name("records.json")


def uuid(start: int) -> bytes:
    return bytes(range(start, start + 16))


A, B, C = uuid(0x10), uuid(0x20), uuid(0x30)
VOTERS = (EpochVoter(1, A), EpochVoter(2, B), EpochVoter(3, C))

_SEVERAL_ATTEMPTS = AttemptsRecord(
    2**31 - 1,
    B,
    1,
    AttemptOutcome.WOULD_BE_REFUSED,
    AttemptDetail.METADATA,
    "*",
    "",
    "",
    "*",
    "",
    "*",
    "UNAUTHENTICATED",
    "",
    0,
    0,
    1,
    1,
    "",
    "",
    "",
    "",
)
VECTORS: list[tuple[str, list[Record]]] = [
    ("no record at all", []),
    (
        "a broker with everything",
        [
            RegisterBrokerRecord(
                broker_id=1,
                incarnation_id=A,
                broker_epoch=2**40,
                end_points=(
                    BrokerEndpoint("PLAINTEXT", "localhost", 9092, 0),
                    BrokerEndpoint("TLS", "rack-a.example", 65535, 1),
                ),
                features=(BrokerFeature("metadata.version", 7, 25),),
                rack="rack-ä",
                fenced=False,
                in_controlled_shutdown=True,
                log_dirs=(B, C),
                is_migrating_zk_broker=True,
                cordoned_log_dirs=(C,),
            )
        ],
    ),
    ("a broker with the least", [RegisterBrokerRecord(2147483647, A, 0, (), (), None)]),
    ("a broker that is forgotten", [UnregisterBrokerRecord(1, 300)]),
    ("a topic", [TopicRecord("orders", A)]),
    ("a topic whose name has 40 bytes", [TopicRecord("o" * 40, A)]),
    (
        "a partition, not reassigned, without ELR",
        [PartitionRecord(0, A, (1, 2, 3), (1, 2), (), (), 1, 0, 0)],
    ),
    (
        "a partition with everything",
        [
            PartitionRecord(
                partition_id=70000,
                topic_id=A,
                replicas=(1, 2, 3),
                isr=(2,),
                removing_replicas=(1,),
                adding_replicas=(3,),
                leader=-1,
                leader_epoch=128,
                partition_epoch=65536,
                leader_recovery_state=1,
                directories=(B, DIRECTORY_UNASSIGNED, DIRECTORY_LOST),
                eligible_leader_replicas=(),
                last_known_elr=(1,),
            )
        ],
    ),
    ("a config", [ConfigRecord(ConfigResourceType.TOPIC, "orders", "retention.ms", "1000")]),
    ("a config that is deleted", [ConfigRecord(ConfigResourceType.BROKER, "", "a.b", None)]),
    ("a config of a kind without a name", [ConfigRecord(77, "x", "y", "")]),
    ("a change that touches nothing", [PartitionChangeRecord(0, A)]),
    (
        "a change of everything",
        [PartitionChangeRecord(1, A, (2,), 2, (2, 3), (1,), (3,), 0, (B, C), (3,), (1,))],
    ),
    (
        "a change that clears every list and takes the leader away",
        [PartitionChangeRecord(2, A, (), -1, (), (), (), 1, (), (), ())],
    ),
    ("the old way to fence", [FenceBrokerRecord(3, 44)]),
    ("the old way to unfence", [UnfenceBrokerRecord(3, 44)]),
    ("a topic that is deleted", [RemoveTopicRecord(A)]),
    (
        "a delegation token",
        [DelegationTokenRecord("User:a", "User:b", ("User:c",), 1, 2**41, -1, "token")],
    ),
    (
        "a SCRAM credential",
        [
            UserScramCredentialRecord(
                "alice", ScramMechanism.SCRAM_SHA_256, b"salt", b"stored", b"", 4096
            )
        ],
    ),
    ("a feature", [FeatureLevelRecord("metadata.version", 14)]),
    ("a feature that is removed", [FeatureLevelRecord("group.version", 0)]),
    (
        "a quota",
        [
            ClientQuotaRecord(
                (EntityData("user", "alice"), EntityData("client-id", None)),
                "producer_byte_rate",
                1048576.0,
                False,
            )
        ],
    ),
    ("a quota that is removed", [ClientQuotaRecord((), "k", 0.1, True)]),
    ("a block of producer ids", [ProducerIdsRecord(1, -1, 1000)]),
    ("a broker is fenced", [BrokerRegistrationChangeRecord(1, 7, FencingChange.FENCE)]),
    ("a broker is unfenced", [BrokerRegistrationChangeRecord(1, 7, FencingChange.UNFENCE)]),
    (
        "a broker begins to stop, loses a directory and has none cordoned",
        [BrokerRegistrationChangeRecord(1, 7, 0, 1, (B,), ())],
    ),
    ("a broker cordons a directory", [BrokerRegistrationChangeRecord(1, 7, 0, 0, (), (B,))]),
    (
        "a partition with replicas out of sync that may lead",
        [PartitionRecord(1, A, (1, 2), (1,), (), (), 1, 2, 3, 0, (B, C), (2,), ())],
    ),
    (
        "an ACL",
        [
            AccessControlEntryRecord(
                A,
                AclResourceType.TOPIC,
                "orders",
                AclPatternType.PREFIXED,
                "User:alice",
                "*",
                AclOperation.READ,
                AclPermissionType.ALLOW,
            )
        ],
    ),
    ("an ACL that is removed", [RemoveAccessControlEntryRecord(A)]),
    ("nothing happens", [NoOpRecord()]),
    ("a migration that never was", [ZkMigrationStateRecord(ZkMigrationState.NONE)]),
    (
        "a SCRAM credential that is removed",
        [RemoveUserScramCredentialRecord("alice", ScramMechanism.SCRAM_SHA_512)],
    ),
    (
        "a transaction that is committed, in one batch",
        [BeginTransactionRecord("create"), TopicRecord("a", A), EndTransactionRecord()],
    ),
    (
        "transactions without and with reasons",
        [
            BeginTransactionRecord(),
            AbortTransactionRecord(),
            BeginTransactionRecord(""),
            AbortTransactionRecord("no"),
        ],
    ),
    ("a delegation token that is removed", [RemoveDelegationTokenRecord("token")]),
    (
        "a controller",
        [
            RegisterControllerRecord(
                1,
                A,
                False,
                (ControllerEndpoint("CONTROLLER", "::1", 19091, 1),),
                (ControllerFeature("kraft.version", 0, 1),),
            )
        ],
    ),
    (
        "an access token is made, revoked and forgotten",
        [
            AccessTokenRecord(
                "0001020304050607", "User:é", "", bytes(range(32)), "User:b", 1, 2**41, -1, ""
            ),
            AccessTokenRecord(
                "0001020304050607", "User:é", "ci", bytes(range(32)), "User:b", 1, 2**41, 7, "x"
            ),
            RemoveAccessTokenRecord("0001020304050607"),
        ],
    ),
    (
        "a join token is made, used and forgotten",
        [
            JoinTokenRecord(
                "t", bytes(32), 1, 7, ("::1", "a"), "User:b", 1, 2**41, -1, -1, b"", b""
            ),
            JoinTokenRecord(
                "t", bytes(32), 2, 7, (), "User:b", 1, 2**41, 3, 4, b"\x00\xff", b"0\x82"
            ),
            RemoveJoinTokenRecord("t"),
        ],
    ),
    (
        "certificates are revoked, and one is taken back",
        [
            CertificateRevocationRecord(1, "0AFF", -1, "User:b", 2**41),
            CertificateRevocationRecord(2, "Broker:7", 2**41, "User:b", 2**41),
            RemoveCertificateRevocationRecord(1, "0AFF"),
        ],
    ),
    ("a controller that is forgotten", [UnregisterControllerRecord(1)]),
    ("ELR of a topic is emptied, then of all", [ClearElrRecord("orders"), ClearElrRecord("")]),
    (
        "what was answered",
        [RequestOutcomeRecord(A, bytes(range(32)), b"\x81\xa1a\x01", 1763000000000)],
    ),
    ("the log names the cluster key", [ClusterKeyRecord(bytes(range(8)))]),
    (
        "the log names a tree of subjects' keys, and a subject is erased",
        [
            SubjectKeysRecord(bytes(range(8)), bytes(8)),
            SubjectErasedRecord("user:é", (bytes(8), b"\xff" * 8)),
        ],
    ),
    ("a person gets a pseudonym", [PseudonymRecord("p-aaaaaaaaaaaaa", bytes(range(53)))]),
    (
        "a session enters a group, an election and a lock, and ends",
        [
            SessionRecord(A, 2**31 - 1, "User:a", "worker", 2**40),
            EntryRecord(1, "shards", "é", A, b"", False, 2**40 + 1, 2**40 + 1, 2**40 + 1),
            EntryRecord(2, "leader", "1", A, bytes(range(256)), False, 3, -1, 4),
            EntryRecord(3, "printer", "1", A, b"\x00", True, 5, 6, 7),
            RemoveEntryRecord(3, "printer", "1", A),
            EndSessionRecord(A, 2),
        ],
    ),
    (
        "a key of the coordination store, and one that is gone",
        [KeyRecord("a/b", b"\xff", 1, 2**40, 7), RemoveKeyRecord("é")],
    ),
    ("tokens are lifted above imported ones", [TokenBaseRecord(2**62)]),
    (
        "a bridge to a source, and the brokers that the source knows",
        [
            BridgeRecord(2, "zookeeper://zk:2181/é", "c", 2**40, 7, 2**41, "User:a"),
            LegacyBrokerRecord(1, 2**40, ("PLAINTEXT://b1:9092",), None, False),
            LegacyBrokerRecord(2**31 - 1, -1, (), "r", True),
        ],
    ),
    (
        "refused attempts of one kind, and of so many that they are not told apart",
        [
            AttemptsRecord(
                1,
                A,
                7,
                AttemptOutcome.REFUSED,
                AttemptDetail.RESPONSE,
                "User:é",
                "Broker:7",
                "token",
                "create_topics",
                "topic:a",
                "10.0.0.7",
                "TOPIC_AUTHORIZATION_FAILED",
                "CREATE on TOPIC a",
                2**41,
                2**41 + 1,
                2**40,
                2**41,
                "POST /v1/topics",
                "c",
                "00" * 32,
                "403 no",
            ),
            _SEVERAL_ATTEMPTS,
        ],
    ),
    (
        "keys that sign heads, and a head that a majority signed",
        [
            HeadKeyRecord(1, A, 0, bytes(range(32)), b"", b""),
            HeadKeyRecord(2**31 - 1, B, 2, bytes(32), bytes(64), bytes(range(64))),
            SignedHeadRecord(
                "logberg/é/2",
                2**40,
                bytes(range(32)),
                (HeadSignature(1, bytes(range(32)), bytes(64)), HeadSignature(2, b"", b"\x00")),
            ),
        ],
    ),
    ("the cluster begins", [ClusterGenerationRecord(1, "")]),
    (
        "what stands in snapshots only: an epoch, a shutdown, what was let go",
        [EpochStartRecord(2**31, 2**40, 1), ShutdownOffsetRecord(1, 2**40), OutcomeFloorRecord(A)],
    ),
    ("an epoch begins", [BeginEpochRecord(1, VOTERS, VOTERS[:2])]),
    ("the quorum's version", [KRaftVersionRecord(1)]),
    (
        "the voters",
        [
            VotersRecord(
                (
                    Voter(
                        1,
                        A,
                        (VoterEndpoint("CONTROLLER", "10.0.0.1", 19091),),
                        VoterKRaftVersions(0, 1),
                    ),
                    Voter(2, B, (), VoterKRaftVersions(1, 1)),
                )
            )
        ],
    ),
]


def render() -> str:
    """The file: each vector on a few lines."""
    vectors = [
        {
            "what": what,
            "hex": encode_records(records).hex(),
            "records": [record_to_json(record, show_secrets=True) for record in records],
        }
        for what, records in VECTORS
    ]
    return json.dumps(vectors, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(render(), encoding="utf-8")
