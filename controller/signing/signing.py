"""Heads are signed by a majority: the leader asks, each controller computes, signs and collects.

Rule: a controller signs only the root that it computed from its own ledger, so a head with a
majority's signatures needs a majority that agrees. Whoever has collected one keeps the newest, and
the leader writes it into the log. A peer that signs another root for the same size is named: one of
the two histories is forged or damaged.

From `logberg.version` 6 on, a signature counts only if the log names its key for that voter.

The leader asks when it begins and at an interval, and only if something was committed since that is
more than the record of the last head. What is lost is asked for again with the next one.
"""

from collections.abc import Callable, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from controller.managers.head_keys import heads_in_log, key_of
from controller.signing.head_records import HeadRecords
from controller.signing.heads import SignedHead
from controller.signing.kept_heads import KeptHeads, RootedTree
from controller.signing.messages import HeadSigned, KeyRotation, read_told
from controller.signing.own_keys import OwnKeys
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, origin_of
from ledger.merkle.notes import NoteKey, NoteSignature, SignedNote, SigningKey
from metadata.image import MetadataImage
from metadata.records import HeadSignature
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk

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
        interval_s: float,
        *,
        own_keys: OwnKeys,
        records: Callable[[Callable[[], None]], HeadRecords],
        tree: Callable[[], RootedTree | None],
        image: Callable[[], MetadataImage],
        voters: Callable[[], tuple[int, ...]],
        tell: Callable[[bytes], None],
        on_unreadable: Callable[[], None],
        on_contradicted: Callable[[str], None] = lambda _why: None,
        log: FilteringBoundLogger,
    ) -> None:
        """`records` makes what writes; it calls back when a key was written.

        `tree`: None while it is not as long as the ledger. `image`: the committed one.
        `on_unreadable`: the tree's files can't be read; they have to be made again.
        `on_contradicted` gets a sentence: the log here is not the one whose head was signed.
        """
        self._clock = clock
        self._node_id = node_id
        self._cluster_id = cluster_id
        self._interval_s = interval_s
        self._own_keys = own_keys
        self._records = records(self._ask_soon)
        self._tree = tree
        self._image = image
        self._voters = voters
        self._tell = tell
        self._on_unreadable = on_unreadable
        self._log = log
        self._asked: list[int] = []
        self._own: TreeHead | None = None
        """The newest head that this node signed."""
        self._signatures: dict[int, HeadSigned] = {}
        """The newest of each voter, ours too."""
        self._timer: Timer | None = None
        self._retry: Timer | None = None
        self._asks_soon = False
        self._seen: tuple[object, object] | None = None
        self._kept = KeptHeads(clock, disk, self._root, self._make_again, on_contradicted, log)
        self.differing: dict[int, int] = {}
        """By peer: the size of a head whose root was not ours."""
        self.uncounted: dict[int, bytes] = {}
        """By peer: a key with which it signed, and which is not the one in the log."""

    @property
    def newest(self) -> SignedHead | None:
        """The newest head that a majority signed and that our log has."""
        return self._kept.newest

    @property
    def signer_keys(self) -> tuple[NoteKey, ...]:
        """The controllers' keys under the newest head, as far as they are known."""
        return self._kept.signer_keys

    @property
    def contradiction(self) -> str:
        """Why this node signs nothing any more; empty while its log has what was signed."""
        return self._kept.contradiction

    @property
    def problem(self) -> str:
        """Why this node signs nothing, or its signatures don't count; empty: they do."""
        return self._kept.contradiction or self._own_keys.problem

    def waiting_ms(self, now_ms: int) -> int:
        """Return how long batches have waited that no signed head covers; 0: there are none."""
        return self._kept.waiting_ms(now_ms)

    def is_ours(self, note: SignedNote) -> bool:
        """Return whether a majority of the voters signed a head, with keys that count now.

        Before the log names keys, those under our newest head count. Raises NoteError.
        """
        image, voters = self._image(), self._voters()
        keys: Sequence[NoteKey] = self._kept.signer_keys
        if heads_in_log(image):
            named = (key_of(image, voter) for voter in voters)
            keys = [NoteKey(self._origin(), key.public_key) for key in named if key is not None]
        return len(note.signers(keys)) > len(voters) // 2

    def tell_heads_to(self, on_head: Callable[[SignedHead, int], None]) -> None:
        """Tell of each new head of a majority, and since when its first batch waited for one."""
        self._kept.on_head = on_head

    def add_cosignature(self, signed: SignedHead, cosignature: NoteSignature) -> None:
        """A witness cosigned a head: serve it with the head, while that is the newest."""
        self._kept.add_cosignature(signed, cosignature)

    def on_loaded(self) -> None:
        """The ledger may be another one, after a catch-up: compare it with the newest head."""
        self._kept.on_loaded()

    # -- asking -----------------------------------------------------------------------------------

    def begin(self) -> None:
        """This controller leads: ask for a head soon, and at each interval."""
        self.end()
        self._records.begin()
        self._asks_soon = True
        self._ask()

    def end(self) -> None:
        """This controller leads no more."""
        self._records.end()
        self._asks_soon = False
        for timer in (self._timer, self._retry):
            if timer is not None:
                timer.cancel()
        self._timer = self._retry = None

    def _ask_soon(self) -> None:
        """A key counts from now on: the next thing that is committed is a reason to ask."""
        self._asks_soon = True

    def _ask(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._clock.call_later(self._interval_s, self._ask)
        tree, image = self._may_sign(), self._image()
        if tree is None or not tree.size:
            return
        if tree.end_offset != image.offset:
            # The image does not yet say whether the last batch is the record of a head.
            self._asks_soon = True
            return
        if self._kept.unsigned(tree, image):
            self._sign(tree, tree.size, asks=True)

    def _may_sign(self) -> RootedTree | None:
        """Return the tree, if this node may sign its roots."""
        tree = self._tree()
        if tree is None or not self._kept.holds(tree, self._origin()) or not tree.believed:
            return None
        return None if self._own_keys.problem else tree

    # -- signing and collecting -------------------------------------------------------------------

    def on_told(self, node_id: int, data: bytes) -> None:
        """A voter told something about heads, or about its key."""
        message = read_told(data)
        if isinstance(message, KeyRotation):
            self._records.rotated(node_id, message)
        elif message is not None:
            if message.asks:
                self._asked = [*self._asked, message.size][-_ASKED_KEPT:]
                self.on_progress()
            self._collect(node_id, message)

    def on_progress(self) -> None:
        """More is applied: sign what was asked for before this node had it.

        A node that has signed another history than it now has signs nothing.
        """
        image, tree = self._image(), self._tree()
        self._look(image, tree)
        self._kept.note_waiting(tree, image)
        if self._asks_soon and self._timer is not None and tree is not None and tree.size:
            self._asks_soon = False
            self._ask()
        if not self._asked and self._kept.settled:
            return
        tree = self._may_sign()
        if tree is None:
            return
        ready = [size for size in self._asked if tree.first <= size <= tree.size]
        self._asked = [size for size in self._asked if size > tree.size]
        if ready:
            self._sign(tree, max(ready), asks=False)

    def _look(self, image: MetadataImage, tree: RootedTree | None) -> None:
        """Keys or heads in the log may have changed."""
        if tree is not None and not self._kept.settled:
            self._kept.holds(tree, self._origin())
        self._kept.look(tree, image)
        seen = (image.heads.keys, image.quorum)
        if self._seen is not None and all(a is b for a, b in zip(seen, self._seen, strict=True)):
            return
        self._seen = seen
        if heads_in_log(image):
            self._own_keys.look(key_of(image, self._node_id))
            self._records.look()
            self._tell_rotation()

    def _tell_rotation(self) -> None:
        """Tell of a new key until the log has it: now, if it is durable, and at each interval."""
        if self._retry is not None:
            self._retry.cancel()
            self._retry = None
        named = key_of(self._image(), self._node_id)
        rotation = self._own_keys.rotation(named, self._origin())
        if rotation is not None:
            self._tell(rotation.encode())
            self._records.rotated(self._node_id, rotation)
        if self._own_keys.rotates(named):
            self._retry = self._clock.call_later(min(1.0, self._interval_s), self._tell_rotation)

    def key(self) -> SigningKey:
        """Return the key of this node, under the name of the cluster's tree."""
        return self._own_keys.key(self._origin())

    def _origin(self) -> str:
        return origin_of(self._cluster_id, self._image().quorum.generation)

    def _sign(self, tree: RootedTree, size: int, *, asks: bool) -> None:
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
        found = self._counting(own)
        if len(found) > len(self._voters()) // 2:
            signed = [(each.public_key, each.signature) for each in found]
            self._kept.keep(own, signed)
            self._records.signed(own, lambda: self._counting(own))

    def _counting(self, own: TreeHead) -> list[HeadSignature]:
        """Return the signatures of our own head that count, of each voter the newest."""
        image = self._image()
        counting: list[HeadSignature] = []
        for voter in self._voters():
            found = self._signatures.get(voter)
            if found is None or found.size != own.size:
                continue
            if found.root != own.root:
                self._note_differing(voter, found)
                continue
            if not NoteKey(own.origin, found.public).verifies(own.text, found.signature):
                continue
            if not heads_in_log(image) or self._is_its_key(image, voter, found.public):
                counting.append(HeadSignature(voter, found.public, found.signature))
        return counting

    def _is_its_key(self, image: MetadataImage, voter: int, public: bytes) -> bool:
        named = key_of(image, voter)
        if named is None:
            self._records.key_seen(voter, public)
            return False
        if named.public_key == public:
            self.uncounted.pop(voter, None)
            return True
        if self.uncounted.get(voter) != public:
            self.uncounted[voter] = public
            self._log.error("head_key_differs", peer=voter, key=public.hex())
        return False

    def _note_differing(self, node_id: int, message: HeadSigned) -> None:
        if self.differing.get(node_id) == message.size:
            return
        self.differing[node_id] = message.size
        self._log.error("head_differs", peer=node_id, batches=message.size, root=message.root.hex())

    def _make_again(self) -> None:
        self._on_unreadable()
        self._clock.call_later(_AFTER_REBUILD_S, self.on_progress)

    def _root(self, tree: RootedTree, size: int) -> bytes | None:
        try:
            return tree.root(size)
        except (LedgerError, OSError) as error:
            self._log.error("head_not_signed", batches=size, why=str(error))
            self._on_unreadable()
            return None
