"""The tables that `logberg audit run` returns, from both engines.

Rule: the columns, their order and their values are the same from both engines. `audit.tables` has
the definitions that all tables share.
"""

from typing import Final

from audit.tables.columns import AuditTable, columns_of

_WHO = "principal:text on_behalf_of:text request_id:text operation:text reason:text"

LOG: Final = AuditTable(
    "log",
    1,
    columns_of(
        "offset:int timestamp_ms:int day:text epoch:int base_offset:int auth_method:text "
        f"client_address:text client_id:text {_WHO} type:text version:int "
        "outcome:text settled_base:int? settled_ms:int? topic_id:text? topic_name:text? "
        "partition:int? broker_id:int? resource:text? fields:text acted_as:text"
    ),
    ("Every record, settled or not, with what it is about in words that people type."),
)

PARTITION_EVENTS: Final = AuditTable(
    "partition_events",
    3,
    columns_of(
        "topic_id:text partition:int offset:int topic_name:text settled_base:int settled_ms:int "
        f"day:text kind:text leader:int? isr:ints? replicas:ints? {_WHO}",
        {
            "kind": "`created`, `changed` or `removed`.",
            "leader": "The new leader; -1: nobody; null: unchanged, or removed.",
            "isr": "The new in-sync replicas; null: unchanged, or removed.",
            "replicas": "The new replicas; null: unchanged, or removed.",
        },
    ),
    (
        "What happened to partitions. `kind` is `created` (PartitionRecord, also one that "
        "writes a partition anew), `changed` (any PartitionChangeRecord) or `removed` (one "
        "row for each partition of a removed topic, at the offset of its RemoveTopicRecord). "
        "A null means unchanged, or removed. `day` is that of `settled_ms`."
    ),
)

PARTITION_INTERVALS: Final = AuditTable(
    "partition_intervals",
    3,
    columns_of(
        "topic_id:text partition:int from_offset:int topic_name:text until_offset:int? "
        "from_ms:int until_ms:int? leader:int isr:ints replicas:ints min_isr:int "
        "offline:bool under_min_isr:bool"
    ),
    (
        "The state of each partition, from each change of leader, ISR, replicas or min ISR to "
        "the next. The offsets are base offsets of the batches that settled the changes. If a "
        "moment leaves a partition as it was, no interval begins."
    ),
)

BROKER_INTERVALS: Final = AuditTable(
    "broker_intervals",
    2,
    columns_of(
        "broker_id:int from_offset:int until_offset:int? from_ms:int until_ms:int? state:text"
    ),
    (
        "`state`: `fenced`, else `stopping` (in controlled shutdown), else `online`, as "
        "registrations say. Below `logberg.version` 1 a registration of the same incarnation "
        "keeps the state. Each interval lasts from one change of state to the next, compared "
        "at the end of each moment. An unregistered broker has no interval."
    ),
)

AVAILABILITY: Final = AuditTable(
    "availability",
    3,
    columns_of(
        "kind:text key:text day:text present_ms:int offline_ms:int under_min_isr_ms:int "
        "fenced_ms:int leader_changes:int",
        {
            "kind": "`partition` or `broker`.",
            "key": "The partition as `TOPICNAME-PARTITION@TOPICID`, or the broker's id.",
        },
    ),
    (
        "By day. `kind` is `partition` with key `TOPICNAME-PARTITION@TOPICID`, or `broker` "
        "with its id. A leader change is any difference of leader between an interval of a "
        "partition and the next one, at the next one's `from_ms`; a creation is none. An "
        "interval counts on the days from that of its `from_ms` to that of its last "
        "millisecond, an empty one on the first. Days without an interval have no row. "
        "Columns that don't apply to a kind are 0: brokers are never offline or under min "
        "ISR, partitions never fenced."
    ),
)

CHANGES: Final = AuditTable(
    "changes",
    4,
    columns_of(
        "day:text principal:text operation:text type:text count:int first_offset:int "
        "last_offset:int first_ms:int last_ms:int"
    ),
    ("Who changed what, by day. Settled records only, by the time of their own batch."),
)

PRIVILEGED: Final = AuditTable(
    "privileged",
    1,
    columns_of(
        f"offset:int timestamp_ms:int day:text kind:text subject:text {_WHO} auth_method:text "
        "client_address:text acted_as:text fields:text",
        {
            "kind": (
                "`acl`, `user`, `token`, `unclean_election`, `feature`, `voters`, `key`, "
                "`erasure` or `quota`."
            ),
            "subject": "What was changed, in one word, such as `acl:ID` or `user:alice`.",
        },
    ),
    (
        "Settled changes that an auditor asks about first, by the time of their own batch. "
        "`kind`: `acl` (added or removed), `user` (SCRAM, set or removed; a revocation of "
        "certificates, set or taken back), `token` (a delegation token, set or removed; an access "
        "token or a join token, set, but not that the log forgets one that ended), "
        "`unclean_election` (PartitionRecord or PartitionChangeRecord that names a "
        "leader, 0 or more, and the recovery state RECOVERING; or a ConfigRecord that gives "
        "unclean.leader.election.enable a value), `feature` (FeatureLevelRecord, "
        "KRaftVersionRecord), `voters` (VotersRecord, ClusterGenerationRecord), `key` "
        "(ClusterKeyRecord, HeadKeyRecord, SubjectKeysRecord), `erasure` (SubjectErasedRecord), "
        "`quota`."
    ),
)

GRANTS: Final = AuditTable(
    "grants",
    2,
    columns_of(
        "resource:text token:int id:text session_id:text owner:text client_name:text "
        "from_offset:int from_ms:int until_offset:int? until_ms:int? ended_by:text",
        {
            "resource": "What was granted, such as `lock:nightly`.",
            "token": "The fencing token. Tokens of one resource strictly increase.",
            "id": "The entry's id in its group, election or lock.",
            "session_id": "The id of the session that held it.",
            "owner": "The principal of the session.",
            "client_name": "The name that the session's client gave itself.",
            "ended_by": "Why the session ended, or which operation removed the entry.",
        },
    ),
    (
        "Who held which lock, led which election or was a member of which group. `resource` "
        "is such as `lock:nightly`; `token` is the fencing token. A grant lasts from the "
        "moment of its first record to the moment that removes its entry; the two `until` "
        "columns are null while it is held. `owner` is the principal of the session. "
        "`ended_by` says why the session ended if it ended in the same moment, else which "
        "operation removed the entry; it is empty while the grant is held."
    ),
)

ATTEMPTS: Final = AuditTable(
    "attempts",
    1,
    columns_of(
        "offset:int timestamp_ms:int day:text outcome:text principal:text through:text "
        "auth_method:text operation:text resource:text client_address:text code:text reason:text "
        "count:int first_ms:int last_ms:int controller_id:int detail:text request:text "
        "client_id:text body_sha256:text answer:text",
        {
            "outcome": "`refused`, `would_be_refused` (rights are only logged) or `accepted`.",
            "principal": "Who tried; empty: nobody who was authenticated; `*`: several.",
            "operation": "What was tried, such as `create_topics` or `login`; `*`: several.",
            "resource": "What it was about, such as `topic:orders`; empty: nothing by name.",
            "client_address": (
                "From where: an address, a /64 network of IPv6, `unix socket`, or `*`: several."
            ),
            "reason": "The right or the credential that was missing.",
            "count": "How many attempts there were, exactly.",
            "first_ms": "When the first of them came, by the clock of the controller.",
            "last_ms": "When the last of them came.",
        },
    ),
    (
        "Refused attempts: who tried what, from where, why it was refused, and how often. A row is "
        "what one controller counted in one interval, of one kind. Where there were too many kinds "
        "to tell apart, fields are `*` and the count goes on. The settings say what is recorded "
        "(ADR 0090)."
    ),
)

BATCHES: Final = AuditTable(
    "batches",
    2,
    columns_of(
        "replica:text base_offset:int segment:text count:int epoch:int timestamp_ms:int "
        "previous_hash:text hash:text crc_ok:bool"
    ),
    (
        "Each frame of each replica as it lies on disk, also one with a wrong CRC. `segment` "
        "is the file's name without its folder; hashes are in hexadecimal. `hash` is that of "
        "the bytes on disk. A segment's rows end where no next frame can be found: at a bad "
        "head, or where the file ends inside a frame."
    ),
)

INTEGRITY: Final = AuditTable(
    "integrity",
    2,
    columns_of(
        "replica:text base_offset:int segment:text kind:text sentence:text",
        {"kind": "`crc`, `gap`, `chain`, `epoch` or `time`."},
    ),
    (
        "What is wrong with a replica's batches. Each frame is compared with the frame before "
        "it. If several things are wrong, `kind` is the first of `crc`, `gap`, `chain`, "
        "`epoch`, `time`. The first frame is compared with the beginning of the cluster if "
        "the log begins at offset 0, otherwise with nothing. A segment whose rows end too "
        "early gives a `gap` at the next segment's first frame. The last segment gives "
        "nothing then: it may be a running node's tail. `sentence` is that of "
        '`LogMark.objection` in `ledger/chain.py`, or "the checksum is wrong".'
    ),
)

DIVERGENCE: Final = AuditTable(
    "divergence",
    2,
    columns_of("base_offset:int replica:text hash:text agreed_hash:text?"),
    (
        "Replicas whose batch differs from the majority's at the same base offset, up to the "
        "lowest log end (the lowest end of a last frame). `agreed_hash` is null if there is "
        "no majority. Each replica has one row at most, at its first such offset. A majority "
        "is more than half of the replicas that have a frame at that base offset; a replica "
        "without a frame there is not named."
    ),
)

STATE_COUNTS: Final = AuditTable(
    "state",
    1,
    columns_of("table:text entries:int shared_hash:text controllers_hash:text"),
    (
        "The state at an offset. Each table of the image (`TABLES` in `metadata/image/families.py`)"
        " has a row with its number of entries and its part of the state hash: 32 bytes in "
        "hexadecimal, the sums modulo 2^256. One of the two is always 0. The row `*` holds "
        "the totals."
    ),
)

TABLES: Final = (
    LOG,
    PARTITION_EVENTS,
    PARTITION_INTERVALS,
    BROKER_INTERVALS,
    AVAILABILITY,
    CHANGES,
    PRIVILEGED,
    GRANTS,
    ATTEMPTS,
    BATCHES,
    INTEGRITY,
    DIVERGENCE,
    STATE_COUNTS,
)
BY_NAME: Final = {table.name: table for table in TABLES}
"""Each is a job of `logberg audit run`."""
