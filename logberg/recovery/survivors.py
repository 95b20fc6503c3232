"""What the folder of a stopped controller holds: its journal, its ledger, and where its log ends.

Rule: the log of a folder is the sound part of its ledger, and behind it the batches of its journal
that continue it. What is in the ledger was committed. A batch of the journal was committed if the
folder says so by its commit index; else nobody can tell any more. Reading changes nothing.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from audit.places.tree_disk import CutDisk
from ledger.batch import Batch, parse
from ledger.catalogue import find_segments
from ledger.chain import LogMark
from ledger.errors import DamagedLedgerError, LedgerError
from ledger.incoming import NOTE_NAME as CATCH_UP_NOTE
from ledger.reader import LedgerReader
from quorum.journal.damage import DamagedError
from quorum.recovery.holdings import Holdings, holdings_of
from runtime.disk.interface import Disk

OnProgress = Callable[[int, int], None]
_TOLD_EVERY = 4_096


class NoSurvivorError(Exception):
    """A folder can't be recovered from. The message says why."""


class Survivor(NamedTuple):
    """One folder."""

    name: str
    disk: Disk
    journal: Holdings
    reader: LedgerReader | None
    """Of the sound part of the ledger; None: there is none."""
    ledger_end: LogMark
    """Where the sound part of the ledger ends."""
    tail: tuple[Batch, ...]
    """The batches of the journal behind it."""
    committed_in_tail: int
    """How many of them the folder knows to be committed."""
    ledger_damage: str
    """In a sentence; empty: the ledger is sound."""

    @property
    def node_id(self) -> int:
        """The node whose folder it is."""
        return self.journal.node_id

    @property
    def end(self) -> LogMark:
        """Where the log of this folder ends."""
        return self.ledger_end.after(self.tail[-1]) if self.tail else self.ledger_end

    @property
    def certain_end(self) -> int:
        """Everything before this offset was committed, as far as this folder knows."""
        if not self.committed_in_tail:
            return self.ledger_end.log_end
        return self.tail[self.committed_in_tail - 1].header.end_offset

    @property
    def log_start(self) -> int:
        """The first offset of the history that is here."""
        return 0 if self.reader is None else self.reader.log_start

    @property
    def damage(self) -> str:
        """What is damaged, in sentences; empty: nothing is."""
        return "; ".join(filter(None, (self.journal.damage, self.ledger_damage)))

    def hash_at(self, offset: int) -> bytes | None:
        """Return the chain hash at an offset of the log; None if no batch ends there."""
        if offset == self.ledger_end.log_end:
            return self.ledger_end.head
        for batch in self.tail:
            if batch.header.end_offset == offset:
                return batch.hash
        return None if self.reader is None else self.reader.hash_at(offset)


def read_survivor(name: str, disk: Disk, on_progress: OnProgress | None = None) -> Survivor:
    """Read the folder of a stopped controller. Raises NoSurvivorError, OSError."""
    try:
        journal = holdings_of(disk)
    except DamagedError as error:
        raise NoSurvivorError(f"{name}: {error}") from error
    if journal is None:
        raise NoSurvivorError(f"{name} holds no journal: it is empty, or not a controller's folder")
    try:
        mark = _mark_in(journal)
        reader, end, damage = _sound_ledger(disk, journal.cluster_id, mark, on_progress)
        tail = tuple(_continued(journal, end))
    except LedgerError as error:
        raise NoSurvivorError(f"{name}: {error}") from error
    committed = sum(at <= journal.commit_index for at, _ in tail)
    batches = tuple(batch for _, batch in tail)
    return Survivor(name, disk, journal, reader, end, batches, committed, damage)


def _mark_in(journal: Holdings) -> LogMark | None:
    data = journal.mark.data if journal.mark is not None else b""
    return LogMark.decode(data) if data else None


def _sound_ledger(
    disk: Disk, cluster_id: str, mark: LogMark | None, on_progress: OnProgress | None
) -> tuple[LedgerReader | None, LogMark, str]:
    """Return a reader, where the sound part of the ledger ends, and what ends it early.

    Bad bytes behind the mark are no damage: they were not synced, and the journal holds them.
    """
    synced_to = mark or LogMark.beginning(cluster_id)
    reader, damage = _reader_of(disk, cluster_id, synced_to)
    if reader is None:
        if not damage and synced_to.log_end:
            damage = "no segment of the ledger is here"
        return None, LogMark.beginning(cluster_id), damage
    end = reader.segment_marks()[0]
    try:
        for number, batch in enumerate(reader.batches()):
            end = end.after(batch)
            if on_progress is not None and number % _TOLD_EVERY == 0:
                on_progress(end.log_end, reader.log_end)
    except DamagedLedgerError as error:
        damage = damage or _place(error)
    if not damage and end.log_end < synced_to.log_end:
        damage = (
            f"the ledger ends at offset {end.log_end}, and was synced up to {synced_to.log_end}"
        )
        if disk.exists(CATCH_UP_NOTE):
            damage += (
                ". A catch-up was about to be finished: start this controller once, stop it, and "
                "look again"
            )
    return reader, end, damage


def _reader_of(disk: Disk, cluster_id: str, synced_to: LogMark) -> tuple[LedgerReader | None, str]:
    """Open the ledger up to the first segment whose header is damaged; None: there is none."""
    damage = ""
    while find_segments(disk):
        try:
            return LedgerReader(disk, cluster_id=cluster_id, synced_to=synced_to), damage
        except DamagedLedgerError as error:
            damage = damage or _place(error)
            disk = CutDisk(disk, error.file, error.position)
    return None, damage


def _place(error: DamagedLedgerError) -> str:
    return f"{error.file}, byte {error.position}, offset {error.offset}: {error.reason}"


def _continued(journal: Holdings, end: LogMark) -> Iterator[tuple[int, Batch]]:
    """Yield the batches that continue the ledger, each with the index of its entry.

    This is the fence: a batch counts if its epoch is its entry's and it continues the log.
    """
    for entry in journal.entries:
        for payload in entry.payloads:
            batch = parse(payload)
            if batch.header.epoch == entry.epoch and not end.objection(batch):
                yield entry.at, batch
                end = end.after(batch)
