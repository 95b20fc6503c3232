"""Records about requests and their answers, so that a retry gets the same answer. Ours."""

from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames
from metadata.records.record import Record
from metadata.types import Digest, Int64, Uuid
from metadata.uuids import uuid_text


class RequestOutcomeRecord(Record, frozen=True, tag=100100):
    """Notes that a request was executed, with its answer. Ours.

    It is the last record of its batch. Agents ignore it. A request that is written in rounds has
    one for each round. The last one has the request id as its key, and each other one a key that
    is derived from it.
    """

    TYPE_ID: ClassVar[int] = 1001
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"name": "key"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("request",)

    key: Uuid
    """The request id, a UUIDv7. Keys sort by the time at which they were drawn."""
    digest: Digest
    """SHA-256 of the request. The controller refuses the same key with another digest."""
    answer: bytes
    """The encoded answer."""
    time_ms: Int64
    """The batch's timestamp, in ms since 1970; the eviction of outcomes uses it."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"request:{uuid_text(self.key)}",)
