"""The feature level that each record needs before it may be written.

Rule: only the active controller asks, and only before it writes. Replay never asks: what stands in
a log was allowed when it was written.

Our log holds one version of each record, with all its fields. Its level in Kafka's terms is that
of the lowest version of Kafka's schema that holds the fields in use: a PartitionRecord needs level
17 for directories, and 23 only when it names eligible leader replicas.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from metadata.features import BASE, METADATA_VERSION, described
from metadata.records import (
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    DelegationTokenRecord,
    KRaftVersionRecord,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RemoveDelegationTokenRecord,
    UnregisterControllerRecord,
    UserScramCredentialRecord,
    VotersRecord,
)


class Need(NamedTuple):
    """A record, or one of its fields when it holds more than its default, needs a level."""

    feature: str
    level: int
    field: str = ""
    """Empty: the record itself."""
    default: Any = None


def _metadata(level: int, *fields: str, default: Any = None) -> tuple[Need, ...]:
    return tuple(Need(METADATA_VERSION, level, field, default) for field in fields or ("",))


_ELR_FIELDS: Final = ("eligible_leader_replicas", "last_known_elr")
NEEDS: Final[Mapping[type[Record], tuple[Need, ...]]] = {
    RegisterBrokerRecord: (
        *_metadata(17, "log_dirs", default=()),
        *_metadata(30, "cordoned_log_dirs"),
    ),
    BrokerRegistrationChangeRecord: (
        *_metadata(17, "log_dirs", default=()),
        *_metadata(30, "cordoned_log_dirs"),
    ),
    PartitionRecord: (*_metadata(17, "directories", default=()), *_metadata(23, *_ELR_FIELDS)),
    PartitionChangeRecord: (*_metadata(17, "directories"), *_metadata(23, *_ELR_FIELDS)),
    UserScramCredentialRecord: _metadata(11),
    DelegationTokenRecord: _metadata(14),
    RemoveDelegationTokenRecord: _metadata(14),
    RegisterControllerRecord: _metadata(15),
    KRaftVersionRecord: _metadata(21),
    VotersRecord: _metadata(21),
    ClearElrRecord: _metadata(23),
    UnregisterControllerRecord: _metadata(33),
}
"""What needs a level. A record that is not here needs none above the lowest level we support; one
that a later release adds stands here with the level that brings it."""


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
