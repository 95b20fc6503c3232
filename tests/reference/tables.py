"""The rows of a state by table, and their order in a checkpoint and in the state hash.

Rule: a row is the record that a checkpoint holds for it, as a plain dict of its fields.
"""

from collections.abc import Callable
from hashlib import sha256
from typing import Any

from tests.reference.schema import Fields, encode_records

Tables = dict[str, dict[Any, Fields]]

TABLES = {
    "features": "FeatureLevelRecord",
    "migration": "ZkMigrationStateRecord",
    "leader": "BeginEpochRecord",
    "generation": "ClusterGenerationRecord",
    "cluster key": "ClusterKeyRecord",
    "kraft version": "KRaftVersionRecord",
    "subject keys": "SubjectKeysRecord",
    "voters": "VotersRecord",
    "epochs": "EpochStartRecord",
    "head keys": "HeadKeyRecord",
    "signed head": "SignedHeadRecord",
    "brokers": "RegisterBrokerRecord",
    "shutdowns": "ShutdownOffsetRecord",
    "controllers": "RegisterControllerRecord",
    "topics": "TopicRecord",
    "partitions": "PartitionRecord",
    "configs": "ConfigRecord",
    "quotas": "ClientQuotaRecord",
    "producer ids": "ProducerIdsRecord",
    "acls": "AccessControlEntryRecord",
    "credentials": "UserScramCredentialRecord",
    "tokens": "DelegationTokenRecord",
    "erasures": "SubjectErasedRecord",
    "pseudonyms": "PseudonymRecord",
    "access tokens": "AccessTokenRecord",
    "revocations": "CertificateRevocationRecord",
    "join tokens": "JoinTokenRecord",
    "token base": "TokenBaseRecord",
    "sessions": "SessionRecord",
    "entries": "EntryRecord",
    "keys": "KeyRecord",
    "bridge": "BridgeRecord",
    "legacy brokers": "LegacyBrokerRecord",
    "attempts": "AttemptsRecord",
    "floor": "OutcomeFloorRecord",
    "outcomes": "RequestOutcomeRecord",
}
"""Each table and the record that its rows are, in the canonical order of a checkpoint."""
BEHIND = {"brokers": "shutdowns", "topics": "partitions"}
"""Tables whose rows stand behind those that they belong to."""
OF_CONTROLLERS_ONLY = (
    "join tokens",
    "token base",
    "sessions",
    "entries",
    "keys",
    "bridge",
    "legacy brokers",
    "attempts",
    "floor",
    "outcomes",
)
ONE = ()
"""The key of a table that holds one row at most."""


def _entity(fields: Fields) -> tuple[Any, ...]:
    """A quota's entity, whatever the order in which its parts were named."""
    return tuple(sorted((kind, name is not None, name or "") for kind, name in fields["entity"]))


KEYS: dict[str, Callable[[Fields], Any]] = {
    "epochs": lambda row: row["epoch"],
    "features": lambda row: row["name"],
    "controllers": lambda row: row["controllerId"],
    "brokers": lambda row: row["brokerId"],
    "shutdowns": lambda row: row["brokerId"],
    "topics": lambda row: row["topicId"],
    "partitions": lambda row: (row["topicId"], row["partitionId"]),
    "configs": lambda row: (row["resourceType"], row["resourceName"], row["name"]),
    "quotas": lambda row: (_entity(row), row["key"]),
    "acls": lambda row: row["id"],
    "credentials": lambda row: (row["name"], row["mechanism"]),
    "tokens": lambda row: row["tokenId"],
    "erasures": lambda row: row["numbers"][0],
    "pseudonyms": lambda row: row["pseudonym"],
    "access tokens": lambda row: row["tokenId"],
    "join tokens": lambda row: row["tokenId"],
    "revocations": lambda row: (row["value"], row["kind"]),
    "sessions": lambda row: row["sessionId"],
    "entries": lambda row: (row["kind"], row["name"], row["id"]),
    "keys": lambda row: row["key"],
    "legacy brokers": lambda row: row["brokerId"],
    "attempts": lambda row: row["life"],
    "head keys": lambda row: row["controllerId"],
    "outcomes": lambda row: row["key"],
}


def key(table: str, row: Fields) -> Any:
    """Return where a row stands in its table; rows are sorted by it."""
    return KEYS[table](row) if table in KEYS else ONE


def snapshot(tables: Tables) -> list[tuple[str, Fields]]:
    """Return the records of a checkpoint, in the order in which they stand there."""
    records: list[tuple[str, Fields]] = []
    for table, record in TABLES.items():
        if table in BEHIND.values():
            continue
        behind = _behind(tables, table)
        for place in sorted(tables[table]):
            records.append((record, tables[table][place]))
            records += behind.get(place, ())
    return records


def _behind(tables: Tables, table: str) -> dict[Any, list[tuple[str, Fields]]]:
    """Rows that follow those of a table, by the key that they follow."""
    groups: dict[Any, list[tuple[str, Fields]]] = {}
    other = BEHIND.get(table)
    for place in () if other is None else sorted(tables[other]):
        owner = place[0] if other == "partitions" else place
        groups.setdefault(owner, []).append((TABLES[other], tables[other][place]))
    return groups


def state_hash(tables: Tables) -> bytes:
    """Return the state hash, 64 bytes: what brokers share, then what controllers hold."""
    sums = [0, 0]
    for table, record in TABLES.items():
        rows = ((record, fields) for fields in tables[table].values())
        for encoded in encode_records(rows):
            digest = int.from_bytes(sha256(encoded).digest(), "big")
            sums[table in OF_CONTROLLERS_ONLY] += digest
    return b"".join((each % 2**256).to_bytes(32, "big") for each in sums)
