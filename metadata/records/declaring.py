"""What the class of a record declares beside its fields: the words that a declaration is made of.

Rule: each is declared once, on the record's class, and everything that lists records is derived
from there: which level a record needs, which columns it fills, whether it is privileged.
"""

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from metadata.features import METADATA_VERSION

if TYPE_CHECKING:
    from metadata.records.security import AccessControlEntryRecord


class Need(NamedTuple):
    """A record, or one of its fields when it holds more than its default, needs a level."""

    feature: str
    level: int
    field: str = ""
    """Empty: the record itself."""
    default: Any = None


def metadata_level(level: int, *fields: str, default: Any = None) -> tuple[Need, ...]:
    """Return what needs a level of Kafka's metadata.version: these fields, or the record itself."""
    return tuple(Need(METADATA_VERSION, level, field, default) for field in fields or ("",))


REDACTED: Final = "***"
"""Stands in the place of a secret, wherever a record is shown."""

Column = Literal[
    "topic_id",
    "topic_name",
    "partition",
    "broker_id",
    "leader",
    "leader_recovery_state",
    "isr",
    "replicas",
    "fenced",
    "in_controlled_shutdown",
    "broker_epoch",
    "resource_type",
    "config_key",
    "config_value",
    "name",
]
"""The columns that a table of records of all types has, beside when, who and why."""

Columns = Mapping[Column, str | Callable[[Any], Any]]
"""For each column that a record fills: the field that it is, or what makes it of the record."""


class Condition(NamedTuple):
    """What a column of a record must hold; a column that is None meets no condition."""

    column: Column
    test: Callable[[Any, Any], Any] | None = None
    """An operator, such as `operator.ge`; None: any value will do."""
    value: Any = None


class Privileged(NamedTuple):
    """The record is a change that an auditor asks about first."""

    kind: str
    when: tuple[Condition, ...] = ()
    """All must be met; none: always."""


class KnownNames(Protocol):
    """What the records before one, and it itself, have said of ids."""

    acls: dict[bytes, "AccessControlEntryRecord"]
    """By id; those that were removed, too."""
    token_owners: dict[str, str]
    """Principals, by the id of a delegation token."""

    def shown(self, topic_id: bytes) -> str:
        """Return a topic's name; its id as text if it is not known."""


UNCLEAN_LEADER: Final = Privileged(
    "unclean_election",
    (Condition("leader_recovery_state", operator.eq, 1), Condition("leader", operator.ge, 0)),
)
"""A leader that may have lost records (KIP-704): it begins in the state RECOVERING, 1."""


def user_words(principal: str) -> tuple[str, ...]:
    """Return the subject of a principal that is a user, `user:alice` for `User:alice`."""
    kind, _, name = principal.partition(":")
    return (f"user:{name}",) if kind == "User" else ()
