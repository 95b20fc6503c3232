"""A whole new segment of a journal, written in place of others or for a folder that begins anew."""

from quorum.journal.frames import HEADER_BYTES, encode_header
from quorum.journal.identity import JournalIdentity, encode_opening, segment_name
from runtime.disk.interface import Disk


class SegmentReplacement:
    """A segment that appears under its name only when it is whole and durable.

    So its last frame may say that everything up to its own end is durable.
    """

    def __init__(self, identity: JournalIdentity, sequence: int, base: int, *, fresh: bool) -> None:
        self.name = segment_name(sequence)
        self.position = base
        self._base = base
        self._seed = identity.seed(sequence)
        self._parts = [encode_opening(identity, sequence, base, base, fresh=fresh)]

    def add(self, kind: int, body: bytes) -> int:
        """Add a frame; return the position behind it."""
        self._parts += [encode_header(kind, self.position, self._base, body, self._seed), body]
        self.position += HEADER_BYTES + len(body)
        return self.position

    def write(self, disk: Disk, kind: int, body: bytes, *, name: str = "") -> None:
        """Add the last frame, and write the segment; under another `name` if there is one."""
        end = self.position + HEADER_BYTES + len(body)
        self._parts += [encode_header(kind, self.position, end, body, self._seed), body]
        self.position = end
        disk.replace(name or self.name, b"".join(self._parts))
