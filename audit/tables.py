"""The tables of the audit: what both engines answer, column by column.

Rule: this is the law for `embedded` and `spark`: same columns, same order, same values. A job is a
function from a log to rows of one of these tables; the engines are compared on generated histories.

Words that all of them share:

- A record *counts* when it is settled: it stands outside of a transaction, or in one that was
  ended. It counts from the batch that settles it (its own, or that of EndTransactionRecord):
  `settled_base` is that batch's base offset, `settled_ms` its timestamp. Records of aborted
  transactions (by AbortTransactionRecord, or by the BeginEpochRecord of a new epoch) and of the
  open one are shown in `log`, with their outcome, and counted nowhere else.
- The state *at offset N* is made of the batches that begin before N; so is every table that was
  asked for "up to N". The state *at a time* is that at the end of the last batch whose timestamp is
  not later.
- Times are milliseconds since 1970 UTC and are those of batches. `day` is the UTC date of a time,
  as `YYYY-MM-DD`. What is still so at the end of what was asked for ends at the *horizon*: the
  timestamp of the last batch; `until_ms` and `until_offset` are then null.
- Ids of topics are written as everywhere in Quorate (`metadata.uuids.uuid_text`).
- Changes that settle in one batch are one moment: an interval is closed by a batch, not by a
  record, so none is empty in offsets. It may be empty in time (0 ms), and is kept.
- A partition is *offline* while its leader is -1; *under min ISR* while its ISR is smaller than
  `min.insync.replicas`: the topic's config, else the cluster's default (the broker config of the
  empty name), else 1. A change of that config begins a new interval where it changes the number.
- Rows are ordered by their first columns, as far as `key` says.
"""

from typing import Final, NamedTuple

TEXT: Final = "text"
INT: Final = "int"
INTS: Final = "ints"
BOOL: Final = "bool"


class Column(NamedTuple):
    """A column: `kind` is TEXT, INT (64 bits), INTS (a list of INT) or BOOL."""

    name: str
    kind: str
    nullable: bool = False


class AuditTable(NamedTuple):
    """A table; `key` is how many columns, from the first, order its rows and tell them apart."""

    name: str
    key: int
    columns: tuple[Column, ...]


def _columns(spec: str) -> tuple[Column, ...]:
    """Read `name:kind` pairs; a question mark behind the kind means that it may be null."""
    columns = []
    for word in spec.split():
        name, _, kind = word.partition(":")
        columns.append(Column(name, kind.rstrip("?"), kind.endswith("?")))
    return tuple(columns)


_WHO = "principal:text on_behalf_of:text request_id:text operation:text reason:text"

LOG: Final = AuditTable(
    "log",
    1,
    _columns(
        "offset:int timestamp_ms:int day:text epoch:int base_offset:int auth_method:text "
        f"client_address:text client_id:text {_WHO} type:text version:int "
        "outcome:text settled_base:int? settled_ms:int? topic_id:text? topic_name:text? "
        "partition:int? broker_id:int? resource:text? fields:text"
    ),
)
"""Every record. `outcome`: `settled`, `aborted`, `open`. `resource`: what it is about, in one word
for people and filters: `topic:orders`, `broker:3`, `config:topic:orders:retention.ms`,
`acl:ID`, `user:NAME`, `feature:NAME`, `quota:…`; see `audit/subjects.py`. `fields`: the
record as JSON, secrets starred."""

PARTITION_EVENTS: Final = AuditTable(
    "partition_events",
    3,
    _columns(
        "topic_id:text partition:int offset:int topic_name:text settled_base:int settled_ms:int "
        f"day:text kind:text leader:int? isr:ints? replicas:ints? {_WHO}"
    ),
)
"""What happened to partitions: `kind` is `created`, `changed` or `removed` (one row for each
partition of a removed topic). Null: untouched."""

PARTITION_INTERVALS: Final = AuditTable(
    "partition_intervals",
    3,
    _columns(
        "topic_id:text partition:int from_offset:int topic_name:text until_offset:int? "
        "from_ms:int until_ms:int? leader:int isr:ints replicas:ints min_isr:int "
        "offline:bool under_min_isr:bool"
    ),
)
"""How each partition was, from each change of leader, ISR, replicas or min ISR to the next. The
offsets are base offsets of the batches that settled it."""

BROKER_INTERVALS: Final = AuditTable(
    "broker_intervals",
    2,
    _columns(
        "broker_id:int from_offset:int until_offset:int? from_ms:int until_ms:int? state:text"
    ),
)
"""`state`: `fenced`, `online`, `stopping` (in controlled shutdown), as registrations say it. An
unregistered broker has no interval."""

AVAILABILITY: Final = AuditTable(
    "availability",
    3,
    _columns(
        "kind:text key:text day:text present_ms:int offline_ms:int under_min_isr_ms:int "
        "fenced_ms:int leader_changes:int"
    ),
)
"""By day: `kind` `partition` with key `TOPICNAME-PARTITION@TOPICID`, or `broker` with its id. A
leader change is a change of leader to another broker or to none; a creation is none."""

CHANGES: Final = AuditTable(
    "changes",
    4,
    _columns(
        "day:text principal:text operation:text type:text count:int first_offset:int "
        "last_offset:int first_ms:int last_ms:int"
    ),
)
"""Who changed what, by day; settled records only, by the time of their own batch."""

PRIVILEGED: Final = AuditTable(
    "privileged",
    1,
    _columns(f"offset:int timestamp_ms:int day:text kind:text subject:text {_WHO} fields:text"),
)
"""Changes that an auditor asks about first. `kind`: `acl` (added or removed), `user` (SCRAM),
`token`, `unclean_election` (a partition got a leader in state recovering, or
unclean.leader.election.enable was set), `feature`, `voters`, `quota`."""

BATCHES: Final = AuditTable(
    "batches",
    2,
    _columns(
        "replica:text base_offset:int segment:text count:int epoch:int timestamp_ms:int "
        "previous_hash:text hash:text crc_ok:bool"
    ),
)
"""Each frame of each replica as it lies on disk; hashes in hexadecimal."""

INTEGRITY: Final = AuditTable(
    "integrity",
    2,
    _columns("replica:text base_offset:int segment:text kind:text sentence:text"),
)
"""What is wrong with a replica's batches. `kind`: `crc`, `chain`, `gap`, `epoch`, `time`."""

DIVERGENCE: Final = AuditTable(
    "divergence",
    2,
    _columns("base_offset:int replica:text hash:text agreed_hash:text?"),
)
"""Replicas whose batch differs from the majority's at the same base offset, up to the lowest log
end; `agreed_hash` is null where there is no majority. Only the first such offset of each."""

STATE_COUNTS: Final = AuditTable(
    "state",
    1,
    _columns("table:text entries:int shared_hash:text controllers_hash:text"),
)
"""The state at an offset: for each table of the image its entries and what it adds to the state
hash (32 bytes in hexadecimal, the sums modulo 2^256); the row `*` holds the totals."""

TABLES: Final = (
    LOG,
    PARTITION_EVENTS,
    PARTITION_INTERVALS,
    BROKER_INTERVALS,
    AVAILABILITY,
    CHANGES,
    PRIVILEGED,
    BATCHES,
    INTEGRITY,
    DIVERGENCE,
    STATE_COUNTS,
)
BY_NAME: Final = {table.name: table for table in TABLES}
"""Each is a job of `quorate audit run`."""
