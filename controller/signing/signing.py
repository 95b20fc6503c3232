"""Heads are signed by a majority: the leader asks, each controller computes, signs and collects.

Rule: a controller signs only the root that it computed from its own ledger, so a head with a
majority's signatures needs a majority that agrees. Whoever has collected one keeps the newest, on
disk too. A peer that signs another root for the same size is named: one of the two histories is
forged or damaged.

The leader asks at an interval, and only if something was committed since. What is lost is asked for
again with the next one.
"""

from collections.abc import Callable
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.signing.heads import SignedHead
from controller.signing.messages import HeadSigned, read_told
from ledger.batch_tree import FOLDER, BatchTree
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, believed_head, origin_of
from ledger.merkle.notes import NoteKey, NoteSignature, SignedNote, SigningKey
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk

NEWEST_NAME: Final = f"{FOLDER}/checkpoint"
"""The newest signed head, as a file."""
_AFTER_REBUILD_S: Final = 1.0
"""Pause until a tree that is made again is compared, if nothing is committed meanwhile."""
_ASKED_KEPT: Final = 8
"""So many asked sizes are waited for, by a node that has not applied so far yet."""


class HeadSigning:
    """One controller's part in signing heads, and the newest that it knows."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        node_id: int,
        cluster_id: str,
        seed: bytes,
        interval_s: float,
        *,
        tree: Callable[[], BatchTree | None],
        generation: Callable[[], int],
        voters: Callable[[], tuple[int, ...]],
        tell: Callable[[bytes], None],
        on_unreadable: Callable[[], None],
        on_contradicted: Callable[[str], None] = lambda _why: None,
        log: FilteringBoundLogger,
    ) -> None:
        """`seed` is the private key. `tree`: None while it is not as long as the ledger.

        `on_unreadable`: the tree's files can't be read; they have to be made again.
        `on_contradicted` gets a sentence: the log here is not the one whose head this node signed.
        """
        self._clock = clock
        self._disk = disk
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._seed = seed
        self._interval_s = interval_s
        self._tree = tree
        self._generation = generation
        self._voters = voters
        self._tell = tell
        self._on_unreadable = on_unreadable
        self._on_contradicted = on_contradicted
        self._log = log
        self._key: SigningKey | None = None
        self._asked: list[int] = []
        self._own: TreeHead | None = None
        """The newest head that this node signed."""
        self._signatures: dict[int, HeadSigned] = {}
        """The newest of each voter, ours too."""
        self._timer: Timer | None = None
        self._writing = False
        self._waits_since_ms: int | None = None
        self._read_file = False
        self._remembered: SignedNote | None = None
        """A head of the runs before. Our log must have it; that is not known yet."""
        self.newest: SignedHead | None = None
        self.on_head: Callable[[SignedHead, int], None] = lambda _head, _since_ms: None
        """Gets each new head of a majority, and since when its first batch waited for one."""
        self._cosignatures: dict[tuple[str, bytes], NoteSignature] = {}
        """Those of witnesses over the newest head."""
        self.signer_keys: tuple[NoteKey, ...] = ()
        """The controllers' keys under the newest head, as far as they are known."""
        self._suspected = False
        self.contradiction = ""
        """Why this node signs nothing any more; empty while its log has what it signed."""
        self.differing: dict[int, int] = {}
        """By peer: the size of a head whose root was not ours."""

    # -- asking -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """This controller is active: ask for a head now and at each interval."""
        self.end()
        self._ask()

    def end(self) -> None:
        """This controller is not active any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _ask(self) -> None:
        self._timer = self._clock.call_later(self._interval_s, self._ask)
        tree = self._tree()
        if tree is None or not tree.size or not self._holds(tree):
            return
        if self.newest is not None and self.newest.head.size == tree.size:
            return
        self._sign(tree, tree.size, asks=True)

    # -- signing and collecting -------------------------------------------------------------------

    def on_told(self, node_id: int, data: bytes) -> None:
        """A voter told something about heads."""
        message = read_told(data)
        if message is None:
            return
        if message.asks:
            self._asked = [*self._asked, message.size][-_ASKED_KEPT:]
            self.on_progress()
        self._collect(node_id, message)

    def on_progress(self) -> None:
        """More is applied: sign what was asked for before this node had it.

        A node that has signed another history than it now has signs nothing.
        """
        if self._waits_since_ms is None:
            tree = self._tree()
            covered = 0 if self.newest is None else self.newest.head.size
            if tree is None or tree.size > covered:
                self._waits_since_ms = self._clock.wall_ms()
        if not self._asked and self._read_file and self._remembered is None:
            return
        tree = self._tree()
        if tree is None or not self._holds(tree):
            return
        ready = [size for size in self._asked if size <= tree.size]
        if ready:
            self._asked = [size for size in self._asked if size > tree.size]
            self._sign(tree, max(ready), asks=False)

    def key(self) -> SigningKey:
        """Return the key of this node, under the name of the cluster's tree."""
        origin = origin_of(self._cluster_id, self._generation())
        if self._key is None or self._key.public.name != origin:
            self._key = SigningKey(origin, self._seed)
        return self._key

    def _sign(self, tree: BatchTree, size: int, *, asks: bool) -> None:
        if self._own is not None and self._own.size > size:
            return
        root = self._root(tree, size)
        if root is None:
            return
        key = self.key()
        self._own = TreeHead(key.public.name, size, root)
        signature = key.sign(self._own.text).signature
        message = HeadSigned(asks, size, root, key.public.public, signature)
        self._tell(message.encode())
        self._collect(self._node_id, message)

    def _collect(self, node_id: int, message: HeadSigned) -> None:
        if node_id not in self._voters():
            return
        self._signatures[node_id] = message
        own = self._own
        if own is None:
            return
        keys: list[NoteKey] = []
        lines: list[NoteSignature] = []
        for voter in self._voters():
            found = self._signatures.get(voter)
            if found is None or found.size != own.size:
                continue
            if found.root != own.root:
                self._note_differing(voter, found)
                continue
            key = NoteKey(own.origin, found.public)
            if key.verifies(own.text, found.signature):
                keys.append(key)
                lines.append(NoteSignature(own.origin, key.id, found.signature))
        if len(lines) > len(self._voters()) // 2:
            self.signer_keys = tuple(keys)
            self._keep(own, SignedNote(own.text, tuple(lines)))

    def _note_differing(self, node_id: int, message: HeadSigned) -> None:
        if self.differing.get(node_id) == message.size:
            return
        self.differing[node_id] = message.size
        self._log.error("head_differs", peer=node_id, batches=message.size, root=message.root.hex())

    def waiting_ms(self, now_ms: int) -> int:
        """Return how long batches have waited that no signed head covers; 0: there are none."""
        return 0 if self._waits_since_ms is None else max(0, now_ms - self._waits_since_ms)

    # -- keeping ----------------------------------------------------------------------------------

    def _keep(self, head: TreeHead, note: SignedNote) -> None:
        now = self._clock.wall_ms()
        first = self.newest is None or self.newest.head.size != head.size
        signed_ms = now if first or self.newest is None else self.newest.signed_ms
        if first:
            self._cosignatures.clear()
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

    def _remember(self) -> None:
        """Read the newest head of the runs before, once."""
        self._read_file = True
        if not self._disk.exists(NEWEST_NAME):
            return
        try:
            note = SignedNote.parse(self._disk.read(NEWEST_NAME))
            # Who the others were is not known yet. What we signed ourselves is.
            believed_head(note, self.key().public.name, [self.key().public])
            self._remembered = note
        except (LedgerError, OSError) as error:
            self._log.warning("head_not_read", why=str(error))

    def _holds(self, tree: BatchTree) -> bool:
        """Tell whether our log has what this node signed in the runs before.

        While it is not so long, that can't be told, and nothing is signed.
        """
        if not self._read_file:
            self._remember()
        if self._remembered is None:
            return not self.contradiction
        head = TreeHead.parse(self._remembered.text)
        if head.size > tree.size:
            return False
        root = self._root(tree, head.size)
        if root is None:
            return False
        if root != head.root and not self._suspected:
            # The tree's files may be damaged. The ledger decides: make the tree from it again.
            self._suspected = True
            self._on_unreadable()
            self._clock.call_later(_AFTER_REBUILD_S, self.on_progress)
            return False
        if root != head.root:
            self.contradiction = (
                f"this controller signed a head of {head.size} batches with the root "
                f"{head.root.hex()}, and its log now gives {root.hex()}: history was changed. "
                f"{NEWEST_NAME} is the evidence"
            )
            self._log.critical("head_contradicted", why=self.contradiction)
            self._on_contradicted(self.contradiction)
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

    def _root(self, tree: BatchTree, size: int) -> bytes | None:
        try:
            return tree.root(size)
        except (LedgerError, OSError) as error:
            self._log.error("head_not_signed", batches=size, why=str(error))
            self._on_unreadable()
            return None
