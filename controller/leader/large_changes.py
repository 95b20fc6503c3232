"""Large changes are worked out beside the small ones; only their writing has the turn for itself.

Rule: a preparation decides on an image that never changes, encodes the records, decodes them again
and replays them, all of it in slices between which other changes are decided. What has been
proposed meanwhile is kept beside it. Before it is written, `ControllerResult.rests_on` says whether
it still holds; then what came meanwhile is replayed on top of what was prepared. This gives the
same image as replay in the order of the log, because the two touch different keys: `rests_on` is
only for records that add or remove whole topics, and no record about these was written meanwhile.

One preparation is under way at a time. Those behind it begin when it is written, on the image then.
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
from runtime.slices import run_in_slices

T = TypeVar("T")

BATCH_TARGET_BYTES = 128 * 1024
"""More than this becomes several batches: a follower decodes a batch in one go."""
STEP = 256
"""Records between two yields."""
FOLLOWED_MAX = 16_384
"""With so many records proposed meanwhile it is cheaper to prepare again."""
ABOUT_A_TOPIC = (TopicRecord, PartitionRecord, PartitionChangeRecord, RemoveTopicRecord)
TRIES_MAX = 3
"""So often a change is prepared; then it keeps the turn until it is written."""


class Preparation(Generic[T]):
    """One decision on its way to records; `decision` is carried along."""

    def __init__(
        self, decision: T, decide: Decide, image: MetadataImage, gate: LevelGate, tries: int = 1
    ) -> None:
        self.decision = decision
        self.tries = tries
        self.base = image
        self.result: ControllerResult | None = None
        self.error: LogbergError | None = None
        """Why it is refused."""
        self.defect: Exception | None = None
        """Why the records can't be replayed: a defect of whoever decided."""
        self.failure: Exception | None = None
        """Any other defect that came up while it was prepared in slices."""
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
        """Take the first step; True when nothing is left to do."""
        for _ in self._steps:
            self._large = True
            return False
        return True

    def steps(self) -> Generator[None, None, None]:
        """Do all that is left."""
        self._large = True
        yield from self._steps

    def drop(self) -> None:
        """It is not needed any more, or not in this form."""
        self._steps.close()

    def follow(self, records: Sequence[Record], base_offset: int, timestamp_ms: int) -> None:
        """Something else was proposed."""
        self._followed_count += len(records)
        if self._followed_count <= FOLLOWED_MAX:
            self._followed.append((records, base_offset, timestamp_ms))

    def still_holds(self, image: MetadataImage) -> bool:
        """Tell whether it can be written behind `image` as it is."""
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
        """Something that was proposed meanwhile is about one of these topics, or about all."""
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
        """Ask the gate again if levels have changed since. Raises LogbergError."""
        if self.result is not None and image.features is not self.base.features:
            yield from self._gate.check(image, self.result.records)

    @property
    def is_replayed(self) -> bool:
        """`over` is at hand."""
        return self._replayed is not None

    def over(self, image: MetadataImage) -> Generator[None, None, MetadataImage]:
        """Return `image` with all that was prepared; `still_holds` was asked before."""
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
        """Let go of the records, in steps, once they are written."""
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
            # Its traceback would hold our frame, and that holds us, with the image.
            self.error = error.with_traceback(None)
            return
        self.result = decided
        self.batches = yield from cut(decided.records)
        if self._large and decided.rests_on is not None:
            try:
                yield from self._replay()
            except (ReplayError, RecordDecodeError) as error:
                self.defect = error

    def _replay(self) -> Generator[None, None, None]:
        """Replay the records from their bytes, as any other node will."""
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
        # What is proposed meanwhile is replayed over it later, at offsets behind the base's.
        self._replayed = msgspec.structs.replace(image, offset=self.base.offset)


class LargeChanges(Generic[T]):
    """The preparation under way, and what waits for it to be written."""

    def __init__(self, clock: Clock, on_ready: Callable[[], None], waiting_max: int) -> None:
        """`on_ready` is called when `ready` is set: whoever prepared it failed, too (`failure`)."""
        self._clock = clock
        self._waiting_max = waiting_max
        self._on_ready = on_ready
        self._waiting: deque[T] = deque()
        self._now: Preparation[T] | None = None
        self._cancel: Callable[[], None] | None = None
        self.ready: Preparation[T] | None = None
        """What is to be written next; `written` lets the following one begin."""

    def __len__(self) -> int:
        return len(self._waiting) + (self._now is not None)

    def add(self, preparation: Preparation[T]) -> bool:
        """Work it out in slices, or later if another one is under way; False: too many wait."""
        if self._now is None:
            self._begin(preparation)
            return True
        preparation.drop()
        if len(self._waiting) >= self._waiting_max:
            return False
        self._waiting.append(preparation.decision)
        return True

    def again(self, preparation: Preparation[T]) -> None:
        """What was ready holds no more: work it out anew."""
        self.ready = None
        self._begin(preparation)

    def follow(self, records: Sequence[Record], base_offset: int, timestamp_ms: int) -> None:
        """Something was proposed that is not the preparation under way."""
        if self._now is not None:
            self._now.follow(records, base_offset, timestamp_ms)

    def written(self) -> T | None:
        """The one that was ready is written, or given up; return what may be prepared now."""
        self._now = self.ready = None
        return self._waiting.popleft() if self._waiting else None

    def take_all(self) -> list[T]:
        """Stop; return the decisions that were under way or waiting."""
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
        except Exception as error:  # noqa: BLE001 - it is raised again when its turn comes
            preparation.failure = error

    def _done(self) -> None:
        self._cancel = None
        self.ready = self._now
        self._on_ready()


def cut(records: Sequence[Record]) -> Generator[None, None, list[list[bytes]]]:
    """Encode each record and cut the row into batches of the size we aim at."""
    batches: list[list[bytes]] = []
    size = BATCH_TARGET_BYTES
    for number, record in enumerate(records, start=1):
        encoded = encode_record(record)
        if size + len(encoded) > BATCH_TARGET_BYTES:
            batches.append([])
            size = 0
        batches[-1].append(encoded)
        size += len(encoded)
        if number % STEP == 0:
            yield
    return batches
