"""The tables that the pipeline keeps, as Delta tables: one below each path of `KEPT`.

Rule: a kept table has the columns of its job, in their order, in the kinds that other tools expect.
What is a time in milliseconds for a job is kept as a timestamp, a day as a date (`kept_form`).
Everything else stays as it is. Tables that no job returns are defined here, in a job's kinds too.
"""

from typing import Final

from audit.tables.columns import DATE, TIME, AuditTable, Column, columns_of
from audit.tables.jobs import (
    AVAILABILITY,
    BROKER_INTERVALS,
    CHANGES,
    PARTITION_EVENTS,
    PARTITION_INTERVALS,
    PRIVILEGED,
)

_WHO: Final = "principal:text on_behalf_of:text request_id:text operation:text reason:text"
_FROM_WHERE: Final = "auth_method:text client_address:text acted_as:text"

BRONZE: Final = AuditTable(
    "bronze",
    1,
    columns_of(
        f"offset:int timestamp_ms:int day:text epoch:int base_offset:int end_offset:int "
        f"{_FROM_WHERE} client_id:text {_WHO} type:text version:int topic_id:text? "
        "topic_name:text? partition:int? broker_id:int? leader:int? leader_recovery_state:int? "
        "isr:ints? replicas:ints? fenced:int? in_controlled_shutdown:int? broker_epoch:int? "
        "resource_type:int? config_key:text? config_value:text? name:text? record:bytes",
        {
            "topic_name": "The topic's name, in records that name a topic themselves.",
            "leader": "The new leader; -1: nobody; null: unchanged.",
            "isr": "The new in-sync replicas; null: unchanged.",
            "replicas": "The new replicas; null: unchanged.",
        },
    ),
    (
        "The log as a table: every record, settled or not, uninterpreted and complete. A column is "
        "null if the record has no such field, or leaves it unchanged. `record` holds secrets, as "
        "the log does; all other columns of all tables have them starred."
    ),
)

CONFIG_EVENTS: Final = AuditTable(
    "config_events",
    1,
    columns_of(
        "offset:int settled_base:int settled_ms:int day:text kind:text name:text config_key:text? "
        f"config_value:text? {_WHO} {_FROM_WHERE}",
        {
            "kind": "`topic`, `broker`, `broker-logger`, `client-metrics` or `group`.",
            "name": "The topic, broker or group; empty: the default of all brokers.",
            "config_key": "The key; null: the topic was removed, and with it all of its configs.",
        },
    ),
    "What happened to configs, one row for each record that counts. `day` is that of `settled_ms`.",
)

FINDINGS: Final = AuditTable(
    "findings",
    2,
    columns_of(
        "offset:int id:text rule:text severity:text subject:text timestamp_ms:int until_ms:int "
        "day:text principal:text on_behalf_of:text auth_method:text client_address:text "
        "acted_as:text operation:text reason:text sentence:text count:int offsets:ints open:bool",
        {
            "offset": "The offset of its first record.",
            "id": "The same whoever reads the log with the same rules.",
            "until_ms": "The time of its last record so far.",
            "count": "How many events it has gathered.",
            "open": "Whether it still gathers events. Such a row is replaced when it has.",
            "rule": "The rule that found it.",
            "severity": "How much it matters.",
            "subject": "What it is about, in one word, such as `user:alice` or `broker:3`.",
            "reason": "The reason that the caller gave, if one did.",
            "sentence": "What happened, in one sentence.",
            "offsets": "The offsets of all records that belong to it.",
        },
    ),
    "What the rules found, as `logberg audit findings` shows it.",
)

KEPT: Final = {
    "bronze": BRONZE,
    "silver/partition_events": PARTITION_EVENTS,
    "silver/partition_intervals": PARTITION_INTERVALS,
    "silver/broker_intervals": BROKER_INTERVALS,
    "silver/config_events": CONFIG_EVENTS,
    "silver/privileged": PRIVILEGED,
    "gold/availability": AVAILABILITY,
    "gold/changes": CHANGES,
    "findings": FINDINGS,
}
"""By path below the pipeline's folder: the tables, in a job's kinds."""

_AS_TIMES: Final = {
    "timestamp_ms": "timestamp",
    "settled_ms": "settled_at",
    "from_ms": "from_at",
    "until_ms": "until_at",
    "first_ms": "first_at",
    "last_ms": "last_at",
}
"""Columns of moments in milliseconds, and their names where they are timestamps. Durations such as
`offline_ms` stay numbers."""


def kept_form(table: AuditTable) -> AuditTable:
    """Return a table as it is kept: the same columns in the same order, with times and dates."""
    return table._replace(columns=tuple(map(_kept_column, table.columns)))


def _kept_column(column: Column) -> Column:
    if column.name in _AS_TIMES:
        return column._replace(name=_AS_TIMES[column.name], kind=TIME)
    if column.name == "day":
        return column._replace(kind=DATE)
    return column
