"""Which fields of a record are secrets: who sees them can log in, or guess passwords in peace.

Rule: what prints records leaves them out unless it is told to show them. A SCRAM credential's
salt and keys are secrets, and so is the value of a config whose name says so. A delegation token's
record holds none: the token's HMAC is made of its id and a key that is in no record (KIP-48).
"""

import re
from typing import Final

from metadata.records import ConfigRecord, Record, UserScramCredentialRecord

REDACTED: Final = "***"
"""Stands in the place of a secret."""

_SECRET_CONFIG: Final = re.compile(
    r"password|passphrase|secret|credential|jaas\.config|keystore\.key$|private\.key", re.IGNORECASE
)
_SECRET_FIELDS: Final[dict[type[Record], tuple[str, ...]]] = {
    UserScramCredentialRecord: ("salt", "stored_key", "server_key"),
}


def secret_fields(record: Record) -> tuple[str, ...]:
    """Return the names of the fields that hold a secret here; a deleted config holds none."""
    if isinstance(record, ConfigRecord):
        hides = record.value is not None and _SECRET_CONFIG.search(record.name)
        return ("value",) if hides else ()
    return _SECRET_FIELDS.get(type(record), ())
