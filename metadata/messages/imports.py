"""An import. `POST /v1/import` writes what another store held, as records.

`POST /v1/import/parts` brings a part of a large one before.

Rule: an import is all or nothing, and never overwrites. The controller writes what is missing here
as one transaction. If one thing is here already and differs, it writes nothing and lists what does.
So an import that was made, made again, writes nothing.
"""

from typing import Annotated, Any, Final

from msgspec import Meta

from metadata.messages.message import Count, ReplyMessage, RequestMessage
from metadata.types import Int64

IMPORT_BYTES_MAX: Final = 3 * 1024 * 1024
"""The most bytes of records in one import: in JSON they are a third more, and a body has 4 MiB."""
IMPORT_WHOLE_BYTES_MAX: Final = 32 * 1024 * 1024
"""The most bytes of records in an import that comes in parts."""
PARTS_MAX: Final = 64
DIGEST: Final = "^[0-9a-f]{64}$"
CONFLICTS_SHOWN_MAX: Final = 1_000


class ImportRequest(RequestMessage, frozen=True):
    """Write these records, as far as they are missing."""

    records: Annotated[bytes, Meta(max_length=IMPORT_BYTES_MAX)]
    """A MessagePack array, as a batch of the log has it. A TopicRecord is followed by its configs
    and partitions. Others: configs of brokers, client quotas, SCRAM credentials with their keys in
    clear, a block of producer ids, access control entries (their ids don't count), delegation
    tokens, and keys of coordination (their revisions don't count)."""
    source: Annotated[str, Meta(min_length=1, max_length=500)]
    """Where they were read, without a password, such as zookeeper://zk1:2181/kafka."""
    revision: Int64
    """The state of the source that was read, such as ZooKeeper's zxid."""
    tokens_above: Annotated[int, Meta(ge=0, le=2**62)] | None = None
    """Lift all later fencing tokens above this one, the newest that the source may have given."""
    parts: Annotated[int, Meta(ge=0, le=PARTS_MAX)] = 0
    """How many parts the active controller keeps for this import (`ImportPartRequest`). They come
    before `records`."""
    digest: Annotated[str, Meta(pattern=DIGEST)] | None = None
    """With `parts`: which import they are of."""
    dry_run: bool = False

    def __repr__(self) -> str:
        return f"ImportRequest({len(self.records)} bytes, {self.source!r}, {self.revision})"


class ImportPartRequest(RequestMessage, frozen=True):
    """Keep a part of a large import. Nothing is written before the import itself asks for it."""

    digest: Annotated[str, Meta(pattern=DIGEST)]
    """Of the whole import: the SHA-256, in hexadecimal, of the SHA-256 digests of all parts."""
    number: Annotated[int, Meta(ge=0, le=PARTS_MAX - 1)]
    """Which part it is, counted from 0."""
    records: Annotated[bytes, Meta(max_length=IMPORT_BYTES_MAX)]
    """As in an `ImportRequest`. What follows a TopicRecord may be in the next part."""

    def __repr__(self) -> str:
        return f"ImportPartRequest({len(self.records)} bytes, part {self.number})"


class ImportPartReply(ReplyMessage, frozen=True):
    """Which parts of the import the active controller has. It keeps them for two minutes."""

    kept: tuple[int, ...]
    offset: int = -1
    epoch: int = -1


class ImportConflict(ReplyMessage, frozen=True):
    """One thing that can't be imported."""

    name: str
    """Such as `topic orders` or `key app/limit`."""
    why: str


class ImportReply(ReplyMessage, frozen=True):
    """What was written, and the log's end after it."""

    written: Count = 0
    """How many of the records were missing, and are written. 0 if there is a conflict."""
    same: Count = 0
    """How many are here already."""
    expired: Count = 0
    """Delegation tokens that have expired; they aren't written."""
    conflicts: tuple[ImportConflict, ...] = ()
    """The first 1,000. If there is one, nothing is written."""
    conflict_count: Count = 0
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()
    """With `dry_run`: the records that would be written; see `metadata.messages.records_json`."""
