"""The manifest: where the journal begins, and the mark that stands for everything before.

Rule: a manifest holds no state. It holds the first two entries that the journal keeps, and at the
second of them the owner's mark and the voters. `manifest_copies` says how it is stored, and
`quorum.raft.core_dump` how the core, which takes it for its dump, gets it.

File: magic `QRTMANI1`, body length (4 bytes, little endian), CRC-32C of the body, body
(MessagePack array).
"""

import struct
from typing import get_args

import google_crc32c
import msgspec

from quorum.api import Mark, Voter
from quorum.journal.damage import DamagedError
from quorum.journal.state import Entry
from quorum.terms import TERM_MAX, is_term

FILE = "manifest"
FORMAT = 1
_POSITION_MAX = 2**62
_Fields = tuple[str, Entry, Entry, bytes, tuple[tuple[int, bytes, str, int], ...], bytes, int, bool]
"""The fields of the body after the format, as `_manifest_of` takes them. The last one is written
only if it is true: releases without changes of voters know seven."""
_HEAD = struct.Struct("<8sII")
_MAGIC = b"QRTMANI1"


class LaterFormatError(DamagedError):
    """A later release wrote the file. It is whole, and nothing older may replace it."""


class JournalManifest(msgspec.Struct, frozen=True):
    """Where a journal begins; see the module's head."""

    cluster_id: str
    first: Entry
    """The entry before the mark's."""
    second: Entry
    """The entry at the mark."""
    mark_data: bytes
    """Opaque to the quorum."""
    voters: tuple[Voter, ...]
    directory_id: bytes = b""
    """The directory of `journal_position`; empty in a manifest made for another node."""
    journal_position: int = 0
    """The journal's durable position when the manifest was written: it must still be there."""
    named: bool = False
    """Whether an entry of the log named the voters, so that their addresses come before those in a
    node's configuration."""

    @property
    def mark(self) -> Mark:
        """The place in the sequence of entries."""
        return Mark(self.second[1], self.second[2], self.mark_data)


def encode_manifest(manifest: JournalManifest) -> bytes:
    """Return the file's bytes."""
    voters = [[v.node_id, v.directory_id, v.host, v.port] for v in manifest.voters]
    body = msgspec.msgpack.encode(
        [
            FORMAT,
            manifest.cluster_id,
            manifest.first,
            manifest.second,
            manifest.mark_data,
            voters,
            manifest.directory_id,
            manifest.journal_position,
            *([True] if manifest.named else []),
        ]
    )
    return _HEAD.pack(_MAGIC, len(body), google_crc32c.value(body)) + body


def decode_manifest(data: bytes, name: str = FILE) -> JournalManifest:
    """Read a manifest, from a file or a peer. Raises DamagedError, which names `name`."""
    if len(data) < _HEAD.size:
        raise _damaged(name, f"it has only {len(data)} bytes")
    magic, length, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if magic != _MAGIC:
        raise _damaged(name, "it does not begin as a manifest does")
    if len(body) != length:
        raise _damaged(name, f"it has {len(body)} bytes of body, not {length}")
    if google_crc32c.value(body) != crc:
        raise _damaged(name, "its checksum is wrong")
    try:
        version, *fields = msgspec.msgpack.decode(body)
        if version != FORMAT:
            raise LaterFormatError(
                f"the file {name} has format {version}, this release reads {FORMAT}: use the "
                "release that wrote it"
            )
        if len(fields) == len(get_args(_Fields)) - 1:
            fields.append(False)
        manifest = _manifest_of(*msgspec.convert(fields, _Fields))
    except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
        # A peer can put any body under a right checksum.
        raise _damaged(name, f"its body is not that of a manifest ({error})") from error
    what = _contradiction(manifest)
    if what:
        raise _damaged(name, what)
    return manifest


def _manifest_of(
    cluster_id: str,
    first: Entry,
    second: Entry,
    mark_data: bytes,
    voters: tuple[tuple[int, bytes, str, int], ...],
    directory_id: bytes,
    position: int,
    named: bool,
) -> JournalManifest:
    return JournalManifest(
        cluster_id=cluster_id,
        first=first,
        second=second,
        mark_data=mark_data,
        voters=tuple(Voter(*voter) for voter in voters),
        directory_id=directory_id,
        journal_position=position,
        named=named,
    )


def _contradiction(manifest: JournalManifest) -> str:
    """Return what contradicts itself in a manifest; empty: nothing does."""
    _, first, first_term = manifest.first
    _, second, second_term = manifest.second
    if not (is_term(first_term) and is_term(second_term)):
        return f"it names epoch {max(first_term, second_term)}, and epochs end at {TERM_MAX}"
    if not (0 < first < _POSITION_MAX and second == first + 1 and first_term <= second_term):
        return f"its entry {second} of epoch {second_term} can't follow {first} of {first_term}"
    if not 0 <= manifest.journal_position < _POSITION_MAX:
        return f"it names position {manifest.journal_position} of the journal"
    return ""


def _damaged(name: str, what: str) -> DamagedError:
    return DamagedError(
        f"the file {name} is damaged: {what}. Restore it, or move the node's whole folder away; "
        "with an empty one the node fetches everything from its peers, as an observer: it does not "
        "vote"
    )
