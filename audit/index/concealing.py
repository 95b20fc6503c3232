"""Records as the index keeps them: without secrets, but so that a changed secret is a change.

Rule: each secret is replaced by its keyed digest. Equal secrets have equal digests within one
index. The record stays one that says which of its fields are secret, so whoever shows it stars it.
"""

from functools import cache
from hashlib import blake2b
from typing import Any

import msgspec

from metadata.codec import encode_records
from metadata.records import Record
from metadata.sealed_texts import SEALED_TEXT

_DIGEST_BYTES = 12


class Concealing:
    """Encodes records without their secrets."""

    def __init__(self, key: bytes) -> None:
        """`key`: drawn for one index, up to 64 bytes."""
        self._key = key

    def encoded(self, records: tuple[Record, ...]) -> bytes:
        """Return the encoding of records, each secret replaced."""
        return encode_records(
            [self.concealed(one) if _may_have_secrets(type(one)) else one for one in records]
        )

    def concealed(self, record: Record) -> Record:
        """Return a record with digests in the place of its secrets."""
        names = record.secret_fields()
        if not names:
            return record
        return msgspec.structs.replace(
            record, **{name: self._digest(getattr(record, name)) for name in names}
        )

    def _digest(self, secret: Any) -> Any:
        if isinstance(secret, bytes):
            return self._bytes(b"b" + secret)
        if isinstance(secret, str):
            # The prefix marks the value as a secret, whatever its config is called.
            return SEALED_TEXT + self._bytes(b"t" + secret.encode()).hex()
        return secret if secret is None else type(secret)()

    def _bytes(self, secret: bytes) -> bytes:
        return blake2b(secret, key=self._key, digest_size=_DIGEST_BYTES).digest()


@cache
def _may_have_secrets(kind: type[Record]) -> bool:
    return kind.secret_fields is not Record.secret_fields
