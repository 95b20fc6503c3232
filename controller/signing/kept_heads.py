"""The newest head that a majority signed: kept on disk, compared with the log, and said to others.

Rule: a head is kept only if this node computed the same root from its own log. After a restart the
node first finds the head that it kept before in its log. While it can't, it signs nothing, and if
the root is another one it never does again: the old head is the evidence.
"""

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from controller.signing.heads import SignedHead
from ledger.batch_tree import FOLDER
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, head_note
from ledger.merkle.notes import NoteKey, NoteSignature, SignedNote
from metadata.image import MetadataImage
from metadata.image.heads import HeadsImage
from metadata.records import SignedHeadRecord
from runtime.clock import Clock
from runtime.disk.interface import Disk

NEWEST_NAME: Final = f"{FOLDER}/checkpoint"
"""The newest signed head, as a file."""


class RootedTree(Protocol):
    """What roots are computed from: the whole tree, or its edge from a checkpoint on."""

    believed: bool
    """The roots were computed from the whole log, or one of them is a majority's."""

    @property
    def size(self) -> int:
        """How many batches the log has."""
        ...

    @property
    def end_offset(self) -> int:
        """Where the last one ends."""
        ...

    @property
    def first(self) -> int:
        """The smallest size whose root is known."""
        ...

    def root(self, size: int) -> bytes:
        """Return the root of the first `size` batches. Raises LedgerError, OSError."""
        ...


class KeptHeads:
    """What one controller knows of signed heads."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        root_of: Callable[[RootedTree, int], bytes | None],
        make_again: Callable[[], None],
        on_contradicted: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`root_of` returns a root; None if the tree can't be read now.

        `make_again` makes the tree from the ledger, and lets this be asked again.
        `on_contradicted` gets a sentence: the log here is not the one whose head was signed.
        """
        self._clock = clock
        self._disk = disk
        self._root_of = root_of
        self._make_again = make_again
        self._on_contradicted = on_contradicted
        self._log = log
        self._suspected = False
        self._writing = False
        self._waits_since_ms: int | None = None
        self._read_file = False
        self._remembered: SignedNote | None = None
        """A head of the runs before. Our log must have it; that is not known yet."""
        self._known_keys: dict[int, set[bytes]] = {}
        """By controller id: the keys that the log named while this process ran."""
        self._logged: SignedHeadRecord | None = None
        """The newest head in the log, while it is not compared with our root."""
        self._seen: HeadsImage | None = None
        self._cosignatures: dict[tuple[str, bytes], NoteSignature] = {}
        """Those of witnesses over the newest head."""
        self.newest: SignedHead | None = None
        self.on_head: Callable[[SignedHead, int], None] = lambda _head, _since_ms: None
        """Gets each new head of a majority, and since when its first batch waited for one."""
        self.signer_keys: tuple[NoteKey, ...] = ()
        """The controllers' keys under the newest head, as far as they are known."""
        self.contradiction = ""
        """Why this node signs nothing any more; empty while its log has what it kept."""

    # -- what is under no head --------------------------------------------------------------------

    def unsigned(self, tree: RootedTree, image: MetadataImage) -> bool:
        """Return whether the newest head lacks a batch that is more than the record of that head.

        The record of a head makes the tree grow. If that were a reason for a head, an idle cluster
        would write for ever.
        """
        covered = 0 if self.newest is None else self.newest.head.size
        logged = image.heads.newest
        own_record = logged is not None and logged.size == covered
        return tree.size > covered + own_record

    def note_waiting(self, tree: RootedTree | None, image: MetadataImage) -> None:
        """Something was applied: note since when batches wait for a head."""
        if tree is not None and not self.unsigned(tree, image):
            self._waits_since_ms = None
        elif self._waits_since_ms is None:
            self._waits_since_ms = self._clock.wall_ms()

    def waiting_ms(self, now_ms: int) -> int:
        """Return how long batches have waited that no signed head covers; 0: there are none."""
        return 0 if self._waits_since_ms is None else max(0, now_ms - self._waits_since_ms)

    # -- a new head -------------------------------------------------------------------------------

    def keep(self, head: TreeHead, signed: Sequence[tuple[bytes, bytes]]) -> None:
        """A majority has signed the head, and our root is the same.

        `signed`: public keys and signatures.
        """
        now = self._clock.wall_ms()
        first = self.newest is None or self.newest.head.size != head.size
        signed_ms = now if first or self.newest is None else self.newest.signed_ms
        if first:
            self._cosignatures.clear()
        self.signer_keys = tuple(NoteKey(head.origin, public) for public, _ in signed)
        note = head_note(head, signed)
        note = SignedNote(note.text, (*note.signatures, *self._cosignatures.values()))
        self.newest = SignedHead(head, note.encode(), signed_ms)
        since_ms = now if self._waits_since_ms is None else self._waits_since_ms
        self._waits_since_ms = None
        if not self._writing:
            self._write()
        if first:
            self.on_head(self.newest, since_ms)

    def add_cosignature(self, signed: SignedHead, cosignature: NoteSignature) -> None:
        """A witness cosigned a head: serve it with the head, while that is the newest."""
        newest = self.newest
        if newest is None or newest.head != signed.head:
            return
        self._cosignatures[cosignature.name, cosignature.key_id] = cosignature
        note = SignedNote.parse(newest.note.encode())
        others = [
            one for one in note.signatures if (one.name, one.key_id) not in self._cosignatures
        ]
        note = SignedNote(note.text, (*others, *self._cosignatures.values()))
        self.newest = newest._replace(note=note.encode())
        if not self._writing:
            self._write()

    def look(self, tree: RootedTree | None, image: MetadataImage) -> None:
        """The log may have another newest head: keep it, or say that ours is another history."""
        if image.heads is not self._seen:
            self._note_logged(image.heads)
        logged = self._logged
        if logged is None or tree is None or tree.size < logged.size:
            return
        if not self.settled or self.contradiction:
            return  # the evidence on disk stays until it was compared, or for ever
        self._logged = None
        if logged.size < tree.first:
            return
        root = self._root_of(tree, logged.size)
        if root is None:
            return
        head = TreeHead(logged.origin, logged.size, logged.root)
        signed = self._believed(logged, head)
        if len(signed) <= len(image.quorum.voters) // 2:
            self._log.warning(
                "logged_head_not_believed", batches=logged.size, signatures=len(signed)
            )
        elif root != logged.root:
            if self._is_made_again():
                self._logged = logged
                return
            self._contradicts(head, root, "a majority of the controllers signed")
        else:
            self._suspected = False
            tree.believed = True
            if self.newest is None or self.newest.head.size < head.size:
                self.keep(head, signed)
                self.note_waiting(tree, image)

    def _note_logged(self, heads: HeadsImage) -> None:
        """Note which keys the log names, and its newest head unless it is the one that is kept."""
        self._seen = heads
        for controller_id, key in heads.keys.items():
            self._known_keys.setdefault(controller_id, set()).add(key.public_key)
        newest, kept = heads.newest, self.newest
        if newest is not None and (kept is None or kept.head.size < newest.size):
            self._logged = newest
        elif newest is not None and kept is not None and kept.head.size == newest.size:
            self._logged = None if kept.head.root == newest.root else newest

    def _believed(self, logged: SignedHeadRecord, head: TreeHead) -> list[tuple[bytes, bytes]]:
        """Return keys and signatures that count, of each controller one."""
        found: dict[int, tuple[bytes, bytes]] = {}
        for each in logged.signatures:
            known = self._known_keys.get(each.controller_id, ())
            key = NoteKey(head.origin, each.public_key)
            if each.public_key in known and key.verifies(head.text, each.signature):
                found[each.controller_id] = (each.public_key, each.signature)
        return list(found.values())

    # -- after a restart --------------------------------------------------------------------------

    @property
    def settled(self) -> bool:
        """Whether the head of the runs before was found in our log, or there was none."""
        return self._read_file and self._remembered is None

    def holds(self, tree: RootedTree, origin: str) -> bool:
        """Tell whether our log has what this node kept in the runs before.

        While it is not so long, that can't be told, and nothing is signed.
        """
        if not self._read_file:
            self._remember(origin)
        if self._remembered is None:
            return not self.contradiction
        head = TreeHead.parse(self._remembered.text)
        if not tree.first <= head.size <= tree.size:
            return False
        root = self._root_of(tree, head.size)
        if root is None:
            return False
        if root != head.root:
            if self._is_made_again():
                return False
            self._contradicts(head, root, "this controller signed")
        elif self.newest is None:
            now = self._clock.wall_ms()
            self.newest = SignedHead(head, self._remembered.encode(), now)
            self.on_head(self.newest, now)
        self._remembered, self._suspected = None, False
        return not self.contradiction

    def on_loaded(self) -> None:
        """The ledger may be another one, after a catch-up: compare it with the newest head."""
        if self.newest is not None and self._remembered is None:
            self._remembered = SignedNote.parse(self.newest.note.encode())

    def _is_made_again(self) -> bool:
        """Make the tree again, once: its files may be damaged, and the ledger decides."""
        if self._suspected:
            return False
        self._suspected = True
        self._make_again()
        return True

    def _remember(self, origin: str) -> None:
        """Read the newest head of the runs before, once."""
        self._read_file = True
        if not self._disk.exists(NEWEST_NAME):
            return
        try:
            # Nobody but this process writes the file. Whose keys signed is not known yet.
            note = SignedNote.parse(self._disk.read(NEWEST_NAME))
            if TreeHead.parse(note.text).origin == origin:
                self._remembered = note
            else:
                self._log.info("head_of_generation_before", head=note.text.split("\n")[0])
        except (LedgerError, OSError) as error:
            self._log.warning("head_not_read", why=str(error))

    def _contradicts(self, head: TreeHead, root: bytes, who: str) -> None:
        self.contradiction = (
            f"{who} a head of {head.size} batches with the root {head.root.hex()}, and the log "
            f"here gives {root.hex()}: history was changed. {NEWEST_NAME} is the evidence"
        )
        self._log.critical("head_contradicted", why=self.contradiction)
        self._on_contradicted(self.contradiction)

    def _write(self) -> None:
        """Write the newest head; after a restart it is there at once."""
        newest = self.newest
        if newest is None:
            return
        self._writing = True

        def done(_: None, error: OSError | None) -> None:
            self._writing = False
            if error is not None:
                self._log.warning("head_not_written", why=str(error))
            elif self.newest is not newest:
                self._write()

        data = newest.note.encode()
        self._disk.in_background(lambda: self._disk.replace(NEWEST_NAME, data), done)
