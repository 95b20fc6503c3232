"""Whose journal it is, and how a segment says so.

Rule: the first frame of every segment names cluster, node and directory. A folder that was copied,
swapped or restored in part is refused with a sentence and never read. The directory id is drawn at
the first start and exists only here, so a wiped disk is another voter.

The first frame's own checksum has no seed, so that a segment of another node can be read and named.
The frame's position is where the segment begins. The segment supersedes all older ones from there
on, or wholly if it is `fresh`.
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
        """Return the value from which the checksums of a segment's headers start."""
        named = msgspec.msgpack.encode([self.cluster_id, self.node_id, self.directory_id, sequence])
        return int(google_crc32c.value(named))


class Opening(NamedTuple):
    """The first frame of a segment."""

    identity: JournalIdentity
    sequence: int
    base: int
    """Position of the first frame after it."""
    synced: int
    """The durable position when the segment was begun."""
    fresh: bool
    """Older segments are not part of the journal any more."""
    size: int
    """The size of this frame in the file, in bytes."""


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


def refuse_stranger(
    name: str, opening: Opening, cluster_id: str | None, node_id: int | None
) -> None:
    """Raise WrongFolderError unless the segment is this node's; None: any cluster, any node."""
    whose = opening.identity
    if cluster_id is not None and whose.cluster_id != cluster_id:
        raise WrongFolderError(
            f"{name} belongs to cluster {whose.cluster_id}, this node is configured for cluster "
            f"{cluster_id}: correct the cluster id, or point the node at its own folder"
        )
    if node_id is not None and whose.node_id != node_id:
        raise WrongFolderError(
            f"{name} belongs to node {whose.node_id}, this is node {node_id}: folders were "
            "swapped or copied; point each node at its own"
        )
