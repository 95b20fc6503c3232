"""What a journal's frames add up to: entries, term, vote, commit index, formation.

Rule: opening applies every frame by the same `apply`, so memory and files can't differ. A frame
with good checksums that can't follow the frames before it raises `IllegalFrameError`. That is
damage, never a torn tail.
"""

import struct
from typing import NamedTuple

import msgspec

from quorum.journal.frames import JournalFrame, JournalFrameKind
from quorum.journal.lineage import Lineage

Entry = tuple[bytes, int, int]
"""Command, index, term: the core's own shape."""
VotedFor = str | int | bytes | None

ENTRY_HEAD = struct.Struct("<QQ")
_INDEX = struct.Struct("<Q")
_ENTRY = int(JournalFrameKind.ENTRY)


class IllegalFrameError(Exception):
    """A frame with good checksums that can't follow the frames before it."""


class Vote(NamedTuple):
    """The current term, and the node that this node voted for in it."""

    term: int
    voted_for: VotedFor


class Known(NamedTuple):
    """What a peer last told of itself: its incarnation, and how far its journal was durable."""

    incarnation: bytes
    position: int


class JournalState:
    """The state that the frames up to a position add up to."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.ends: list[int] = []
        """For each entry, the position behind its frame."""
        self.vote = Vote(0, None)
        self.commit_index = 1
        self.formation: bytes | None = None
        self.damage = ""
        """What was damaged, until the node is repaired; empty when nothing was."""
        self.repaired = (0, "")
        """The position behind the newest repair's frame, and the damage that it repaired."""
        self.absent_to = 0
        """Entries up to this index were in segments that are gone; 0: none were."""
        self.lineage = Lineage()
        self.known: dict[bytes, Known] = {}
        """What each voter last told of itself, by its directory id."""

    @property
    def first_index(self) -> int:
        """Index of the first entry; 0 when there is none."""
        return self.entries[0][1] if self.entries else 0

    @property
    def last_index(self) -> int:
        """Index of the last entry; 0 when there is none."""
        return self.entries[-1][1] if self.entries else 0

    @property
    def last_epoch(self) -> int:
        """Epoch of the last entry; 0 when there is none."""
        return self.entries[-1][2] if self.entries else 0

    @property
    def highest_term(self) -> int:
        """The highest term seen in vote and entries."""
        return max(self.vote.term, self.last_epoch)

    def apply(self, frame: JournalFrame) -> None:
        """Add one frame. Raises IllegalFrameError."""
        kind, body = frame.kind, frame.body
        if kind == _ENTRY:
            self._add(frame)
        elif kind == JournalFrameKind.TRUNCATE_FROM:
            self.truncate(_INDEX.unpack(body)[0])
        elif kind == JournalFrameKind.VOTE:
            self.vote = Vote(*msgspec.msgpack.decode(body))
        elif kind == JournalFrameKind.COMMIT:
            self.commit_index = _INDEX.unpack(body)[0]
        elif kind == JournalFrameKind.FORMATION:
            self.formation = body
        elif kind == JournalFrameKind.COMPACTION:
            self.drop_before(_INDEX.unpack(body)[0])
        elif kind == JournalFrameKind.STATE:
            self._resume(body)
        elif kind == JournalFrameKind.REPAIRED:
            self._repaired(frame)
        elif kind == JournalFrameKind.INCARNATION:
            self.lineage.begin(body, frame.position)
        elif kind == JournalFrameKind.KNOWN:
            self.known = _known(msgspec.msgpack.decode(body))
        elif kind != JournalFrameKind.NOTE:
            raise IllegalFrameError(f"a frame of unknown kind {kind}")

    def _add(self, frame: JournalFrame) -> None:
        body, entries = frame.body, self.entries
        index, term = ENTRY_HEAD.unpack_from(body)
        before = entries[-1][1] if entries else self.absent_to
        if index != before + 1 and before:
            raise IllegalFrameError(f"entry {index} follows entry {before}")
        entries.append((body[ENTRY_HEAD.size :], index, term))
        self.ends.append(frame.end)

    def truncate(self, index: int) -> None:
        """Void the entries from `index` on."""
        if index <= self.absent_to:
            self.absent_to = max(0, index - 1)
        keep = max(0, index - self.first_index) if self.entries else 0
        del self.entries[keep:]
        del self.ends[keep:]

    def drop_before(self, index: int) -> None:
        """Forget entries below `index`."""
        if self.entries:
            gone = min(max(0, index - self.first_index), len(self.entries))
            del self.entries[:gone]
            del self.ends[:gone]

    def _resume(self, body: bytes) -> None:
        # In journals of release 0.1 `damage` is the last field.
        fields = [*msgspec.msgpack.decode(body), [], []][:8]
        term, voted_for, commit_index, formation, last_index, damage, incarnations, known = fields
        if not self.entries:
            self.absent_to = last_index
        elif self.last_index != last_index:
            raise IllegalFrameError(f"entries end at {self.last_index}, not at {last_index}")
        self.vote = Vote(term, voted_for)
        self.commit_index, self.formation, self.damage = commit_index, formation, damage
        self.lineage, self.known = Lineage(map(tuple, incarnations)), _known(known)

    def _repaired(self, frame: JournalFrame) -> None:
        self.repaired, self.damage = (frame.end, self.damage), ""
        # Journals of release 0.1 have no incarnations.
        if frame.body:
            self.lineage.begin(frame.body, frame.position)

    def encode(self, last_index: int) -> bytes:
        """Return the body of a state frame that follows entry `last_index` (0: no entry)."""
        own = [*self.vote, self.commit_index, self.formation, last_index, self.damage]
        return msgspec.msgpack.encode([*own, self.lineage.incarnations, known_items(self.known)])


def known_items(known: dict[bytes, Known]) -> list[tuple[bytes, bytes, int]]:
    """Return what is known of the peers, in the shape that frames hold."""
    return [(directory_id, *item) for directory_id, item in sorted(known.items())]


def _known(items: list[tuple[bytes, bytes, int]]) -> dict[bytes, Known]:
    return {
        directory_id: Known(incarnation, position) for directory_id, incarnation, position in items
    }


def entry_body(entry: Entry) -> bytes:
    """Return the body of an entry's frame."""
    return ENTRY_HEAD.pack(entry[1], entry[2]) + entry[0]


def index_body(index: int) -> bytes:
    """Return the body of a frame that says an index."""
    return _INDEX.pack(index)
