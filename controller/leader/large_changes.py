"""Prepares large changes beside the small ones, so that only writing them blocks other decisions.

A preparation decides on an immutable image, encodes the records, decodes them again and replays
them. It does this in slices, and other changes are decided in between. The preparation keeps the
records of those other changes.

When its turn comes, `ControllerResult.rests_on` says whether the preparation still holds. If so,
the other changes are replayed on top of what was prepared. This gives the same image as a replay in
the order of the log, because the two touch different keys: `rests_on` is only allowed for records
that add or remove whole topics, and no other change in between touched those topics.

One preparation is under way at a time. The next one begins when it is written, on the image then.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from typing import Generic, TypeVar

import msgspec

from controller.managers.level_gate import LevelGate
from controller.result import ControllerResult, Decide
from metadata.codec import RecordDecodeError, decode_record, encode_record
from metadata.errors import LogbergError
from metadata.freeing import emptied
from metadata.image import MetadataDelta, MetadataImage, ReplayError
from metadata.records import (
    ClearElrRecord,
    ConfigRecord,
    ConfigResourceType,
    PartitionChangeRecord,
    PartitionRecord,
    Record,
    RemoveTopicRecord,
    TopicRecord,
)
from metadata.state_hash import StateHash
from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

T = TypeVar("T")

BATCH_TARGET_BYTES = 128 * 1024
"""Records beyond this size go into another batch, because a follower decodes a batch in one go."""
STEP = 256
"""Records between two yields."""
FOLLOWED_MAX = 16_384
"""If more records were proposed in between, it is cheaper to prepare again."""
ABOUT_A_TOPIC = (TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord)
TRIES_MAX = 3
"""So often a change is prepared beside others. Then nothing else is decided until it is written."""


class Preparation(Generic[T]):
    """One decision being prepared. `decision` is only carried along."""

    __slots__ = (
        "_added",
        "_decide",
        "_followed",
        "_followed_count",
        "_gate",
        "_large",
        "_replayed",
        "_steps",
        "base",
        "batch_bytes",
        "batches",
        "decision",
        "defect",
        "error",
        "failure",
        "result",
        "tries",
    )

    def __init__(
        self,
        decision: T,
        decide: Decide,
        image: MetadataImage,
        gate: LevelGate,
        tries: int = 1,
        batch_bytes: int | None = None,
    ) -> None:
        self.decision = decision
        self.batch_bytes = batch_bytes
        """See `cut`."""
        self.tries = tries
        self.base = image
        self.result: ControllerResult | None = None
        self.error: LogbergError | None = None
        """Why the decision is refused."""
        self.defect: Exception | None = None
        """Why the records can't be replayed. The decision's code has a defect."""
        self.failure: Exception | None = None
        """Any other exception while the decision was prepared in slices."""
        self.batches: list[list[bytes]] = []
        """The encoded records, cut into batches."""
        self._decide = decide
        self._gate = gate
        self._steps = self._work()
        self._added: StateHash | None = None
        self._replayed: MetadataImage | None = None
        self._large = False
        self._followed: list[tuple[Sequence[Record], int, int]] = []
        self._followed_count = 0

    def starts_small(self) -> bool:
        """Take the first step. Returns True if that finished the preparation."""
        for _ in self._steps:
            self._large = True
            return False
        return True

    def steps(self) -> Generator[None, None, None]:
        """Do all remaining steps."""
        self._large = True
        yield from self._steps

    def drop(self) -> None:
        """Give up the preparation."""
        self._steps.close()

    def follow(self, records: Sequence[Record], base_offset: int, timestamp_ms: int) -> None:
        """Keep the records of another change that was proposed."""
        self._followed_count += len(records)
        if self._followed_count <= FOLLOWED_MAX:
            self._followed.append((records, base_offset, timestamp_ms))

    def still_holds(self, image: MetadataImage) -> bool:
        """Return whether what was prepared can be written on top of `image`."""
        if image is self.base or self.defect or self.failure:
            return True
        if self.result is None or not self.result.records:
            return True
        rests_on = self.result.rests_on
        return (
            self._replayed is not None
            and self._followed_count <= FOLLOWED_MAX
            and rests_on is not None
            and rests_on(image)
            and not self._touched(self.result.touches)
        )

    def _touched(self, topic_ids: frozenset[bytes]) -> bool:
        """Return whether another change was about one of these topics, or about all."""
        by_id = self.base.topics.by_id
        names = {by_id[topic_id].name for topic_id in topic_ids}
        return any(
            isinstance(record, ClearElrRecord)
            or (isinstance(record, ABOUT_A_TOPIC) and record.topic_id in topic_ids)
            or (
                isinstance(record, ConfigRecord)
                and record.resource_type == ConfigResourceType.TOPIC
                and record.resource_name in names
            )
            for records, *_ in self._followed
            for record in records
        )

    def passes_gate(self, image: MetadataImage) -> Generator[None, None, None]:
        """Check levels again if they changed. Raises LogbergError UNSUPPORTED_VERSION."""
        if self.result is not None and image.features is not self.base.features:
            yield from self._gate.check(image, self.result.records)

    @property
    def is_replayed(self) -> bool:
        """The records were replayed, so `over` can be called."""
        return self._replayed is not None

    def over(self, image: MetadataImage) -> Generator[None, None, MetadataImage]:
        """Return `image` with the prepared records replayed. Only after `still_holds(image)`."""
        assert self._replayed is not None
        assert self._added is not None
        merged = self._replayed
        if self._followed:
            delta = MetadataDelta(merged, with_state_hash=False)
            for records, base_offset, timestamp_ms in self._followed:
                delta.replay_all(records, base_offset)
                delta.finish_batch(base_offset + len(records), image.epoch, timestamp_ms)
                yield
            merged = yield from delta.apply_in_steps()
        state_hash = image.state_hash
        assert state_hash is not None
        return msgspec.structs.replace(
            image,
            topics=merged.topics,
            configs=merged.configs,
            state_hash=state_hash.plus(self._added.shared, 0),
        )

    def emptied(self) -> Generator[None, None, None]:
        """Free the records in steps. Call this once they are written."""
        records = self.result.records if self.result is not None else ()
        if isinstance(records, list):
            yield from emptied(records)
        yield from emptied(*self.batches)

    def _work(self) -> Generator[None, None, None]:
        try:
            decided = self._decide(self.base)
            if isinstance(decided, Generator):
                decided = yield from decided
            yield from self._gate.check(self.base, decided.records)
        except LogbergError as error:
            # The traceback would keep this frame alive, and with it the image.
            self.error = error.with_traceback(None)
            return
        self.result = decided
        self.batches = yield from cut(decided.records, self.batch_bytes)
        if self._large and decided.rests_on is not None:
            try:
                yield from self._replay()
            except (ReplayError, RecordDecodeError) as error:
                self.defect = error

    def _replay(self) -> Generator[None, None, None]:
        """Replay the records from their bytes, as every other node will."""
        delta = MetadataDelta(self.base)
        offset = self.base.offset
        for batch in self.batches:
            for number, encoded in enumerate(batch, start=1):
                delta.replay(decode_record(encoded), offset)
                offset += 1
                if number % STEP == 0:
                    yield
        delta.finish_batch(offset, self.base.epoch, self.base.timestamp_ms)
        image = yield from delta.apply_in_steps()
        before, after = self.base.state_hash, image.state_hash
        assert before is not None
        assert after is not None
        self._added = after.plus(-before.shared, 0)
        yield from delta.emptied()
        # `over` replays other changes on top, and their offsets begin at the base's.
        self._replayed = msgspec.structs.replace(image, offset=self.base.offset)


class LargeChanges(Generic[T]):
    """The preparation under way, and the decisions that wait for it to be written."""

    def __init__(self, clock: Clock, on_ready: Callable[[], None], waiting_max: int) -> None:
        """`on_ready` is called when `ready` is set, also if the preparation failed (`failure`)."""
        self._clock = clock
        self._waiting_max = waiting_max
        self._on_ready = on_ready
        self._waiting: deque[T] = deque()
        self._now: Preparation[T] | None = None
        self._cancel: Callable[[], None] | None = None
        self.ready: Preparation[T] | None = None
        """The preparation to write next. `written` lets the following one begin."""

    def __len__(self) -> int:
        return len(self._waiting) + (self._now is not None)

    def add(self, preparation: Preparation[T]) -> bool:
        """Prepare in slices, or later if another one is under way. False if too many wait."""
        if self._now is None:
            self._begin(preparation)
            return True
        preparation.drop()
        if len(self._waiting) >= self._waiting_max:
            return False
        self._waiting.append(preparation.decision)
        return True

    def again(self, preparation: Preparation[T]) -> None:
        """The preparation that was ready no longer holds: begin a new one of the same decision."""
        self.ready = None
        self._begin(preparation)

    def follow(self, records: Sequence[Record], base_offset: int, timestamp_ms: int) -> None:
        """Another change was proposed."""
        if self._now is not None:
            self._now.follow(records, base_offset, timestamp_ms)

    def written(self) -> T | None:
        """`ready` is written or given up. Returns the decision that may be prepared now."""
        self._now = self.ready = None
        return self._waiting.popleft() if self._waiting else None

    def take_all(self) -> list[T]:
        """Stop. Returns the decisions that were under way or waiting."""
        found = [] if self._now is None else [self._now.decision]
        found += self._waiting
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        self._waiting.clear()
        self._now = self.ready = None
        return found

    def _begin(self, preparation: Preparation[T]) -> None:
        self._now = preparation
        self._cancel = run_in_slices(self._clock, self._guarded(preparation), self._done)

    def _guarded(self, preparation: Preparation[T]) -> Generator[None, None, None]:
        try:
            yield from preparation.steps()
        except Exception as error:  # noqa: BLE001 - `Proposer._finish` raises it
            preparation.failure = error

    def _done(self) -> None:
        self._cancel = None
        self.ready = self._now
        self._on_ready()


def cut(
    records: Sequence[Record], batch_bytes: int | None
) -> Generator[None, None, list[list[bytes]]]:
    """Encode the records and divide them into batches of about `batch_bytes`.

    None: of about `BATCH_TARGET_BYTES`.
    """
    target = BATCH_TARGET_BYTES if batch_bytes is None else batch_bytes
    batches: list[list[bytes]] = []
    size = target
    for number, record in enumerate(records, start=1):
        encoded = encode_record(record)
        if size + len(encoded) > target:
            batches.append([])
            size = 0
        batches[-1].append(encoded)
        size += len(encoded)
        if number % STEP == 0:
            yield
    return batches
