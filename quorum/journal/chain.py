"""Reads the segments: which of them form the journal, how far they are good, what was durable.

Rule: nothing here changes a file, or decides what a bad byte means. `opening` does that.

The journal is one line of positions. A segment covers the line from its base on. A later segment
supersedes the earlier ones from its own base on, so a crash's leftovers are skipped. A `fresh`
segment supersedes all earlier ones wholly. Reading the line stops at the first bad byte. Good
headers behind that byte still say what was durable when they were written.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from quorum.journal.damage import DamagedError
from quorum.journal.frames import JournalFrame, JournalFrameKind, JournalFrameReader, find_frames
from quorum.journal.identity import (
    FOLDER,
    SUFFIX,
    JournalIdentity,
    Opening,
    read_opening,
    refuse_stranger,
)
from quorum.journal.segments import JournalSegment
from quorum.journal.state import ENTRY_HEAD, IllegalFrameError, JournalState
from runtime.disk.interface import Disk

_ENTRY = int(JournalFrameKind.ENTRY)


class SegmentFile(NamedTuple):
    """A segment as it is on the disk."""

    name: str
    sequence: int
    data: bytes
    opening: Opening | None

    @property
    def base(self) -> int:
        """Position of the first frame. The opening frame must be good."""
        assert self.opening is not None
        return self.opening.base

    @property
    def shift(self) -> int:
        """Position minus the offset in the file."""
        assert self.opening is not None
        return self.opening.base - self.opening.size


class ChainBreak(NamedTuple):
    """The first place where the line of frames breaks off."""

    name: str
    offset: int
    what: str
    illegal: bool
    """No crash can have left this, so it is not a torn tail."""


class Chain(NamedTuple):
    """What reading the segments came to."""

    identity: JournalIdentity
    segments: list[JournalSegment]
    """The segments that hold the line, oldest first."""
    obsolete: list[str]
    """Names of segments that others supersede wholly."""
    files: list[SegmentFile]
    """The files of the line, oldest first, bad ones included."""
    state: JournalState
    end: int
    """Position behind the last good frame."""
    problem: ChainBreak | None
    synced: int
    """The highest position that any frame says was durable."""
    highest_end: int
    """The highest position that any frame reaches."""
    highest_term: int
    """The highest term that any frame names."""
    last_sequence: int


def read_files(disk: Disk, cluster_id: str | None, node_id: int | None) -> list[SegmentFile]:
    """Read all segments. Refuse those of another cluster, node or directory; None: of any."""
    files: list[SegmentFile] = []
    identity: JournalIdentity | None = None
    for short in disk.list(FOLDER):
        number = short.removesuffix(SUFFIX)
        if short == number or not number.isdigit():
            continue
        name = f"{FOLDER}/{short}"
        data = disk.read(name)
        opening = read_opening(name, data)
        sequence = int(number)
        if opening is not None:
            refuse_stranger(name, opening, cluster_id, node_id)
            identity = identity or opening.identity
            if opening.identity != identity or opening.sequence != sequence:
                raise DamagedError(
                    f"{name} holds segment {opening.sequence} of directory "
                    f"{opening.identity.directory_id.hex()}: files of several folders were mixed; "
                    "restore the folder, or move it away and start with an empty one"
                )
        files.append(SegmentFile(name, sequence, data, opening))
    if files and identity is None:
        raise DamagedError(
            f"{files[0].name} is damaged at byte 0, so it isn't known whose journal it is: restore "
            "the file, or move the folder away; with an empty one the node "
            "joins as an observer, which holds everything and does not vote"
        )
    return files


def read_chain(files: Sequence[SegmentFile]) -> Chain:
    """Read the line of positions to its end, or to the first bad byte."""
    identity = next(f.opening.identity for f in files if f.opening is not None)
    line, obsolete = _line(files)
    walk = _Walk(identity, line)
    walk.run()
    return Chain(
        identity=identity,
        segments=walk.segments,
        obsolete=obsolete,
        files=[file for file, _ in line],
        state=walk.state,
        end=walk.end,
        problem=walk.problem,
        synced=walk.synced,
        highest_end=walk.highest_end,
        highest_term=max(walk.highest_term, walk.state.highest_term),
        last_sequence=files[-1].sequence,
    )


def _line(files: Sequence[SegmentFile]) -> tuple[list[tuple[SegmentFile, int | None]], list[str]]:
    """Return the segments that form the line, each with the position where its part ends.

    Also returns the names of those that others supersede wholly.
    """
    line: list[tuple[SegmentFile, int | None]] = []
    obsolete: list[str] = []
    limit: int | None = None
    fresh = False
    for file in reversed(files):
        if fresh or (file.opening and limit is not None and file.base >= limit):
            obsolete.append(file.name)
            continue
        line.append((file, limit))
        if file.opening is not None:
            limit, fresh = file.base, file.opening.fresh
    return line[::-1], obsolete[::-1]


class _Walk:
    def __init__(
        self, identity: JournalIdentity, line: list[tuple[SegmentFile, int | None]]
    ) -> None:
        first = line[0][0]
        self.state = JournalState()
        self.segments: list[JournalSegment] = []
        self.end = first.base if first.opening is not None else 0
        self.problem: ChainBreak | None = None
        self.synced = 0
        self.highest_end = 0
        self.highest_term = 0
        self._identity = identity
        self._line = line

    def run(self) -> None:
        for number, (file, limit) in enumerate(self._line):
            if self.problem is not None:
                self._scan(file, 0)
            elif file.opening is None:
                # A crash's leftover is skipped if the line goes on without it.
                if limit is None or limit > self.end or number == 0:
                    within = self._begins_within(file)
                    self._stop(file, 0, "its first frame is bad", illegal=within)
            elif file.base > self.end:
                self._stop(file, 0, f"{file.base - self.end} bytes before it are missing")
            else:
                self._walk(file, limit)
        self.highest_end = max(self.highest_end, self.end)

    def _walk(self, file: SegmentFile, limit: int | None) -> None:
        opening = file.opening
        assert opening is not None
        state, synced, top = self.state, max(self.synced, opening.synced), 0
        apply = state.apply
        reader = frames_of(file, self._identity)
        illegal = ""
        for frame in reader:
            if limit is not None and frame.position >= limit:
                break
            try:
                apply(frame)
            except IllegalFrameError as error:
                illegal = str(error)
                reader.offset = frame.position - file.shift
                break
            synced = max(synced, frame.synced)
            if frame.kind == _ENTRY and state.entries[-1][1] > top:
                top = state.entries[-1][1]
            self.end = frame.end
        self.synced = synced
        self.segments.append(JournalSegment(file.name, file.sequence, file.base, top))
        if illegal:
            self._stop(file, reader.offset, illegal, illegal=True)
        elif limit is not None and self.end > limit:
            what = "a frame reaches into the next segment"
            self._stop(file, limit - file.shift, what, illegal=True)
        elif (limit is None and reader.problem) or (limit is not None and self.end < limit):
            self._stop(file, reader.offset, reader.problem or "the file is too short")

    def _begins_within(self, file: SegmentFile) -> bool:
        """Tell whether a file with a bad opening begins before the end of what was read.

        A crash can't leave that: a segment with a torn opening begins where the one before ends.
        """
        seed = self._identity.seed(file.sequence)
        return any(found.position < self.end for found in find_frames(file.data, 0, seed))

    def _stop(self, file: SegmentFile, offset: int, what: str, *, illegal: bool = False) -> None:
        self.problem = ChainBreak(file.name, offset, what, illegal)
        self._scan(file, offset)

    def _scan(self, file: SegmentFile, offset: int) -> None:
        if file.opening is not None:
            self.synced = max(self.synced, file.opening.synced)
        for found in find_frames(file.data, offset, self._identity.seed(file.sequence)):
            self.synced = max(self.synced, found.synced)
            self.highest_end = max(self.highest_end, found.end)
            if found.body is not None:
                self.highest_term = max(self.highest_term, _term(found.kind, found.body))


def frames_of(
    file: SegmentFile, identity: JournalIdentity, position: int = 0
) -> JournalFrameReader:
    """Return a reader of a segment's frames from a position on."""
    assert file.opening is not None
    start = max(file.opening.size, position - file.shift)
    return JournalFrameReader(file.data, start, file.shift, identity.seed(file.sequence))


def frames_between(chain: Chain, start: int, end: int) -> Iterator[JournalFrame]:
    """Return the good frames of the line from one position up to another."""
    names = [segment.name for segment in chain.segments]
    files = [file for file in chain.files if file.name in names]
    limits = [file.base for file in files[1:]]
    for file, limit in zip(files, [*limits, end], strict=True):
        for frame in frames_of(file, chain.identity, start):
            if frame.position >= min(limit, end):
                break
            yield frame


def is_seam(chain: Chain, position: int) -> bool:
    """Tell whether a position is a boundary between two frames of the line."""
    if not chain.segments or not chain.segments[0].base < position < chain.end:
        return True
    behind = next(frames_between(chain, position, chain.end), None)
    return behind is not None and behind.position == position


def _term(kind: int, body: bytes) -> int:
    if kind == JournalFrameKind.ENTRY:
        return int(ENTRY_HEAD.unpack_from(body)[1])
    if kind in (JournalFrameKind.VOTE, JournalFrameKind.STATE):
        return int(msgspec.msgpack.decode(body)[0])
    return 0
