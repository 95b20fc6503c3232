"""Whose journal it is, and how a segment says so.

Rule: every segment names cluster, node and directory in its first frame; a folder that was
copied, swapped or restored in part is refused with a sentence, never read. The directory id is
drawn at the first start and lives only here: a wiped disk is another voter.

The opening frame's own checksum carries no seed, so that a stranger's can be read and named.
Its position is where the segment begins: a segment supersedes all older ones from there on.
When it is `fresh`, it supersedes them wholly, whatever their positions.
"""

from typing import NamedTuple

import google_crc32c
import msgspec

from quorum.journal.damage import DamagedError, WrongFolderError
from quorum.journal.frames import HEADER_BYTES, JournalFrameKind, encode_header, find_frames

FORMAT = 1
FOLDER = "journal"
SUFFIX = ".wal"
OPENING_BODY_BYTES_MAX = 4096


class JournalIdentity(NamedTuple):
    """Whose journal it is."""

    cluster_id: str
    node_id: int
    directory_id: bytes

    def seed(self, sequence: int) -> int:
        """Return where the checksums of a segment's headers begin."""
        named = msgspec.msgpack.encode([self.cluster_id, self.node_id, self.directory_id, sequence])
        return int(google_crc32c.value(named))


class Opening(NamedTuple):
    """The first frame of a segment."""

    identity: JournalIdentity
    sequence: int
    base: int
    """Position of the first frame behind it."""
    synced: int
    """The position that was durable when the segment was begun."""
    fresh: bool
    """Older segments are no part of the journal any more."""
    size: int
    """Bytes it takes in the file."""


def segment_name(sequence: int) -> str:
    """Return the path of a segment."""
    return f"{FOLDER}/{sequence:020d}{SUFFIX}"


def encode_opening(
    identity: JournalIdentity, sequence: int, base: int, synced: int, *, fresh: bool
) -> bytes:
    """Return the frame that begins a segment; `synced` is the durable position now."""
    body = msgspec.msgpack.encode([FORMAT, *identity, sequence, fresh])
    return encode_header(JournalFrameKind.OPENING, base, synced, body, 0) + body


def read_opening(name: str, data: bytes) -> Opening | None:
    """Read a segment's opening; None when it is damaged.

    Raises DamagedError when it was written by a later format.
    """
    found = next(find_frames(data[: HEADER_BYTES + OPENING_BODY_BYTES_MAX], 0, 0), None)
    if (
        found is None
        or found.offset != 0
        or found.kind != JournalFrameKind.OPENING
        or found.body is None
    ):
        return None
    version, *rest = msgspec.msgpack.decode(found.body)
    if version != FORMAT:
        raise DamagedError(
            f"{name} has format {version}, this release reads {FORMAT}: use the release that "
            "wrote it"
        )
    cluster_id, node_id, directory_id, sequence, fresh = rest
    identity = JournalIdentity(cluster_id, node_id, directory_id)
    size = HEADER_BYTES + len(found.body)
    return Opening(identity, sequence, found.position, found.synced, fresh, size)


def refuse_stranger(name: str, opening: Opening, cluster_id: str, node_id: int) -> None:
    """Raise WrongFolderError unless the segment is this node's."""
    whose = opening.identity
    if whose.cluster_id != cluster_id:
        raise WrongFolderError(
            f"{name} belongs to cluster {whose.cluster_id}, this node is configured for cluster "
            f"{cluster_id}: correct the cluster id, or point the node at its own folder"
        )
    if whose.node_id != node_id:
        raise WrongFolderError(
            f"{name} belongs to node {whose.node_id}, this is node {node_id}: folders were "
            "swapped or copied; point each node at its own"
        )
