"""The agent's image and its mark, which is its place in the log.

Rule: the agent applies all batches of one answer, in order, or none. It does not apply a batch that
doesn't continue our mark (by its offset, or by the hash of the previous batch), or after which our
state is not the one that the controller reports. Then our history or state differs from the
controller's, and readers keep the old image until the agent has fetched everything again. A
snapshot that is loaded replaces the image; the two are never merged.

All this takes steps: other work of the event loop runs in between, whatever the size of an answer.
The next image is built beside the one that readers have, and replaces it in one assignment. Then
the publishers run, one after another. `applied_offset` grows only after the last of them. A caller
must finish the steps of one call before it makes the next call.

Readers see only complete images. At the start, and while the agent fetches everything again, images
are *held back* until they reach the offset that the controller had at the beginning.

The batches of an open transaction go into the image's branch. They count as fetched and not as
applied: readers see the state before the transaction's Begin.
"""

from collections.abc import Callable, Generator, Iterator, Sequence

import msgspec
import structlog

from broker_agent.publishers import Manifest, Publisher
from ledger.batch import Batch, parse
from ledger.chain import LogMark
from ledger.errors import DamagedBatchError, UnknownFormatError
from metadata.codec import RecordDecodeError, UnknownRecordError
from metadata.image import EMPTY, MetadataImage, ReplayError
from metadata.image.old_pages import OldPages, replaced_pages
from metadata.messages.fetch import StateAt
from metadata.replay_steps import replay_in_steps

PUBLISHER_FAILED = "publisher_failed"
HASH_STEP = 1024
"""Controllers report their state at the first batch end at or past each multiple of this offset."""
_HASHES_KEPT = 64

_Hashes = dict[int, tuple[bytes, bytes]]
"""Chain hash and state hash by offset."""
Steps = Generator[None, None, None]


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
        on_replaced: Callable[[OldPages], None] = lambda _: None,
    ) -> None:
        """`on_replaced` gets what is left of each image that another has replaced."""
        self._beginning = PlacedImage(EMPTY, LogMark.beginning(cluster_id))
        self._publishers = publishers
        self._log = log
        self._newest = self._beginning
        self._published = self._told = EMPTY
        self._on_replaced = on_replaced
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
        """The image of which all publishers know holds the records below this offset."""
        return applied_offset(self._told)

    def state_hash_text(self) -> str | None:
        """The state hash at `applied_offset` over what brokers share, in hexadecimal digits."""
        state_hash = self._told.state_hash
        return None if state_hash is None else state_hash.shared_bytes().hex()

    def apply_in_steps(self, encoded: Sequence[bytes], state: StateAt | None = None) -> Steps:
        """Apply batches, each with the bytes that it has in the ledger, and publish once.

        Skips leading batches that are applied already. `state` is what the controller reports for
        an offset at or below their end. Raises UnusableAnswerError, DiffersError or TooNewError;
        then no batch of `encoded` has been applied.
        """
        batches = yield from _parsed(encoded, self.mark)
        placed, hashes = yield from self._replayed(batches)
        if state is not None:
            _compare(state, self._hashes | hashes)
        if placed is self._newest:
            return
        self._hashes |= hashes
        while len(self._hashes) > _HASHES_KEPT:
            del self._hashes[min(self._hashes)]
        batches.clear()
        yield from self._take(placed, placed.mark.log_end - self.mark.log_end)

    def replace_in_steps(self, loaded: PlacedImage) -> Steps:
        """Replace our image by a loaded one, and publish it unless images are held back."""
        self._hashes = {loaded.mark.log_end: _hashes_of(loaded)}
        self._continues = False
        yield from self._take(loaded, loaded.mark.log_end)

    def forget(self) -> None:
        """Drop the image, to fetch everything again. Readers keep the published one meanwhile.

        The next batches begin at offset 0, or a snapshot comes; either replaces the image.
        """
        self._newest = self._beginning
        self._continues = False
        self._hashes = {}
        self.holding = True

    def release_in_steps(self) -> Steps:
        """Publish the newest image, which is complete now, and hold images back no longer."""
        if self.holding:
            self.holding = False
            yield from self._publish()

    def _take(self, placed: PlacedImage, records: int) -> Steps:
        pages = replaced_pages(self._newest.image, placed.image, records)
        self._newest = placed
        yield from self._publish()
        # Only now does nothing here refer to the old image.
        self._on_replaced(pages)

    def _replayed(
        self, batches: Sequence[Batch]
    ) -> Generator[None, None, tuple[PlacedImage, _Hashes]]:
        placed, hashes = self._newest, _Hashes()
        try:
            for run in _runs(placed.mark, batches):
                mark = placed.mark
                for batch in run:
                    _check_continues(mark, batch)
                    mark = mark.after(batch)
                image = yield from replay_in_steps(placed.image, run, keep_outcomes=False)
                if placed is not self._newest:
                    pages = replaced_pages(placed.image, image, mark.log_end - placed.mark.log_end)
                    self._on_replaced(OldPages([], pages.published + pages.unread))
                placed = PlacedImage(image, mark)
                hashes[mark.log_end] = _hashes_of(placed)
        except UnknownRecordError as error:
            raise TooNewError(str(error)) from error
        except (RecordDecodeError, ReplayError) as error:
            raise DiffersError(str(error)) from error
        return placed, hashes

    def _publish(self) -> Steps:
        before, after = self._published, self._newest.image
        if self.holding or after is before:
            return
        self._published = after
        replaced, self._continues = not self._continues, True
        mark = self._newest.mark
        manifest = Manifest(applied_offset(after), mark.epoch, mark.timestamp_ms, replaced)
        for publisher in self._publishers:
            try:
                steps = publisher.on_metadata(before, after, manifest)
                if isinstance(steps, Generator):
                    yield from steps
            except Exception:  # noqa: BLE001 - one publisher's error must not stop the others
                self.publisher_failures += 1
                self._log.exception(PUBLISHER_FAILED, publisher=type(publisher).__name__)
            yield
        self._told = after


def applied_offset(image: MetadataImage) -> int:
    """Return the offset below which an image holds all records.

    While a transaction is open, that is the offset of its Begin. No record outside the transaction
    can follow before its end, because decisions are made one after another.
    """
    return image.offset if image.transaction is None else image.transaction.offset


def _parsed(encoded: Sequence[bytes], mark: LogMark) -> Generator[None, None, list[Batch]]:
    """Decode batches, and leave out those before the mark."""
    found = []
    for data in encoded:
        try:
            batch = parse(data)
        except UnknownFormatError as error:
            raise TooNewError(str(error)) from error
        except DamagedBatchError as error:
            raise UnusableAnswerError(f"a batch is damaged {error}") from error
        if batch.header.end_offset > mark.log_end:
            found.append(batch)
        yield
    return found


def _runs(mark: LogMark, batches: Sequence[Batch]) -> Iterator[list[Batch]]:
    """Divide batches into runs; each but the last ends where controllers report their state."""
    run, start = list[Batch](), mark.log_end
    for batch in batches:
        run.append(batch)
        end = batch.header.end_offset
        if end // HASH_STEP > start // HASH_STEP:
            yield run
            run, start = [], end
    if run:
        yield run


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
