"""The agent's image and its mark, which is its place in the log.

Rule: the agent applies all batches of one answer, in order, or none. It does not apply a batch that
doesn't continue our mark (by its offset, or by the hash of the previous batch), or after which our
state is not the one that the controller reports. Then our history or state differs from the
controller's, and readers keep the old image until the agent has fetched everything again. A
snapshot that is loaded replaces the image; the two are never merged.

Readers see only complete images. At the start, and while the agent fetches everything again, images
are *held back* until they reach the offset that the controller had at the beginning.

The batches of an open transaction go into the image's branch. They count as fetched and not as
applied: readers see the state before the transaction's Begin.
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
"""Controllers report their state at the first batch end at or past each multiple of this offset."""
_HASHES_KEPT = 64

_Hashes = dict[int, tuple[bytes, bytes]]
"""Chain hash and state hash by offset."""


class UnusableAnswerError(Exception):
    """An answer holds damaged bytes, or batches from a later offset than the agent asked for.

    Ask again, or ask another controller.
    """


class DiffersError(Exception):
    """A controller's history or state is not ours."""


class TooNewError(Exception):
    """The log has a format or records that this software doesn't know."""


class PlacedImage(msgspec.Struct, frozen=True):
    """An image and its mark in the log."""

    image: MetadataImage
    mark: LogMark


class MetadataView:
    """The image that the agent updates with each batch, and publishes to readers."""

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
        """Whether images are held back: readers have the previous one, or the empty one."""
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
        """The place of the newest image in the log."""
        return self._newest.mark

    @property
    def fetched_offset(self) -> int:
        """The agent has the records below this offset."""
        return self.mark.log_end

    @property
    def fetched_epoch(self) -> int:
        """The epoch of the last record fetched; -1 when there is none."""
        return self.mark.epoch if self.mark.log_end else -1

    @property
    def applied_offset(self) -> int:
        """The published image holds the records below this offset."""
        return applied_offset(self._published)

    def state_hash_text(self) -> str | None:
        """The published image's state hash over what brokers share, in hexadecimal digits."""
        state_hash = self._published.state_hash
        return None if state_hash is None else state_hash.shared_bytes().hex()

    def apply(self, encoded: Sequence[bytes], state: StateAt | None = None) -> None:
        """Apply batches, each with the bytes that it has in the ledger, and publish once.

        Skips leading batches that are applied already. `state` is what the controller reports for
        an offset at or below their end. Raises UnusableAnswerError, DiffersError or TooNewError;
        then no batch of `encoded` has been applied.
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
        """Replace our image by a loaded one, and publish it unless images are held back."""
        self._hashes = {loaded.mark.log_end: _hashes_of(loaded)}
        self._newest = loaded
        self._continues = False
        self._publish()

    def forget(self) -> None:
        """Drop the image, to fetch everything again. Readers keep the published one meanwhile.

        The next batches begin at offset 0, or a snapshot comes; either replaces the image.
        """
        self._newest = self._beginning
        self._continues = False
        self._hashes = {}
        self.holding = True

    def release(self) -> None:
        """Publish the newest image, which is complete now, and hold images back no longer."""
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
            except Exception:  # noqa: BLE001 - one publisher's error must not stop the others
                self.publisher_failures += 1
                self._log.exception(PUBLISHER_FAILED, publisher=type(publisher).__name__)


def applied_offset(image: MetadataImage) -> int:
    """Return the offset below which an image holds all records.

    While a transaction is open, that is the offset of its Begin. No record outside the transaction
    can follow before its end, because decisions are made one after another.
    """
    return image.offset if image.transaction is None else image.transaction.offset


def _parsed(encoded: Sequence[bytes], mark: LogMark) -> list[Batch]:
    """Decode batches, and leave out those before the mark."""
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
    """Compare our hashes with the controller's, if we have hashes for that offset."""
    ours = known.get(state.offset)
    if ours is None or ours == (state.chain_hash, state.state_hash):
        return
    what = "log" if ours[0] != state.chain_hash else "state"
    raise DiffersError(f"at offset {state.offset} our {what} is not the controller's")


def _hashes_of(placed: PlacedImage) -> tuple[bytes, bytes]:
    assert placed.image.state_hash is not None
    return placed.mark.head, placed.image.state_hash.shared_bytes()
