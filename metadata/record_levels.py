"""The feature level that each record needs before it may be written.

Rule: only the active controller asks, and only before it writes. Replay never asks: what stands in
a log was allowed when it was written.

Our log holds one version of each record, with all its fields. Its level in Kafka's terms is that
of the lowest version of Kafka's schema that holds the fields in use: a PartitionRecord needs level
17 for directories, and 23 only when it names eligible leader replicas.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from metadata.features import BASE, described
from metadata.records import RECORD_CLASSES, Record
from metadata.records.declaring import Need

NEEDS: Final[Mapping[type[Record], tuple[Need, ...]]] = {
    record: record.NEEDS for record in RECORD_CLASSES if record.NEEDS
}
"""What needs a level. A record that is not here needs none above the lowest level we support; one
that a later release adds names the level that brings it."""


def needs_above(levels: Mapping[str, int]) -> dict[type[Record], tuple[Need, ...]]:
    """Return what may not be written at these finalised levels.

    A log without levels is one of 0.1's: what 0.1 wrote may be written.
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
    """Return which of the closed `needs` a record has; empty when it may be written."""
    for need in needs:
        if not need.field or getattr(record, need.field) != need.default:
            return (
                f"{_named(type(record), need)} needs {described(need.feature, need.level)}, which "
                "is not finalised: raise it with `logberg features upgrade "
                f"{need.feature}={need.level}`"
            )
    return ""


def brought_between(feature: str, low: int, high: int) -> list[str]:
    """Return the records and fields that the levels above `low`, up to `high`, brought."""
    return [
        _named(record, need)
        for record, needs in NEEDS.items()
        for need in needs
        if need.feature == feature and low < need.level <= high
    ]


def _named(record: type[Record], need: Need) -> str:
    return record.__name__ + (f" with {need.field}" if need.field else "")
