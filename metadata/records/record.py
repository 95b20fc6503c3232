"""What every record is: a frozen fact that encodes as `[kind, field, field, ...]`.

Rule: one class is one version of one record type. `kind` is `TYPE_ID * 100 + VERSION`, so that
one integer names both and one union decoder reads a whole batch (three times the speed of
decoding each record by itself). Fields without a default stand first, in the order of Kafka's
schema; fields with a default follow. A field's place never changes within a version.

A class also declares what other parts of Logberg ask about its records (the attributes in capitals
and the methods below). What a record does to an image is written in `metadata.image`.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

import msgspec

from metadata.records.declaring import Column, Columns, KnownNames, Need, Privileged

VERSIONS_PER_TYPE = 100
"""`kind` divided by this is the type id, and the remainder is the version."""

Codes = Mapping[str, type[IntEnum]]
"""The names of a field's integers, by field. A code without a name is legal: it stays a number."""


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A fact in the metadata log."""

    TYPE_ID: ClassVar[int]
    """Kafka's record id below 1000; ours from 1000; 2000 + Kafka's control type for those."""
    VERSION: ClassVar[int]
    """The version of Kafka's schema whose fields the class has."""
    SNAPSHOT_ONLY: ClassVar[bool] = False
    """It stands in snapshots only; in a log it is refused."""
    CODES: ClassVar[Codes] = {}
    NEEDS: ClassVar[tuple[Need, ...]] = ()
    """The feature levels without which the record, or a field of it, is not written."""
    PRIVILEGED: ClassVar[Privileged | None] = None
    COLUMNS: ClassVar[Columns] = {}
    """What the record says in a table that has records of all types."""
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ()
    """The kinds of the words that `subjects` returns, such as `broker` for `broker:7`."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        """Return the words for what the record is about, the narrowest first; none: nothing.

        People type these words, and filters match them: `partition:orders-3`, `topic:orders`.
        `names` knows the records before this one, and this one.
        """
        return self.SUBJECT_KINDS

    def secret_fields(self) -> tuple[str, ...]:
        """Return the fields that hold a secret: who sees them can log in, or guess passwords.

        What prints records stars them unless it is told to show them.
        """
        return ()

    def column(self, column: Column) -> Any:
        """Return what the record says in a column; None if it says nothing there."""
        source = self.COLUMNS.get(column)
        if source is None:
            return None
        return getattr(self, source) if isinstance(source, str) else source(self)

    def privileged(self) -> str | None:
        """Return which kind of privileged change the record is; None: it is none."""
        rule = self.PRIVILEGED
        if rule is None:
            return None
        for column, test, value in rule.when:
            found = self.column(column)
            if found is None or (test is not None and not test(found, value)):
                return None
        return rule.kind


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A part of a record: an array within the record's array, without a kind."""

    CODES: ClassVar[Codes] = {}
