"""The job `privileged`: the changes that an auditor asks about first.

Rule: what makes a record privileged is in the record itself and written here once.
"""

from typing import Any, Final

from audit.embedded.days import day_of
from audit.embedded.provenance import who
from audit.questions.names import Names
from audit.questions.subjects import fields_text, resource
from audit.reading.feed import Feed, Question
from audit.reading.settling import SETTLED
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ClusterGenerationRecord,
    ConfigRecord,
    DelegationTokenRecord,
    FeatureLevelRecord,
    KRaftVersionRecord,
    LeaderRecoveryState,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    VotersRecord,
)

Row = tuple[Any, ...]

_KINDS: Final[dict[type[Record], str]] = {
    AccessControlEntryRecord: "acl",
    RemoveAccessControlEntryRecord: "acl",
    UserScramCredentialRecord: "user",
    RemoveUserScramCredentialRecord: "user",
    DelegationTokenRecord: "token",
    RemoveDelegationTokenRecord: "token",
    FeatureLevelRecord: "feature",
    KRaftVersionRecord: "feature",
    VotersRecord: "voters",
    ClusterGenerationRecord: "voters",
    ClientQuotaRecord: "quota",
}
_UNCLEAN_CONFIG: Final = "unclean.leader.election.enable"
_PARTITIONS: Final = (PartitionChangeRecord, PartitionRecord)


def privileged(question: Question) -> list[Row]:
    """Return the rows of `audit.tables.PRIVILEGED`."""
    feed = Feed(question)
    beginning = feed.beginning()
    names = Names(beginning.records)
    rows: list[Row] = []
    for logged in feed.logged(beginning):
        names.learn(logged.record)
        if logged.outcome != SETTLED:
            continue
        kind = kind_of(logged.record)
        if kind is None:
            continue
        time_ms, provenance = logged.header.timestamp_ms, logged.header.provenance
        rows.append(
            (
                logged.offset,
                time_ms,
                day_of(time_ms),
                kind,
                resource(logged.record, names),
                *who(provenance),
                provenance.auth_method,
                provenance.client_address,
                logged.header.acted_as,
                fields_text(logged.record),
            )
        )
    return rows


def kind_of(record: Record) -> str | None:
    """Return which kind of privileged change a record is; None: it is none."""
    if isinstance(record, _PARTITIONS):
        recovering = record.leader_recovery_state == LeaderRecoveryState.RECOVERING
        return "unclean_election" if recovering and record.leader >= 0 else None
    if isinstance(record, ConfigRecord):
        unclean = record.name == _UNCLEAN_CONFIG and record.value is not None
        return "unclean_election" if unclean else None
    return _KINDS.get(type(record))
