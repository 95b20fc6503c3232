"""The types of what a record's class declares beside its fields.

Rule: each fact about a record is declared once, on its class: the level that it needs, the columns
that it fills, whether it is privileged. Everything that lists records reads it from there.
"""

import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

from metadata.features import METADATA_VERSION

if TYPE_CHECKING:
    from metadata.records.security import AccessControlEntryRecord


class Need(NamedTuple):
    """The feature level without which a record, or one of its fields, is not written."""

    feature: str
    level: int
    field: str = ""
    """The field that needs the level if its value is not `default`; empty: the record itself."""
    default: Any = None
    uses: Callable[[Any], bool] | None = None
    """Instead of `default`: whether a value of the field needs the level."""

    def applies_to(self, record: object) -> bool:
        """Return whether a record needs the level."""
        if not self.field:
            return True
        value = getattr(record, self.field)
        return value != self.default if self.uses is None else self.uses(value)


def metadata_level(level: int, *fields: str, default: Any = None) -> tuple[Need, ...]:
    """Return the needs of these fields, or of the record itself, for a level of metadata.version.

    `default` is the value with which a field does not need the level.
    """
    return tuple(Need(METADATA_VERSION, level, field, default) for field in fields or ("",))


REDACTED: Final = "***"
"""Replaces a secret wherever a record is shown."""

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
"""The columns of the audit's table of all records, beside time, principal and reason."""

Columns = Mapping[Column, str | Callable[[Any], Any]]
"""For each column that a record fills: the field's name, or a function of the record."""


class Condition(NamedTuple):
    """A condition on a column of a record. A column that is None meets no condition."""

    column: Column
    test: Callable[[Any, Any], Any] | None = None
    """A function of the column and `value`, such as `operator.ge`; None: any value passes."""
    value: Any = None


class Privileged(NamedTuple):
    """Declares that a record is a privileged change, which an auditor asks about first."""

    kind: str
    when: tuple[Condition, ...] = ()
    """All of them must hold; empty: the record is always privileged."""


class KnownNames(Protocol):
    """Names of ids, from the records up to the present one and from that one."""

    acls: dict[bytes, "AccessControlEntryRecord"]
    """By id, with the entries that were removed."""
    token_owners: dict[str, str]
    """The owner's principal, by the id of a delegation token."""

    def shown(self, topic_id: bytes) -> str:
        """Return a topic's name; if it is not known, its id as text."""


UNCLEAN_LEADER: Final = Privileged(
    "unclean_election",
    (Condition("leader_recovery_state", operator.eq, 1), Condition("leader", operator.ge, 0)),
)
"""The election of a leader that may have lost records (KIP-704). Such a leader begins in the
recovery state RECOVERING, 1."""


def user_words(principal: str) -> tuple[str, ...]:
    """Return the subject `user:alice` for the principal `User:alice`; nothing for other kinds."""
    kind, _, name = principal.partition(":")
    return (f"user:{name}",) if kind == "User" else ()
