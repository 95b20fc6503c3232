"""Keeps the Merkle tree over the batches up to date with the ledger.

Rule: the tree follows the ledger, and nothing waits for the tree. What it lacks, after a restart or
because it was dropped, is read from the ledger in slices, between other work. A node whose ledger
begins later than the tree ends has no tree until its history is whole again.

While the tree is behind the newest checkpoint, the node has the edge of the tree from there on, if
the checkpoint says its frontier. With that it can sign heads, but prove nothing.
"""

from collections.abc import Callable, Generator
from typing import Final, NamedTuple

from structlog.typing import FilteringBoundLogger

from ledger.batch import Batch
from ledger.batch_tree import BatchTree
from ledger.edge_tree import EdgeTree
from ledger.errors import LedgerError
from ledger.ledger import Ledger
from ledger.merkle.frontier import Frontier
from runtime.clock import Clock, Timer
from runtime.disk.errors import sentence
from runtime.disk.interface import Disk
from runtime.loop.slices import run_in_slices

_AGAIN_S: Final = 10.0
"""Pause until history that was missing is looked for again."""
_STEP: Final = 16
"""Batches that are read before other work may run."""


class FrontierPlace(NamedTuple):
    """A frontier, and the place in the log that it is the frontier of."""

    frontier: Frontier
    offset: int
    chain_hash: bytes


class TreeKeeping:
    """One node's tree, and how far it is."""

    def __init__(
        self,
        clock: Clock,
        disk: Disk,
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_failed` stops the node, if the tree's files can't be opened or synced."""
        self._clock = clock
        self._disk = disk
        self._on_failed = on_failed
        self._log = log
        self._tree: BatchTree | None = None
        self._edge: EdgeTree | None = None
        self._ledger: Ledger | None = None
        self._cancel_edge: Callable[[], None] | None = None
        self._cancel: Callable[[], None] | None = None
        self._timer: Timer | None = None

    @property
    def tree(self) -> BatchTree | None:
        """The tree; None while it is not as long as the ledger."""
        tree, ledger = self._tree, self._ledger
        if tree is None or ledger is None or tree.end_offset != ledger.log_end:
            return None
        return tree

    @property
    def rooted(self) -> BatchTree | EdgeTree | None:
        """What roots are computed from: the tree, or its edge; None while both are behind."""
        tree, edge, ledger = self.tree, self._edge, self._ledger
        if tree is not None or edge is None or ledger is None:
            return tree
        return edge if edge.end_offset == ledger.log_end else None

    def frontier(self) -> Frontier | None:
        """Return the frontier at the ledger's end, if it is known and believed."""
        rooted = self.rooted
        return rooted.frontier() if rooted is not None and rooted.believed else None

    def begin(self, ledger: Ledger, base: FrontierPlace | None = None) -> None:
        """Start, or start again after the ledger was replaced.

        `base`: the frontier that the newest checkpoint says.
        """
        self.stop()
        self._ledger = ledger
        try:
            if self._tree is None:
                self._tree = BatchTree.open(self._disk, self._sync_failed)
            self._tree.cut(ledger.log_end)
            self._drop_if_other(self._tree, ledger)
        except OSError as error:
            self._on_failed(sentence(error, "opening the tree of batches"))
            return
        self._catch_up(ledger)
        self._edge = None
        if base is not None and self._tree.end_offset < base.offset:
            self._begin_edge(ledger, base)

    def on_batch(self, batch: Batch) -> None:
        """Take a batch that the ledger accepted. One that is not the next one is read later."""
        if self._tree is not None and self._cancel is None:
            self._tree.append(batch)
        if self._edge is not None and self._cancel_edge is None:
            self._edge.append(batch)

    def stop(self) -> None:
        """Read no more."""
        for cancel in (self._cancel, self._cancel_edge):
            if cancel is not None:
                cancel()
        self._cancel = self._cancel_edge = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def close(self) -> None:
        """Stop, and close the files."""
        self.stop()
        if self._tree is not None:
            self._tree.close()
            self._tree = None

    def rebuild(self) -> None:
        """Drop the tree and make it again: it can't be read, or its root is not the others'."""
        tree, ledger = self._tree, self._ledger
        if tree is None or ledger is None:
            return
        self.stop()
        self._edge = None
        self._log.error("tree_dropped", batches=tree.size)
        try:
            tree.drop()
        except OSError as error:
            self._on_failed(sentence(error, "dropping the tree of batches"))
            return
        self._catch_up(ledger)

    def _drop_if_other(self, tree: BatchTree, ledger: Ledger) -> None:
        """Drop a tree of another history than the ledger's. Raises OSError."""
        try:
            head = tree.head
            same = tree.end_offset < ledger.log_start or head in (
                None,
                ledger.hash_at(tree.end_offset),
            )
        except LedgerError:
            same = False
        if not same:
            self._log.error("tree_dropped", batches=tree.size)
            tree.drop()

    def _catch_up(self, ledger: Ledger) -> None:
        tree = self._tree
        if tree is None or tree.end_offset == ledger.log_end:
            return
        if tree.end_offset < ledger.log_start:
            self._look_again(ledger)
            return

        def done() -> None:
            self._cancel = None
            if tree.end_offset == ledger.log_end:
                self._edge = None
            if tree.end_offset < ledger.log_end:
                self._look_again(ledger)

        self._cancel = run_in_slices(self._clock, self._read(tree, ledger), done)

    def _read(self, tree: BatchTree, ledger: Ledger) -> Generator[None, None, None]:
        try:
            while tree.end_offset < ledger.log_end:
                before = tree.end_offset
                for number, batch in enumerate(ledger.batches(before), start=1):
                    if tree.head not in (None, batch.header.previous_hash):
                        self._log.error("tree_dropped", batches=tree.size)
                        tree.drop()
                        break
                    tree.append(batch)
                    if number % _STEP == 0:
                        yield
                if tree.end_offset == before or tree.end_offset < ledger.log_start:
                    return
        except (LedgerError, OSError) as error:
            # Whoever mends the ledger says so. The tree is read again later.
            self._log.warning("tree_not_read", offset=tree.end_offset, why=str(error))

    def _begin_edge(self, ledger: Ledger, base: FrontierPlace) -> None:
        """Begin with a frontier, and read what the ledger has behind it."""
        try:
            if not ledger.log_start <= base.offset <= ledger.log_end:
                return
            if ledger.hash_at(base.offset) != base.chain_hash:
                return
        except (LedgerError, OSError):
            return  # whoever mends the ledger says so
        edge = self._edge = EdgeTree(base.frontier, base.offset)

        def read() -> Generator[None, None, None]:
            try:
                while edge.end_offset < ledger.log_end:
                    before = edge.end_offset
                    for number, batch in enumerate(ledger.batches(before), start=1):
                        edge.append(batch)
                        if number % _STEP == 0:
                            yield
                    if edge.end_offset == before:
                        return
            except (LedgerError, OSError) as error:
                self._log.warning("tree_not_read", offset=edge.end_offset, why=str(error))

        def done() -> None:
            self._cancel_edge = None

        self._cancel_edge = run_in_slices(self._clock, read(), done)

    def _look_again(self, ledger: Ledger) -> None:
        def again() -> None:
            self._timer = None
            self._catch_up(ledger)

        self._timer = self._clock.call_later(_AGAIN_S, again)

    def _sync_failed(self, error: OSError) -> None:
        self._on_failed(sentence(error, "syncing the tree of batches"))
