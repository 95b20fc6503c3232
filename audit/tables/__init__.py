"""The tables of the audit, column by column, as both engines return them.

Rule: `embedded` and `spark` must return the same columns, in the same order, with the same values.
A job is a function from a log to rows of one table. Tests compare the engines on generated
histories.

Definitions that all tables share:

- A record *counts* when it is settled: it stands outside of a transaction, or its transaction
  ended. It counts from the batch that settles it: its own, or the batch of EndTransactionRecord.
  `settled_base` is that batch's base offset, `settled_ms` its timestamp. A transaction is aborted
  by AbortTransactionRecord, or by the BeginEpochRecord of a new epoch. Records of aborted
  transactions and of the open one appear in `log` with their outcome, and count nowhere else. A
  transaction is its records from Begin to End or Abort, both included. BeginEpochRecord stands
  outside of it.
- The state *at offset N* consists of the batches that begin before N. So does every table "up to
  N". The state *at a time* is that at the end of the last batch whose timestamp is not later.
- Times are those of batches, in milliseconds since 1970 UTC. `day` is the UTC date of a time, as
  `YYYY-MM-DD`. The *horizon* is the timestamp of the last batch. An interval that has not ended
  there is counted up to the horizon; its `until_ms` and `until_offset` are null.
- Topic ids have the same text as everywhere in Logberg (`metadata.uuids.uuid_text`).
- All changes that settle in one batch are one moment. A batch closes an interval, not a record, so
  no interval is empty in offsets. It may be empty in time (0 ms), and is kept.
- A partition is *offline* while its leader is -1. It is *under min ISR* while its ISR is smaller
  than `min.insync.replicas`: the topic's config, else the cluster's default (the broker config of
  the empty name), else 1. A change of that config begins a new interval if it changes the number. A
  value of the config counts only if it is 1 to 9 ASCII digits and at least 1. Removing a topic
  removes its config.
- A log that does not begin at offset 0 is counted from its first checkpoint, at offset C. What the
  checkpoint holds is a fact of offset C - 1 and of the checkpoint's timestamp, and no event. `log`,
  `batches`, `integrity` and `divergence` begin where the log begins.
- Of several replicas, a job reads the one with the longest log, and of equals the first. `batches`,
  `integrity` and `divergence` read all of them.
- Rows are ordered by their first columns, as many as `key` says; text by code points.
"""

from audit.tables.columns import (
    BOOL,
    BYTES,
    DATE,
    INT,
    INTS,
    TEXT,
    TIME,
    AuditTable,
    Column,
)
from audit.tables.jobs import (
    ATTEMPTS,
    AVAILABILITY,
    BATCHES,
    BROKER_INTERVALS,
    BY_NAME,
    CHANGES,
    DIVERGENCE,
    GRANTS,
    INTEGRITY,
    LOG,
    PARTITION_EVENTS,
    PARTITION_INTERVALS,
    PRIVILEGED,
    STATE_COUNTS,
    TABLES,
)
from audit.tables.kept import BRONZE, CONFIG_EVENTS, FINDINGS, KEPT, kept_form

__all__ = [
    "ATTEMPTS",
    "AVAILABILITY",
    "BATCHES",
    "BOOL",
    "BROKER_INTERVALS",
    "BRONZE",
    "BYTES",
    "BY_NAME",
    "CHANGES",
    "CONFIG_EVENTS",
    "DATE",
    "DIVERGENCE",
    "FINDINGS",
    "GRANTS",
    "INT",
    "INTEGRITY",
    "INTS",
    "KEPT",
    "LOG",
    "PARTITION_EVENTS",
    "PARTITION_INTERVALS",
    "PRIVILEGED",
    "STATE_COUNTS",
    "TABLES",
    "TEXT",
    "TIME",
    "AuditTable",
    "Column",
    "kept_form",
]
