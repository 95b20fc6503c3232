"""The agent's image and its place in the log.

Rule: batches are applied in order, and all batches of one answer or none. A batch is not applied if
it doesn't continue our mark (its offset, or the hash of the previous batch), or if the state after
it is not the one that the controller reports. Then history or state has two versions, and readers
keep the old image until everything was fetched again. A loaded image replaces the old one; it never
merges.

Readers see an image only when it is complete. At the start, and while everything is fetched again,
images are *held back* until they reach the offset that the controller had at the beginning.

Batches of an open transaction are held in the image's branch: they are fetched, while readers see
the state before its Begin, and that is all that counts as applied.
"""

from collections.abc import Sequence

import msgspec
import structlog

from broker_agent.publishers import Manifest, Publisher
from ledger.batch import Batch, parse
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, UnknownFormatError
from metadata.codec import RecordDecodeError, UnknownRecordError, decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, ReplayError
from metadata.messages.fetch import StateAt

PUBLISHER_FAILED = "publisher_failed"
HASH_STEP = 1024
"""Controllers name their state at the first batch end at or past each multiple of this."""
_HASHES_KEPT = 64

_Hashes = dict[int, tuple[bytes, bytes]]
"""Chain hash and state hash by offset."""


class UnusableAnswerError(Exception):
    """Damaged bytes, or batches from a later offset than asked for: ask again, or another."""


class DiffersError(Exception):
    """A controller's history or state is not ours."""


class TooNewError(Exception):
    """The cluster speaks a format, or writes records, that this software doesn't know."""


class PlacedImage(msgspec.Struct, frozen=True):
    """An image and its place in the log."""

    image: MetadataImage
    mark: LogMark


class MetadataView:
    """An image that follows the log."""

    def __init__(
        self,
        cluster_id: str,
        publishers: tuple[Publisher, ...],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._beginning = PlacedImage(EMPTY, LogMark.beginning(cluster_id))
        self._publishers = publishers
        self._log = log
        self._newest = self._beginning
        self._published = EMPTY
        self._continues = True
        self._hashes: _Hashes = {}
        self.holding = True
        """Images are held back: readers have the one from before, or none."""
        self.publisher_failures = 0

    @property
    def image(self) -> MetadataImage:
        """The newest published image."""
        return self._published

    @property
    def newest(self) -> PlacedImage:
        """The newest image, published or held back."""
        return self._newest

    @property
    def mark(self) -> LogMark:
        """Where in the log the newest image stands."""
        return self._newest.mark

    @property
    def fetched_offset(self) -> int:
        """Records below this are here."""
        return self.mark.log_end

    @property
    def fetched_epoch(self) -> int:
        """The epoch of the last of them; -1 when there is none."""
        return self.mark.epoch if self.mark.log_end else -1

    @property
    def applied_offset(self) -> int:
        """What readers see holds the records below this."""
        return applied_offset(self._published)

    def state_hash_text(self) -> str | None:
        """The hash of what brokers share, for people."""
        state_hash = self._published.state_hash
        return None if state_hash is None else state_hash.shared_bytes().hex()

    def apply(self, encoded: Sequence[bytes], state: StateAt | None = None) -> None:
        """Apply batches as they stand on disk, and publish once.

        Batches, or leading ones of them, that we have already are passed over. `state` is what
        the controller says of an offset at or below their end. Raises UnusableAnswerError,
        DiffersError or TooNewError, and then nothing of `encoded` has been applied.
        """
        before = self._newest
        placed, hashes = self._replayed(_parsed(encoded, before.mark))
        if state is not None:
            _compare(state, self._hashes | hashes)
        if placed is before:
            return
        self._hashes |= hashes
        while len(self._hashes) > _HASHES_KEPT:
            del self._hashes[min(self._hashes)]
        self._newest = placed
        self._publish()

    def replace(self, loaded: PlacedImage) -> None:
        """Put a loaded image in place of ours, and publish it unless it is to be held back."""
        self._hashes = {loaded.mark.log_end: _hashes_of(loaded)}
        self._newest = loaded
        self._continues = False
        self._publish()

    def forget(self) -> None:
        """Begin again: ask for everything. Readers keep the old image until the new one is whole.

        The next batches begin at offset 0, or a snapshot comes; either replaces.
        """
        self._newest = self._beginning
        self._continues = False
        self._hashes = {}
        self.holding = True

    def release(self) -> None:
        """Hold images back no longer: the newest one is whole."""
        if self.holding:
            self.holding = False
            self._publish()

    def _replayed(self, batches: Sequence[Batch]) -> tuple[PlacedImage, _Hashes]:
        image, mark = self._newest.image, self._newest.mark
        hashes: _Hashes = {}
        if not batches:
            return self._newest, hashes
        try:
            delta = MetadataDelta(image, keep_outcomes=False)
            for batch in batches:
                _check_continues(mark, batch)
                header = batch.header
                steps = header.end_offset // HASH_STEP - mark.log_end // HASH_STEP
                mark = mark.after(batch)
                delta.replay_all(decode_records(batch.records), header.base_offset)
                delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
                if steps:
                    image = delta.apply()
                    hashes[mark.log_end] = _hashes_of(PlacedImage(image, mark))
                    delta = MetadataDelta(image, keep_outcomes=False)
            placed = PlacedImage(delta.apply(), mark)
        except UnknownRecordError as error:
            raise TooNewError(str(error)) from error
        except (RecordDecodeError, ReplayError) as error:
            raise DiffersError(str(error)) from error
        hashes[mark.log_end] = _hashes_of(placed)
        return placed, hashes

    def _publish(self) -> None:
        before, after = self._published, self._newest.image
        if self.holding or after is before:
            return
        self._published = after
        replaced, self._continues = not self._continues, True
        mark = self._newest.mark
        manifest = Manifest(applied_offset(after), mark.epoch, mark.timestamp_ms, replaced)
        for publisher in self._publishers:
            try:
                publisher.on_metadata(before, after, manifest)
            except Exception:  # noqa: BLE001 - a host's part must not stop the others
                self.publisher_failures += 1
                self._log.exception(PUBLISHER_FAILED, publisher=type(publisher).__name__)


def applied_offset(image: MetadataImage) -> int:
    """Return the offset below which an image shows all records: an open transaction's it doesn't.

    What is decided while a transaction is open stands inside of it, so nothing is missed.
    """
    return image.offset if image.transaction is None else image.transaction.offset


def _parsed(encoded: Sequence[bytes], mark: LogMark) -> list[Batch]:
    """Read batches; those that lie before the mark are left out."""
    try:
        batches = [parse(data) for data in encoded]
    except UnknownFormatError as error:
        raise TooNewError(str(error)) from error
    except DamagedBatchError as error:
        raise UnusableAnswerError(f"a batch is damaged {error}") from error
    return [batch for batch in batches if batch.header.end_offset > mark.log_end]


def _check_continues(mark: LogMark, batch: Batch) -> None:
    objection = mark.objection(batch)
    if not objection:
        return
    if batch.header.base_offset > mark.log_end:
        raise UnusableAnswerError(objection)
    raise DiffersError(f"at offset {batch.header.base_offset}: {objection}")


def _compare(state: StateAt, known: _Hashes) -> None:
    """Hold ours against what the controller had; an offset that we don't know says nothing."""
    ours = known.get(state.offset)
    if ours is None or ours == (state.chain_hash, state.state_hash):
        return
    what = "log" if ours[0] != state.chain_hash else "state"
    raise DiffersError(f"at offset {state.offset} our {what} is not the controller's")


def _hashes_of(placed: PlacedImage) -> tuple[bytes, bytes]:
    assert placed.image.state_hash is not None
    return placed.mark.head, placed.image.state_hash.shared_bytes()
