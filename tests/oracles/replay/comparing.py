"""Holds an image of ours against Kafka's, record by record and field by field.

Both are shown as the records of a snapshot at the highest level, so that no field is left out. Then
only what is known to differ is made alike (`_alike`); each such rule has its reason beside it.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final

from kafka_listener.projection.record_versions import is_shown
from metadata.features import LOGBERG_VERSION
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_to_records
from metadata.records import (
    DIRECTORY_MIGRATING,
    AbortTransactionRecord,
    FeatureLevelRecord,
)
from metadata.uuids import uuid_text
from tests.oracles.replay.differences import KEPT_CONFIG, LOST_CREDENTIAL, Excuses
from tests.oracles.replay.projection import LogBatch, in_kafkas_words

_HIGHEST: Final = 33
_REGISTER_BROKER, _PARTITION, _FEATURE, _QUOTA, _PRODUCER_IDS, _REGISTER_CONTROLLER = (
    *(0, 3, 12, 14, 15),
    27,
)
_MIGRATING: Final = uuid_text(DIRECTORY_MIGRATING)
Facts = dict[str, dict[str, Any]]
"""What an image says: the fields of each entry, by a key that names the entry."""
_KEYS: Final[dict[int, tuple[str, ...]]] = {
    _REGISTER_BROKER: ("brokerId",),
    2: ("topicId",),
    _PARTITION: ("topicId", "partitionId"),
    4: ("resourceType", "resourceName", "name"),
    10: ("tokenId",),
    11: ("name", "mechanism"),
    _QUOTA: ("entity", "key"),
    _PRODUCER_IDS: (),
    18: ("id",),
    _REGISTER_CONTROLLER: ("controllerId",),
}
"""The fields that name an entry, by Kafka's type id."""
_TAGGED: Final[dict[str, Any]] = {
    "leaderRecoveryState": 0,
    "eligibleLeaderReplicas": [],
    "lastKnownElr": [],
    "logDirs": [],
    "cordonedLogDirs": None,
}
"""Kafka's tagged fields, with their defaults as `_alike` has them."""


def replay(batches: Sequence[LogBatch], flush: Sequence[int]) -> Iterator[MetadataImage]:
    """Yield our image after each batch whose number is in `flush`."""
    image = EMPTY
    delta = MetadataDelta(image)
    for number, batch in enumerate(batches):
        delta.replay_all(batch.records, batch.base_offset)
        delta.finish_batch(batch.end_offset, batch.epoch, batch.timestamp_ms)
        if number in flush:
            image = delta.apply()
            yield image
            delta = MetadataDelta(image)


def our_facts(image: MetadataImage) -> Facts:
    """Return what our image says. While a transaction is open: what it said before."""
    if image.transaction is not None:
        image = _without_transaction(image)
    facts: Facts = {}
    for record in image_to_records(image, for_brokers=True):
        if is_shown(record) and not isinstance(record, FeatureLevelRecord):
            number, _, fields = in_kafkas_words(record, _HIGHEST)
            _add(facts, number, fields)
    for name, level in image.features.levels.items():
        if name != LOGBERG_VERSION:
            facts[f"{_FEATURE} {name}"] = {"featureLevel": level}
    return facts


def kafkas_facts(shown: dict[str, Any]) -> Facts:
    """Return what Kafka's image says, from the oracle's answer."""
    facts: Facts = {}
    for number, fields in shown["records"]:
        if number != _FEATURE:
            _add(facts, number, fields)
    for name, level in shown["features"].items():
        facts[f"{_FEATURE} {name}"] = {"featureLevel": level}
    return facts


def differences(ours: Facts, kafkas: Facts, excused: Excuses) -> tuple[list[str], list[str]]:
    """Return a sentence for each entry that differs, and the kinds of those that may differ."""
    wrong, documented = [], []
    for key in sorted({*ours, *kafkas}):
        if ours.get(key) == kafkas.get(key):
            continue
        kind = excused.get(key)
        if (kind == KEPT_CONFIG and key not in ours) or (
            kind == LOST_CREDENTIAL and key not in kafkas
        ):
            documented.append(kind)
            continue
        wrong.append(f"{key}: {_fields_that_differ(ours.get(key), kafkas.get(key))}")
    return wrong, documented


def _fields_that_differ(ours: dict[str, Any] | None, kafkas: dict[str, Any] | None) -> str:
    if ours is None or kafkas is None:
        return "Kafka alone has it" if ours is None else "Kafka lacks it"
    return ", ".join(
        f"{name} ours {ours.get(name)!r}, Kafka's {kafkas.get(name)!r}"
        for name in sorted({*ours, *kafkas})
        if ours.get(name) != kafkas.get(name)
    )


def _without_transaction(image: MetadataImage) -> MetadataImage:
    """Return the image as a new epoch would leave it; nothing of that epoch is compared."""
    delta = MetadataDelta(image)
    delta.replay(AbortTransactionRecord(), image.offset)
    delta.finish_batch(image.offset + 1, image.epoch, image.timestamp_ms)
    return delta.apply()


def _add(facts: Facts, number: int, fields: dict[str, Any]) -> None:
    row = _alike(number, dict(fields))
    name = " ".join(json.dumps(row[field], sort_keys=True) for field in _KEYS[number])
    facts[f"{number} {name}".strip()] = row


def _alike(number: int, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields in one form. What is not said here is compared as it is."""
    if number in (_REGISTER_BROKER, _REGISTER_CONTROLLER):
        # Kafka holds end points and features in maps, and directories as a sorted list.
        for part in ("endPoints", "features"):
            fields[part] = sorted(fields[part], key=lambda each: each["name"])
        for part in ("logDirs", "cordonedLogDirs"):
            if fields.get(part) is not None:
                fields[part] = sorted(fields[part])
    if number == _PARTITION:
        # Of a partition without directories none is known: Kafka says so for each replica.
        fields["directories"] = fields["directories"] or [_MIGRATING] * len(fields["replicas"])
        for part in ("eligibleLeaderReplicas", "lastKnownElr"):
            fields[part] = fields.get(part) or []
    if number == _QUOTA:
        fields["entity"] = sorted(fields["entity"], key=lambda each: each["entityType"])
        fields["value"] = float(fields["value"])
    if number == _PRODUCER_IDS:
        # Kafka's image keeps the next id only, not whose block came last.
        fields = {"nextProducerId": fields["nextProducerId"]}
    # Kafka's JSON leaves out tagged fields that have their default; ours writes them.
    return {
        name: value
        for name, value in fields.items()
        if name not in _TAGGED or value != _TAGGED[name]
    }
