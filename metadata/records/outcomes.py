"""Records about requests: what was answered, so that a retry gets the same answer. Ours."""

from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames
from metadata.records.record import Record
from metadata.types import Digest, Int64, Uuid
from metadata.uuids import uuid_text


class RequestOutcomeRecord(Record, frozen=True, tag=100100):
    """A request was executed; the last record of its batch. Agents drop it. Ours."""

    TYPE_ID: ClassVar[int] = 1001
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"name": "key"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("request",)

    key: Uuid
    """The request id, a UUIDv7: keys sort by the time at which they were drawn."""
    digest: Digest
    """SHA-256 of what was asked; the same key with another digest is refused."""
    answer: bytes
    """What was answered, encoded by whoever answered."""
    time_ms: Int64
    """The batch's time; keys are evicted by it."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"request:{uuid_text(self.key)}",)
