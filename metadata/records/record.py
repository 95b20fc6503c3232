"""The base class of records. A record is an immutable fact, encoded as `[kind, field, field, ...]`.

Rule: one class is one version of one record type. `kind` is `TYPE_ID * 100 + VERSION`, so that one
integer names both. So one union decoder reads a whole batch, three times as fast as a decoder for
each record. Fields without a default come first, in the order of Kafka's schema; fields with a
default follow. A field's position never changes within a version.

A class also declares what other parts of Logberg need to know about its records: the attributes in
capitals and the methods below. `metadata.image` holds what a record does to an image.
"""

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar

import msgspec

from metadata.records.declaring import Column, Columns, KnownNames, Need, Privileged

VERSIONS_PER_TYPE = 100
"""`kind` divided by this is the type id, and the remainder is the version."""

Codes = Mapping[str, type[IntEnum]]
"""By field: the names of its integers. An integer without a name is allowed and stays a number."""


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A fact in the metadata log."""

    TYPE_ID: ClassVar[int]
    """Below 1000: Kafka's record id. From 1000: ours. From 2000: 2000 + Kafka's control type."""
    VERSION: ClassVar[int]
    """The version of Kafka's schema whose fields the class has."""
    SNAPSHOT_ONLY: ClassVar[bool] = False
    """True: the record is allowed only in snapshots. Replay refuses it in a log."""
    CODES: ClassVar[Codes] = {}
    NEEDS: ClassVar[tuple[Need, ...]] = ()
    """The feature levels without which the record, or one of its fields, is not written."""
    PRIVILEGED: ClassVar[Privileged | None] = None
    COLUMNS: ClassVar[Columns] = {}
    """What the record writes into the columns of the audit's table of all records."""
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ()
    """The kinds of the words that `subjects` returns, such as `broker` for `broker:7`."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        """Return the words for the things that the record is about, the narrowest first.

        People search by these words: `partition:orders-3`, `topic:orders`. `names` has the names
        from the records up to this one and from this one.
        """
        return self.SUBJECT_KINDS

    def secret_fields(self) -> tuple[str, ...]:
        """Return the names of the fields with secrets, such as a credential's keys.

        Code that prints records replaces their values by `***`, unless the caller asks for them.
        """
        return ()

    def column(self, column: Column) -> Any:
        """Return the record's value for a column; None: it has none."""
        source = self.COLUMNS.get(column)
        if source is None:
            return None
        return getattr(self, source) if isinstance(source, str) else source(self)

    def privileged(self) -> str | None:
        """Return the kind of privileged change that the record is; None: it is not privileged."""
        rule = self.PRIVILEGED
        if rule is None:
            return None
        for column, test, value in rule.when:
            found = self.column(column)
            if found is None or (test is not None and not test(found, value)):
                return None
        return rule.kind


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A part of a record: an array inside the record's array, without a kind."""

    CODES: ClassVar[Codes] = {}
