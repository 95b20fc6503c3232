"""One look at a controller's signed head, and at what shows that it extends an older one.

Rule: nothing that a controller says is believed but by the keys. A head counts if a majority of the
believed keys signed it. The older root is computed from the controller's tiles, and counts only if
the same tiles lead to the signed root, too. So a controller whose tiles are wrong is of no use,
and a head that contradicts the older one is proved to do so, by the signatures under it.

The same keys count for a head of a later generation of the cluster. If too few of them signed it,
the head is only a claim, and the look says so.
"""

from collections.abc import Callable, Collection
from enum import Enum
from http import HTTPStatus
from typing import Final, NamedTuple

from broker_agent.head_file import KeptHead, generation_of
from ledger.batch import HASH_BYTES
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import NoteKey, SignedNote
from ledger.merkle.proofs import Subtree, prove_consistency, root_of, verify_consistency
from ledger.merkle.tiles import HEIGHT, WIDTH, TreeTile, subtrees_of
from metadata.messages import HEAD_KEYS_HEADER
from runtime.http.requests import PendingRequest, Reply, Request, Requester, Unreachable

_DEADLINE_S: Final = 5.0
_KEYS_MAX: Final = 32


class HeadVerdict(Enum):
    """What a look found."""

    GROWN = "grown"
    """The newest head, which extends the kept one, or is the first."""
    STALE = "stale"
    """A head that is older than the kept one."""
    UNUSABLE = "unusable"
    """No head, or nothing that can be believed."""
    CONTRADICTS = "contradicts"
    """A believed head of another history than the kept one."""
    GENERATION = "generation"
    """A believed head of a later generation of the cluster: it was restored or recovered."""
    CLAIMED = "claimed"
    """A head of a later generation that too few of the believed keys signed. The keys that the
    controller names signed it, and anybody can name keys."""


class FoundHead(NamedTuple):
    """The outcome of a look."""

    kind: HeadVerdict
    url: str
    """The controller that was asked."""
    why: str = ""
    """The reason; for a later generation its origin."""
    found: KeptHead | None = None
    keys: tuple[bytes, ...] = ()
    """The public keys that count for the head: the believed ones. If none were believed before, or
    if the head is CLAIMED: those that the controller names."""


class HeadLook:
    """One look. It calls `on_done` once, later, unless it is abandoned."""

    def __init__(
        self,
        requester: Requester,
        url: str,
        cluster_id: str,
        keys: Collection[bytes],
        kept: KeptHead | None,
        on_done: Callable[[FoundHead], None],
    ) -> None:
        """`keys`: the believed public keys; empty: those that the controller names."""
        self._requester = requester
        self._url = url
        self._cluster_id = cluster_id
        self._keys = tuple(keys)
        self._kept = kept
        self._on_done = on_done
        self._found: KeptHead | None = None
        self._named: tuple[bytes, ...] = ()
        self._tiles: dict[TreeTile, bytes] = {}
        self._wanted: list[TreeTile] = []
        self._in_flight: PendingRequest | None = None

    def begin(self) -> None:
        """Ask for the head."""
        self._ask("/checkpoint", self._head_came)

    def abandon(self) -> None:
        """Ask no more; `on_done` is not called any more."""
        if self._in_flight is not None:
            self._in_flight.abandon()
            self._in_flight = None

    def _ask(self, path: str, on_reply: Callable[[Reply], None]) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            self._in_flight = None
            if isinstance(answer, Unreachable):
                self._unusable(f"it does not answer: {answer.reason}")
            elif answer.status != HTTPStatus.OK:
                self._unusable(f"{path} is answered with status {answer.status}")
            else:
                on_reply(answer)

        request = Request("GET", path)
        self._in_flight = self._requester.request(self._url, request, answered, _DEADLINE_S)

    def _unusable(self, why: str) -> None:
        self._on_done(FoundHead(HeadVerdict.UNUSABLE, self._url, f"{self._url}: {why}"))

    def _head_came(self, answer: Reply) -> None:
        try:
            note = SignedNote.parse(answer.body)
            origin = TreeHead.parse(note.text).origin
            generation = generation_of(origin, self._cluster_id)
            if generation == 0:
                self._unusable(f"its head is of {origin}")
                return
            known = 0
            if self._kept is not None:
                known = generation_of(self._kept.head.origin, self._cluster_id)
            if known and generation > known:
                self._later_generation(note, origin, answer)
                return
            named = self._keys or _named_keys(answer)
            head = believed_head(note, origin, [NoteKey(origin, key) for key in named])
        except LedgerError as error:
            self._unusable(f"its head is not believed: {error}")
            return
        self._named = named
        self._judge(KeptHead(head, note.encode()), generation < known)

    def _later_generation(self, note: SignedNote, origin: str, answer: Reply) -> None:
        """Say who signed a head of a later generation. Raises LedgerError if nobody did."""
        kind, named = HeadVerdict.GENERATION, self._keys
        try:
            head = believed_head(note, origin, [NoteKey(origin, key) for key in named])
        except LedgerError:
            # Honest controllers may have new keys. The caller decides whether that may be so.
            kind, named = HeadVerdict.CLAIMED, _named_keys(answer)
            head = believed_head(note, origin, [NoteKey(origin, key) for key in named])
        self._on_done(FoundHead(kind, self._url, origin, KeptHead(head, note.encode()), named))

    def _judge(self, found: KeptHead, is_earlier: bool) -> None:
        kept = self._kept
        self._found = found
        if kept is None or not kept.head.size:
            self._done(HeadVerdict.GROWN)
        elif is_earlier or found.head.size < kept.head.size:
            self._done(HeadVerdict.STALE, f"its head has {found.head.size} batches")
        elif found.head.size == kept.head.size:
            if found.head.root == kept.head.root:
                self._done(HeadVerdict.GROWN)
            else:
                self._contradicts(found.head.root)
        else:
            self._wanted = _tiles_between(kept.head.size, found.head.size)
            self._next_tile()

    def _next_tile(self) -> None:
        if not self._wanted:
            self._compare()
            return
        tile = self._wanted.pop()

        def came(answer: Reply) -> None:
            if len(answer.body) != tile.width * HASH_BYTES:
                self._unusable(f"{tile.path} has {len(answer.body)} bytes")
                return
            self._tiles[tile] = answer.body
            self._next_tile()

        self._ask(f"/{tile.path}", came)

    def _compare(self) -> None:
        assert self._kept is not None
        assert self._found is not None
        old, new = self._kept.head, self._found.head
        subtree = subtrees_of(self._hashes)
        try:
            old_root = root_of(old.size, subtree)
            proof = prove_consistency(old.size, new.size, subtree)
            verify_consistency(old.size, old_root, new.size, new.root, proof)
        except LedgerError as error:
            self._unusable(f"its tiles are not those of its head: {error}")
            return
        if old_root == old.root:
            self._done(HeadVerdict.GROWN)
        else:
            self._contradicts(old_root)

    def _hashes(self, level: int, first: int, count: int) -> bytes:
        number = first // WIDTH
        tile = next(one for one in self._tiles if (one.level, one.number) == (level, number))
        at = (first - number * WIDTH) * HASH_BYTES
        return self._tiles[tile][at : at + count * HASH_BYTES]

    def _contradicts(self, root: bytes) -> None:
        assert self._kept is not None
        old = self._kept.head
        self._done(
            HeadVerdict.CONTRADICTS,
            f"this broker has seen a signed head of {old.size} batches with the root "
            f"{old.root.hex()}, and {self._url} has a signed head of a log whose root there is "
            f"{root.hex()}: one of the two histories is forged",
        )

    def _done(self, kind: HeadVerdict, why: str = "") -> None:
        self._on_done(FoundHead(kind, self._url, why, self._found, self._named))


def _tiles_between(old: int, size: int) -> list[TreeTile]:
    """Return the tiles that the root of `old` batches, and its proof of consistency, need."""
    wanted: set[tuple[int, int]] = set()

    def note(level: int, number: int) -> bytes:
        row, rest = divmod(level, HEIGHT)
        wanted.add((row, (number << rest) // WIDTH))
        return bytes(HASH_BYTES)

    subtree: Subtree = note
    root_of(old, subtree)
    prove_consistency(old, size, subtree)
    tiles = []
    for row, number in sorted(wanted):
        width = min(WIDTH, (size >> HEIGHT * row) - number * WIDTH)
        tiles.append(TreeTile(row, number, width))
    return tiles


def _named_keys(answer: Reply) -> tuple[bytes, ...]:
    """Return the keys that an answer names. Raises NoteError."""
    lines = answer.headers.get(HEAD_KEYS_HEADER, "").split(",")
    return tuple(NoteKey.parse(line).public for line in lines[:_KEYS_MAX] if line.strip())
