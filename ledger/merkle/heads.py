"""Heads: the size and the root of a cluster's tree, as the text of a C2SP tlog-checkpoint.

Rule: a head is believed if a majority of the keys that may sign it signed it; else the error says
how many did. The origin names the cluster, so a head of another one is never taken for ours. A
restored cluster has another origin, because its history may be another one too.
"""

import base64
import re
from collections.abc import Collection, Iterable

import msgspec

from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.frontier import SIZE_MAX
from ledger.merkle.notes import NoteKey, NoteSignature, SignedNote

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}")


class HeadError(LedgerError):
    """A head can't be read, or is not believed."""


class TreeHead(msgspec.Struct, frozen=True):
    """What a checkpoint of C2SP says."""

    origin: str
    size: int
    """How many batches the log has."""
    root: bytes
    extensions: tuple[str, ...] = ()
    """Further lines. We write none."""

    @property
    def text(self) -> str:
        """The text that is signed."""
        lines = (self.origin, str(self.size), base64.b64encode(self.root).decode())
        return "".join(f"{line}\n" for line in (*lines, *self.extensions))

    @classmethod
    def parse(cls, text: str) -> "TreeHead":
        """Read a text. Raises HeadError."""
        lines = text.split("\n")
        if len(lines) < 4 or lines.pop() or not all(lines):
            raise HeadError("a head has an origin, a size and a root, each on a line")
        origin, size, encoded, *extensions = lines
        if not _SIZE.fullmatch(size) or int(size) > SIZE_MAX:
            raise HeadError(f"not the size of a tree: {size[:40]!r}")
        try:
            root = base64.b64decode(encoded, validate=True)
        except ValueError:
            root = b""
        head = cls(origin, int(size), root, tuple(extensions))
        if len(root) != HASH_BYTES or head.text != text:
            raise HeadError(f"not the root of a tree: {encoded[:80]!r}")
        return head


def head_note(head: TreeHead, signatures: Iterable[tuple[bytes, bytes]]) -> SignedNote:
    """Return a head with its signatures as a note; of each signer the public key and the signature.

    Nothing is verified.
    """
    lines = (
        NoteSignature(head.origin, NoteKey(head.origin, public).id, signature)
        for public, signature in signatures
    )
    return SignedNote(head.text, tuple(lines))


def rotation_text(origin: str, controller_id: int, old: bytes, new: bytes) -> str:
    """Return what the old and the new key of a controller sign, so that the new one replaces it.

    No head has this text, because its second line is no size.
    """
    old_text, new_text = base64.b64encode(old).decode(), base64.b64encode(new).decode()
    return f"{origin}\nnew key of controller {controller_id}\n{old_text}\n{new_text}\n"


def origin_of(cluster_id: str, generation: int = 0) -> str:
    """Return the name of a cluster's tree, and of the keys that sign its heads.

    `generation`: how often the cluster was restored or recovered; up to 1 for one that never was.
    """
    name = "".join(one if _plain(one) else f"%{ord(one):x}" for one in cluster_id)
    return f"logberg/{name}/{generation}" if generation > 1 else f"logberg/{name}"


def _plain(sign: str) -> bool:
    return sign.isascii() and (sign.isalnum() or sign in "-_.~")


def believed_head(note: SignedNote, origin: str, keys: Collection[NoteKey]) -> TreeHead:
    """Return the head of a note that a majority of the keys signed.

    Raises HeadError, NoteError.
    """
    head = TreeHead.parse(note.text)
    if head.origin != origin:
        raise HeadError(f"the head is of {head.origin!r}, not of {origin!r}")
    signed = len(note.signers(keys))
    needed = len(keys) // 2 + 1
    if signed < needed:
        raise HeadError(
            f"{signed} of {len(keys)} keys signed the head of {head.size} batches; {needed} must"
        )
    return head
