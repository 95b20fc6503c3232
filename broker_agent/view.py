"""The agent's image and its place in the log.

Rule: batches are applied in order, each onto the one before. A batch that does not continue our
mark (its offset, or the hash of the batch before) is not applied at all: history has two
versions, and the agent keeps the one it has seen until someone says which is right. An image
that is loaded replaces; it never merges.

Batches of an open transaction are held in the image's branch: they are fetched (and count in the
image's offset), while readers see the state before it until its end.
"""

from collections.abc import Sequence

import structlog

from broker_agent.publishers import Manifest, Publisher
from ledger.batch import Batch, parse
from ledger.chain import LogMark
from ledger.errors import LedgerError
from metadata.codec import RecordDecodeError, decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.messages.fetch import StateAt

HASH_STEP = 1024
"""Controllers name their state at the first batch end at or past each multiple of this."""
_HASHES_KEPT = 64


class HistoryDiffersError(Exception):
    """A controller sent a history that is not the one we have seen."""


class MetadataView:
    """An image that follows the log."""

    def __init__(
        self,
        cluster_id: str,
        publishers: tuple[Publisher, ...],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._beginning = LogMark.beginning(cluster_id)
        self._publishers = publishers
        self._log = log
        self._image = EMPTY
        self._published = EMPTY
        self._mark = self._beginning
        self._hashes: dict[int, tuple[bytes, bytes]] = {}
        self.differs = False
        self.publisher_failures = 0

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._published

    @property
    def mark(self) -> LogMark:
        """Where in the log the image stands."""
        return self._mark

    @property
    def fetched_offset(self) -> int:
        """Records below this are here."""
        return self._mark.log_end

    @property
    def fetched_epoch(self) -> int:
        """The epoch of the last of them; -1 when there is none."""
        return self._mark.epoch if self._mark.log_end else -1

    def state_hash_text(self) -> str | None:
        """The hash of what brokers share, for people."""
        state_hash = self._published.state_hash
        return None if state_hash is None else state_hash.shared_bytes().hex()

    def apply(self, encoded: Sequence[bytes]) -> None:
        """Apply batches as they stand on disk, and publish once.

        Batches, or leading ones of them, that we have already are passed over. Raises
        HistoryDiffersError, and then nothing of `encoded` has been applied.
        """
        try:
            batches = [parse(data) for data in encoded]
            image, mark, hashes = self._replayed(batches)
        except (LedgerError, RecordDecodeError, ReplayError) as error:
            self.differs = True
            raise HistoryDiffersError(str(error)) from error
        self._hashes |= hashes
        self._trim_hashes()
        self._publish(image, mark, replaced=False)

    def _replayed(
        self, batches: Sequence[Batch]
    ) -> tuple[MetadataImage, LogMark, dict[int, tuple[bytes, bytes]]]:
        image, mark = self._image, self._mark
        hashes: dict[int, tuple[bytes, bytes]] = {}
        delta = MetadataDelta(image, keep_outcomes=False)
        for batch in batches:
            header = batch.header
            if header.end_offset <= mark.log_end:
                continue
            if objection := mark.objection(batch):
                raise LedgerError(objection)
            before = mark.log_end
            mark = mark.after(batch)
            delta.replay_all(decode_records(batch.records), header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
            if before // HASH_STEP != mark.log_end // HASH_STEP:
                image = delta.apply()
                hashes[mark.log_end] = _hashes_of(image, mark)
                delta = MetadataDelta(image, keep_outcomes=False)
        image = delta.apply()
        hashes[mark.log_end] = _hashes_of(image, mark)
        return image, mark, hashes

    def replace(self, image: MetadataImage, mark: LogMark) -> None:
        """Put a loaded image in place of ours, and publish it."""
        self._hashes = {mark.log_end: _hashes_of(image, mark)}
        self._publish(image, mark, replaced=True)

    def forget(self) -> None:
        """Begin again: ask for everything. Readers keep the old image until the new one is there.

        The next batches begin at offset 0, or a snapshot comes; either replaces.
        """
        self._image, self._mark = EMPTY, self._beginning
        self._hashes = {}

    def compare(self, state: StateAt) -> bool:
        """Hold our state against what the controller had at the same offset.

        False when they differ; True when equal, or when ours at that offset isn't known any more.
        """
        ours = self._hashes.get(state.offset)
        if ours is None or ours == (state.chain_hash, state.state_hash):
            return True
        self.differs = True
        what = "log" if ours[0] != state.chain_hash else "state"
        self._log.error("state_differs", what=what, offset=state.offset)
        return False

    def _publish(self, image: MetadataImage, mark: LogMark, *, replaced: bool) -> None:
        before = self._published
        # After `forget`, ours is not the image that readers hold: the step replaces theirs.
        replaced = replaced or self._image is not before
        self._image = self._published = image
        self._mark = mark
        manifest = Manifest(mark.log_end, mark.epoch, mark.timestamp_ms, replaced)
        for publisher in self._publishers:
            try:
                publisher.on_metadata(before, image, manifest)
            except Exception:  # noqa: BLE001 - a host's part must not stop the others
                self.publisher_failures += 1
                self._log.exception("publisher_failed", publisher=type(publisher).__name__)

    def _trim_hashes(self) -> None:
        while len(self._hashes) > _HASHES_KEPT:
            del self._hashes[min(self._hashes)]


def _hashes_of(image: MetadataImage, mark: LogMark) -> tuple[bytes, bytes]:
    assert image.state_hash is not None
    return mark.head, image.state_hash.shared_bytes()
