"""Where Kafka's image differs from ours, and why. Everything else that differs is a fault.

In both cases Kafka 4.4.0 makes one change out of many batches (a broker that catches up does) and
loses the order of two records. Ours is what the records say; so is Kafka's, batch by batch.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Final

from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    RemoveTopicRecord,
    RemoveUserScramCredentialRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from tests.oracles.replay.projection import LogBatch

KEPT_CONFIG: Final = "kept config"
"""A topic's configs are written and the topic is removed in one change: Kafka keeps the configs.
`ConfigurationsDelta.replay(RemoveTopicRecord)` looks only at the image before the change."""
LOST_CREDENTIAL: Final = "lost credential"
"""One change removes the last credential of a mechanism and adds another: Kafka may lose that one.
`ScramDelta.apply` drops the mechanism's map while it still puts users into it."""
Excuses = dict[str, str]
"""The kind of difference, by the key of the entry that may differ."""

_TOPIC: Final = 2


def excuses(batches: Sequence[LogBatch], flush: Sequence[int]) -> Iterator[Excuses]:
    """Yield, for each image that is compared, the entries that may differ. They stay different."""
    names: dict[bytes, str] = {}
    found: Excuses = {}
    configs: dict[str, set[str]] = {}
    added: set[tuple[str, int]] = set()
    removed: set[int] = set()
    open_transaction = False
    for number, batch in enumerate(batches):
        for record in batch.records:
            if isinstance(record, BeginTransactionRecord):
                open_transaction = True
            elif isinstance(
                record, EndTransactionRecord | AbortTransactionRecord | BeginEpochRecord
            ):
                open_transaction = False
            if isinstance(record, TopicRecord):
                names[record.topic_id] = record.name
            elif isinstance(record, ConfigRecord) and record.resource_type == _TOPIC:
                configs.setdefault(record.resource_name, set()).add(record.name)
            elif isinstance(record, RemoveTopicRecord):
                name = names[record.topic_id]
                for key in configs.get(name, ()):
                    found[f"4 {_TOPIC} {json.dumps(name)} {json.dumps(key)}"] = KEPT_CONFIG
            elif isinstance(record, UserScramCredentialRecord):
                added.add((record.name, record.mechanism))
            elif isinstance(record, RemoveUserScramCredentialRecord):
                removed.add(record.mechanism)
        if number in flush:
            for name, mechanism in added:
                if mechanism in removed:
                    found[f"11 {json.dumps(name)} {mechanism}"] = LOST_CREDENTIAL
            yield dict(found)
            if not open_transaction:
                configs, added, removed = {}, set(), set()
