"""The feature level that each record needs before it may be written.

Rule: only the active controller checks levels, before it writes. Replay never checks them: a record
in the log was allowed when it was written.

Our log holds one version of each record, with all its fields. The level of a record is that of the
lowest version of Kafka's schema that has the fields in use. So a PartitionRecord needs level 17 if
it has directories, and 23 if it names eligible leader replicas.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from metadata.features import BASE, described
from metadata.records import RECORD_CLASSES, Record
from metadata.records.declaring import Need

NEEDS: Final[Mapping[type[Record], tuple[Need, ...]]] = {
    record: record.NEEDS for record in RECORD_CLASSES if record.NEEDS
}
"""The records that need a level. A record that is not here needs none above the lowest level that
we support. A record that a later release adds must name the level that brings it."""


def needs_above(levels: Mapping[str, int]) -> dict[type[Record], tuple[Need, ...]]:
    """Return the needs that these finalised levels don't meet, by record class.

    `levels` maps a feature's name to its level. A log without levels was begun by release 0.1;
    there, only what 0.1 wrote may be written.
    """
    closed = {
        record: tuple(
            need
            for need in needs
            if need.level > levels.get(need.feature, BASE.get(need.feature, 0))
        )
        for record, needs in NEEDS.items()
    }
    return {record: needs for record, needs in closed.items() if needs}


def missing_level(record: Record, needs: Sequence[Need]) -> str:
    """Return a sentence about the first of the unmet `needs` that a record has; empty: none.

    `needs` are those of the record's class in the answer of `needs_above`.
    """
    for need in needs:
        if need.applies_to(record):
            return (
                f"{_named(type(record), need)} needs {described(need.feature, need.level)}, which "
                "is not finalised: raise it with `logberg features upgrade "
                f"{need.feature}={need.level}`"
            )
    return ""


def brought_between(feature: str, low: int, high: int) -> list[str]:
    """Return which records and fields the levels above `low`, up to `high`, brought."""
    return [
        _named(record, need)
        for record, needs in NEEDS.items()
        for need in needs
        if need.feature == feature and low < need.level <= high
    ]


def _named(record: type[Record], need: Need) -> str:
    return record.__name__ + (f" with {need.field}" if need.field else "")
