"""What an import would write, and its manifest: what was taken, what was left, and why.

Rule: every node with data is in the manifest once, as taken, left or malformed. Nothing is dropped
without a word.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Protocol, TypeVar

import msgspec

from logberg.importing.znodes import Znode
from metadata.codec import RecordDecodeError, decode_record, encode_record
from metadata.messages.records_json import record_type_name
from metadata.records import Record

T = TypeVar("T")


class Located(Protocol):
    """What has a place in the source: a node or a key."""

    @property
    def path(self) -> str: ...


class ImportFinding(msgspec.Struct, frozen=True, order=True):
    """A node, or a part of one, and what there is to say about it."""

    path: str
    why: str


class ImportManifest(msgspec.Struct, frozen=True, rename="camel"):
    """What an import takes and what not; a line for people, a document for programs."""

    source: str
    revision: int
    """Of the source, such as ZooKeeper's zxid."""
    cluster_id: str | None
    """What the source calls its cluster; None: it doesn't say."""
    nodes: int
    """How many nodes were read."""
    records: dict[str, int]
    """How many records of each type."""
    left: tuple[ImportFinding, ...]
    """What has no place in the quorum, or can't be taken over."""
    malformed: tuple[ImportFinding, ...]
    """What can't be read, or can't be a key here."""
    notes: tuple[ImportFinding, ...]
    """What was taken, and is not quite as it was."""
    consistency: str = ""
    """Why what was read is the state at one moment."""
    newest_token: int | None = None
    """The newest fencing token that the source may have given. Later ones here are larger."""


class ImportPlan:
    """The records so far, and what is known about the nodes."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.cluster_id: str | None = None
        self.left: list[ImportFinding] = []
        self.malformed: list[ImportFinding] = []
        self.notes: list[ImportFinding] = []
        self._seen: set[str] = set()

    def take(self, node: Located, records: Iterable[Record]) -> bool:
        """Add the records of a node: all, or none if one of them can't be in a log."""
        made = list(records)
        if not all(self.is_writable(node, record) for record in made):
            return False
        self.records += made
        self.seen(node)
        return True

    def is_writable(self, node: Located, record: Record) -> bool:
        """Return whether a record's values can be in a log; if not, its node is malformed."""
        try:
            decode_record(encode_record(record))
        except (RecordDecodeError, OverflowError) as error:
            return self.refuse(node, f"its values can't be in a log: {error}")
        return True

    def seen(self, node: Located) -> None:
        """Note that a node was read and says nothing more."""
        self._seen.add(node.path)

    def leave(self, node: Located, why: str) -> None:
        """Note that a node, or a part of it, isn't taken."""
        self.left.append(ImportFinding(node.path, why))
        self.seen(node)

    def refuse(self, node: Located, why: str) -> bool:
        """Note that a node can't be read. Returns False."""
        self.malformed.append(ImportFinding(node.path, why))
        self.seen(node)
        return False

    def note(self, node: Located, what: str) -> None:
        """Note what changed on the way."""
        self.notes.append(ImportFinding(node.path, what))

    def is_seen(self, node: Located) -> bool:
        """Return whether something was noted about a node."""
        return node.path in self._seen

    def decoded(self, node: Znode, shape: type[T]) -> T | None:
        """Return a node's JSON as a struct; unknown keys are ignored. None: it is malformed."""
        try:
            return msgspec.json.decode(node.data, type=shape)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            self.refuse(node, str(error))
            return None

    def manifest(
        self,
        source: str,
        revision: int,
        nodes: int,
        consistency: str = "",
        newest_token: int | None = None,
    ) -> ImportManifest:
        """Return what there is to say, in the order of the paths."""
        counts: Counter[str] = Counter(record_type_name(type(each)) for each in self.records)
        return ImportManifest(
            source,
            revision,
            self.cluster_id,
            nodes,
            dict(sorted(counts.items())),
            tuple(sorted(self.left)),
            tuple(sorted(self.malformed)),
            tuple(sorted(self.notes)),
            consistency,
            newest_token,
        )
