"""Subjects: what a record is about, in words that people type and filters match.

Rule: the first word is the narrowest one. It is the column `resource` of `audit.tables.LOG`. Wider
words follow (`partition:orders-3`, then `topic:orders`), so a filter for a topic also finds changes
of its partitions, configs and literal ACLs. A topic has the name that it had at that offset.

| word | records |
|---|---|
| `topic:NAME` | topics; ClearElr (`topic:*` where it is all of them) |
| `partition:NAME-NUMBER` | partitions |
| `broker:ID`, `controller:ID` | registrations; also configs of a broker, blocks of producer ids |
| `config:KIND:NAME:KEY` | configs; KIND is topic, broker, broker-logger, client-metrics, group |
| `acl:ID`, `user:NAME`, `token:ID` | ACLs, SCRAM credentials, delegation tokens |
| `quota:TYPE=NAME,…` | client quotas; `<default>` for the default of a type |
| `feature:NAME` | feature levels; `kraft.version` and `zookeeper-migration`, too |
| `producer-ids` | blocks of producer ids |
| `quorum` | voters, epochs and generations of the cluster; requests that another voter lead |
| `request:ID` | outcomes of requests |
| `transaction` | Begin, End and Abort |
| `attempt:OPERATION`, `tried:topic:NAME`, `by:User:NAME`, `from:ADDRESS` | refused attempts |
"""

from typing import NamedTuple

import msgspec

from audit.questions.names import Names
from metadata.messages.records_json import record_to_json
from metadata.records import ConfigRecord, ConfigResourceType, Record
from metadata.uuids import uuid_text


class RecordPlace(NamedTuple):
    """The columns of `audit.tables.LOG` that say where a record belongs; None: nowhere."""

    topic_id: str | None = None
    topic_name: str | None = None
    partition: int | None = None
    broker_id: int | None = None


def resource(record: Record, names: Names) -> str | None:
    """Return the first word, or None.

    `names` must have learned the records before this one, and this one.
    """
    words = record.subjects(names)
    return words[0] if words else None


def place(record: Record, names: Names) -> RecordPlace:
    """Return the columns that say where a record belongs.

    A topic's config and ClearElr have no id.
    """
    columns = record.COLUMNS
    if "topic_id" in columns:
        topic_id = record.column("topic_id")
        return RecordPlace(uuid_text(topic_id), names.topic(topic_id), record.column("partition"))
    if "broker_id" in columns:
        return RecordPlace(broker_id=record.column("broker_id"))
    if "topic_name" in columns:
        return RecordPlace(topic_name=record.column("topic_name") or None)
    if isinstance(record, ConfigRecord) and record.resource_type == ConfigResourceType.TOPIC:
        return RecordPlace(topic_name=record.resource_name)
    return RecordPlace()


def fields_text(record: Record, *, show_secrets: bool = False) -> str:
    """Return the column `fields`: the record's `data` (docs/format/records.md) as compact JSON."""
    data = record_to_json(record, show_secrets=show_secrets)["data"]
    return msgspec.json.encode(data).decode()
