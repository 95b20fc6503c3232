"""What every record is: a frozen fact that encodes as `[kind, field, field, ...]`.

Rule: one class is one version of one record type. `kind` is `TYPE_ID * 100 + VERSION`, so that
one integer names both and one union decoder reads a whole batch (three times the speed of
decoding each record by itself). Fields without a default stand first, in the order of Kafka's
schema; fields with a default follow. A field's place never changes within a version.
"""

from typing import ClassVar

import msgspec

VERSIONS_PER_TYPE = 100
"""`kind` divided by this is the type id, and the remainder is the version."""


class Record(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A fact in the metadata log."""

    TYPE_ID: ClassVar[int]
    """Kafka's record id below 1000; ours from 1000; 2000 + Kafka's control type for those."""
    VERSION: ClassVar[int]
    """The version of Kafka's schema whose fields the class has."""


class Part(msgspec.Struct, frozen=True, array_like=True, gc=False, forbid_unknown_fields=True):
    """A part of a record: an array within the record's array, without a kind."""
