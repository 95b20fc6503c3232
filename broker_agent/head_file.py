"""The newest signed head that the agent saw, in its folder, and the keys that it believes.

Rule: the file is replaced as a whole. It is read at the start and never dropped by the agent: the
agent may lose its image, and must not lose what proves which history it followed. To let a broker
follow another history, people remove the file.

    heads.json   origin, head, keys, and the contradiction that was found, if one was
"""

from typing import Final

import msgspec

from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, origin_of
from ledger.merkle.notes import NoteKey, SignedNote
from runtime.disk.interface import Disk

HEADS_FILE: Final = "heads.json"
_FORMAT: Final = 1


class HeadFileError(Exception):
    """The file can't be read; the message says what to do."""


class KeptHead(msgspec.Struct, frozen=True):
    """A head that a majority of the believed keys signed."""

    head: TreeHead
    note: str


class RememberedHeads(msgspec.Struct, frozen=True):
    """What the file holds."""

    newest: KeptHead | None = None
    keys: tuple[bytes, ...] = ()
    """The controllers' public keys that are believed. Empty: none was seen yet."""
    contradiction: str = ""
    """Why the newest head is not one of the cluster's log; empty: no such thing is known."""


class _Saved(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    format: int
    keys: list[str]
    head: str
    contradiction: str


def read_heads(disk: Disk, cluster_id: str) -> RememberedHeads:
    """Read the file. Raises HeadFileError, OSError."""
    if not disk.exists(HEADS_FILE):
        return RememberedHeads()
    try:
        saved = msgspec.json.decode(disk.read(HEADS_FILE), type=_Saved)
        if saved.format != _FORMAT:
            raise HeadFileError(f"{HEADS_FILE} is of format {saved.format}: use a newer release")
        keys = tuple(NoteKey.parse(line).public for line in saved.keys)
        newest = None
        if saved.head:
            head = TreeHead.parse(SignedNote.parse(saved.head.encode()).text)
            if generation_of(head.origin, cluster_id) == 0:
                raise HeadFileError(f"{HEADS_FILE} is of {head.origin}, another cluster")
            newest = KeptHead(head, saved.head)
    except (msgspec.DecodeError, UnicodeError, LedgerError) as error:
        raise HeadFileError(
            f"{HEADS_FILE} in the agent's folder is damaged ({error}). It tells a forged history "
            "from the true one: compare the controllers' heads by other means, then remove it"
        ) from error
    return RememberedHeads(newest, keys, saved.contradiction)


def encode_heads(kept: RememberedHeads, cluster_id: str) -> bytes:
    """Return the file's content."""
    name = origin_of(cluster_id)
    saved = _Saved(
        _FORMAT,
        [NoteKey(name, key).text for key in kept.keys],
        "" if kept.newest is None else kept.newest.note,
        kept.contradiction,
    )
    return msgspec.json.format(msgspec.json.encode(saved), indent=1) + b"\n"


def generation_of(origin: str, cluster_id: str) -> int:
    """Return which life of the cluster an origin names, from 1 on; 0: it is of another cluster."""
    first = origin_of(cluster_id)
    if origin == first:
        return 1
    rest = origin.removeprefix(f"{first}/")
    if origin.startswith(f"{first}/") and rest.isascii() and rest.isdigit() and len(rest) < 10:
        number = int(rest)
        return number if origin == origin_of(cluster_id, number) else 0
    return 0
