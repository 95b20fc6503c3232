"""Columns that need a record's own bytes: its subject, its fields, a broker's incarnation.

Rule: `audit.questions.subjects` computes them; here executors call it. The functions skip null, so
a caller passes the bytes only of the few records that need it.
"""

from typing import Final

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import StringType

from audit.questions import subjects
from audit.questions.names import Names
from metadata.codec import decode_record
from metadata.features import LITERAL_AMENDMENTS_FROM, LOGBERG_VERSION
from metadata.records import FeatureLevelRecord, RegisterBrokerRecord

LITERAL: Final = "literal"
RESTORED: Final = "restored"
_NO_NAMES = Names()


def _resource(record: bytes | None) -> str | None:
    return None if record is None else subjects.resource(decode_record(record), _NO_NAMES)


def _fields(record: bytes | None) -> str | None:
    return None if record is None else subjects.fields_text(decode_record(record))


def _incarnation(record: bytes | None) -> str | None:
    if record is None:
        return None
    registration = decode_record(record)
    assert isinstance(registration, RegisterBrokerRecord)
    return registration.incarnation_id.hex()


def _amendments(record: bytes | None) -> str | None:
    if record is None:
        return None
    level = decode_record(record)
    assert isinstance(level, FeatureLevelRecord)
    if level.name != LOGBERG_VERSION:
        return None
    return LITERAL if level.feature_level >= LITERAL_AMENDMENTS_FROM else RESTORED


resource = F.udf(_resource, StringType(), useArrow=True)
"""The first subject of a record that has no topic id."""
fields = F.udf(_fields, StringType(), useArrow=True)
"""A record's data as JSON, with secrets starred."""
incarnation = F.udf(_incarnation, StringType(), useArrow=True)
"""The incarnation id of a RegisterBrokerRecord, in hexadecimal."""
amendments = F.udf(_amendments, StringType(), useArrow=True)
"""What a FeatureLevelRecord makes of repeated registrations: `literal`, `restored` (ADR 0015),
or null if it is about another feature."""
