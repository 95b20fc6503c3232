"""Opens what the log holds sealed, because Kafka's brokers know no sealing (ADR 0031, 0038, 0071).

Rule: an opened secret goes into the projected bytes and nowhere else. It is never written to this
controller's disk and never logged. What can't be opened, because this controller has no cluster key
or another one, stays as it is in the log: such a controller does not lead.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from metadata.records import ConfigRecord, Record, UserScramCredentialRecord
from metadata.sealed_blocks import SealingError, key_id_of
from metadata.sealed_places import config_place, scram_place
from metadata.sealed_texts import block_of_text
from metadata.sealing import ClusterKey


class ClearValues:
    """Gives records with their secrets in clear."""

    def __init__(self, key: ClusterKey | None) -> None:
        """`key` None: nothing can be opened."""
        self._key = key
        self.kept_sealed = 0
        """How many records with a secret could not be opened."""

    def of(self, record: Record) -> Record:
        """Return the record with its secrets in clear."""
        open_ = _OPENERS.get(type(record))
        if open_ is None:
            return record
        try:
            return open_(self, record)
        except (SealingError, UnicodeDecodeError):
            self.kept_sealed += 1
            return record

    def scram(self, record: UserScramCredentialRecord) -> Record:
        """Open the keys of a credential. Raises SealingError."""
        stored = self._opened(record, "storedKey", record.stored_key)
        server = self._opened(record, "serverKey", record.server_key)
        return msgspec.structs.replace(record, stored_key=stored, server_key=server)

    def config(self, record: ConfigRecord) -> Record:
        """Open the value of a config. Raises SealingError, UnicodeDecodeError."""
        block = None if record.value is None else block_of_text(record.value)
        if block is None:
            return record
        place = config_place(record.resource_type, record.resource_name, record.name)
        return msgspec.structs.replace(record, value=self._usable().open(place, block).decode())

    def _opened(self, record: UserScramCredentialRecord, field: str, block: bytes) -> bytes:
        if key_id_of(block) is None:
            return block
        place = scram_place(record.name, record.mechanism, field)
        return self._usable().open(place, block)

    def _usable(self) -> ClusterKey:
        if self._key is None:
            raise SealingError("this controller has no cluster key")
        return self._key


_OPENERS: Final[dict[type[Record], Callable[[ClearValues, Any], Record]]] = {
    ConfigRecord: ClearValues.config,
    UserScramCredentialRecord: ClearValues.scram,
}


def may_hold_secret(record: Record) -> bool:
    """Return whether a record's fields hold a secret when they are opened."""
    return type(record) in _OPENERS and bool(record.secret_fields())
