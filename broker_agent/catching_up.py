"""Follows the log: applies batches, loads snapshots, and starts over when histories differ.

Rule: if the broker's history or state differs from the controller's, the agent stops serving, says
why and asks to be fenced. It sets its images aside as evidence, and fetches everything again, at
most every `refetch_pause_ms`, since a difference that returns is a defect that fetching can't
repair. Meanwhile the broker stays fenced and keeps in contact. An agent that has seen a signed head
fetches another history only once that is shown to extend the head (`head_keeping`).

The content of an answer is followed in slices (`runtime.loop.slices`), so that a large answer does
not keep the event loop from other work. Answers are followed one after another: until the slices
of one have ended, fetches are only heartbeats, and the agent ignores the content of their answers.

The *met* offset is the log end that the controller had at its first answer, or at its first answer
after a loss of contact. The image has caught up when it reaches that offset. The offset is fixed,
so a log that grows fast can't keep the broker out.
"""

from collections.abc import Callable, Generator

import structlog

from broker_agent.config import AgentConfig
from broker_agent.head_keeping import HeadKeeping
from broker_agent.image_store import ImageStore
from broker_agent.snapshot_download import SnapshotDownload
from broker_agent.view import (
    DiffersError,
    MetadataView,
    PlacedImage,
    TooNewError,
    UnusableAnswerError,
)
from metadata.messages.fetch import Divergence, MetadataFetchReply, SnapshotToLoad
from runtime.clock import Clock
from runtime.loop.slices import SlicedWork
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError

HISTORY_DIFFERS = "history_differs"
HISTORY_REFETCHED = "history_refetched"
SNAPSHOT_LOADED = "snapshot_loaded"
_BACKOFF_MAX_DOUBLINGS = 6
_SMALL_BYTES = 4_096
"""The first slice for an answer of up to this size runs in the callback that delivers it."""
FollowError = DiffersError | UnusableAnswerError | TooNewError


class CatchingUp:
    """Applies the content of answers to the image."""

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        view: MetadataView,
        images: ImageStore,
        heads: HeadKeeping,
        download: SnapshotDownload,
        on_loaded: Callable[[str], None],
        on_defect: Callable[[], None],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`on_loaded` gets "" when a snapshot was loaded, and the problem when it wasn't.

        `on_defect` is called when following fails by a defect: this object follows nothing more.
        """
        self._config = config
        self._clock = clock
        self._view = view
        self._images = images
        self._heads = heads
        self._download = download
        self._on_loaded = on_loaded
        self._on_defect = on_defect
        self._log = log
        self._met: int | None = None
        self._forgot_at: float | None = None
        self._failed_loads = 0
        self._not_before = 0.0
        self._stuck = False
        self._forget_later = False
        """The image is to be dropped once the cluster's signed head extends the one we saw."""
        self._following: SlicedWork | None = None
        self.differs = ""
        """Why our history or state is not the controller's; empty: no difference is known."""
        self.differences = 0
        self.snapshots_loaded = 0

    @property
    def caught_up(self) -> bool:
        """Whether the image has reached the met offset (see the module).

        Never while a difference is known, also while the image must not be fetched again yet.
        """
        if self.differs or self._heads.holding or self._view.holding or self._met is None:
            return False
        return self._view.fetched_offset >= self._met

    @property
    def loading(self) -> bool:
        """Whether a snapshot is being fetched or loaded."""
        return self._download.active or self._images.loading

    @property
    def evidence(self) -> str:
        """The newest note of a history that the cluster no longer has; empty: there is none."""
        return self._images.evidence.newest

    @property
    def following(self) -> bool:
        """Whether the content of an answer is being followed, or an image is being published."""
        return self._following is not None

    @property
    def stuck(self) -> bool:
        """Whether history or state differs again, within `refetch_pause_ms` of the last refetch."""
        return self._stuck

    def pause_s(self) -> float:
        """Seconds for which batches of an answer can't be used; 0: they can be used now."""
        if self.loading or self.following or self._stuck or self._heads.holding:
            return self._config.heartbeat_ms / 1000
        return max(0.0, self._not_before - self._clock.monotonic())

    def begin(self, on_ready: Callable[[], None]) -> None:
        """Load the image from disk in slices, then call `on_ready`.

        Raises OSError, FolderInUseError, WrongFolderError, HeadFileError.
        """

        def found(saved: PlacedImage | None) -> None:
            if saved is None:
                # Whatever is fetched now is a history that this process has not compared with ours.
                self._heads.hold()
                on_ready()
            else:
                self._in_slices(self._view.replace_in_steps(saved), on_ready, at_once=True)

        self._images.open()
        self._heads.open()
        if self._heads.contradiction:
            self.differs = self._heads.contradiction
            self._log.error(HISTORY_DIFFERS, why=self.differs, offset=0)
        self._images.load(found)

    def contradicted(self, why: str) -> None:
        """The cluster's signed head is not one of the history that this broker saw."""
        self.differences += 1
        self.differs = why
        self._log.error(HISTORY_DIFFERS, why=why, offset=self._view.fetched_offset)

    def meet_again(self) -> None:
        """Contact was lost, or the broker was fenced: the next answer sets a new met offset."""
        self._met = None

    def meet(self, offset: int) -> None:
        """The controller answered, and its log ends at `offset`. Sets the met offset if unset."""
        if self._met is None:
            self._met = offset

    def follow(
        self,
        reply: MetadataFetchReply,
        url: str,
        broker_epoch: int,
        on_done: Callable[[FollowError | None], None],
    ) -> None:
        """Follow the content of an answer in slices, then call `on_done` with the error, or None.

        `on_done` may be called before this method returns. On DiffersError the image is dropped: at
        once, or at the end of `refetch_pause_ms`.
        """
        failed: list[FollowError] = []

        def work() -> Generator[None, None, None]:
            try:
                yield from self._take(reply, url, broker_epoch)
            except (DiffersError, UnusableAnswerError, TooNewError) as error:
                failed.append(error)

        def done() -> None:
            error = failed[0] if failed else None
            if isinstance(error, DiffersError):
                self._note_difference(str(error))
            on_done(error)

        # A heartbeat's answer has no content that is followed: it must not wait for a turn.
        at_once = self.pause_s() > 0 or sum(map(len, reply.batches)) <= _SMALL_BYTES
        self._in_slices(work(), done, at_once=at_once)

    def end(self) -> None:
        """Stop following, downloading and loading."""
        if self._following is not None:
            self._following.cancel()
            self._following = None
        self._download.abandon()
        self._images.stop_loading()

    def _in_slices(
        self, work: Generator[None, None, None], on_done: Callable[[], None], *, at_once: bool
    ) -> None:
        """Run this, and nothing else of its kind meanwhile."""
        assert self._following is None, "answers are followed one after another"

        def guarded() -> Generator[None, None, None]:
            try:
                yield from work
            except Exception:
                self._on_defect()
                raise

        def done() -> None:
            self._following = None
            on_done()

        self._following = SlicedWork(self._clock, guarded(), done)
        self._following.begin(at_once=at_once)

    def _take(
        self, reply: MetadataFetchReply, url: str, broker_epoch: int
    ) -> Generator[None, None, None]:
        if self._heads.holding:
            return
        if self._stuck or self._forget_later:
            self._forget_if_due()
            return
        if self.loading or self._clock.monotonic() < self._not_before:
            return
        if reply.diverging is not None:
            raise DiffersError(_lost_or_replaced(reply.diverging, self._view))
        if reply.snapshot is not None:
            # Nothing in a snapshot tells whether its history is the one that we followed.
            if not self._heads.shown_lately() and self._heads.hold():
                return
            self._load(reply.snapshot, url, broker_epoch)
            return
        yield from self._view.apply_in_steps(reply.batches, reply.state_hash)
        yield from self._settle()
        if reply.batches:
            self._images.save_if_due(self._view.newest)

    def _settle(self) -> Generator[None, None, None]:
        """Publish the image that was held back, once it has reached the met offset."""
        if not self._view.holding or self._met is None or self._view.fetched_offset < self._met:
            return
        if self.differs:
            self.differs = ""
            self._log.info(HISTORY_REFETCHED, offset=self._view.fetched_offset)
        yield from self._view.release_in_steps()

    def _note_difference(self, why: str) -> None:
        self.differences += 1
        self.differs = why
        self._log.error(HISTORY_DIFFERS, why=why, offset=self._view.fetched_offset)
        self._download.abandon()
        self._images.set_aside(self._view.newest, why)
        if self._heads.hold():
            self._forget_later = True
        else:
            self._forget_if_due()

    def _forget_if_due(self) -> None:
        now = self._clock.monotonic()
        pause_s = self._config.refetch_pause_ms / 1000
        self._forget_later = False
        self._stuck = self._forgot_at is not None and now - self._forgot_at < pause_s
        if not self._stuck:
            self._forgot_at = now
            self._met = None
            self._view.forget()

    def _load(self, snapshot: SnapshotToLoad, url: str, broker_epoch: int) -> None:
        try:
            offset = CheckpointId.parse(snapshot.id).offset
        except CheckpointError as error:
            raise UnusableAnswerError(str(error)) from error
        if offset <= self._view.fetched_offset:
            raise UnusableAnswerError(f"snapshot {snapshot.id} ends before the image that is here")
        broker = (self._config.broker_id, broker_epoch)
        self._download.begin(url, snapshot, broker, self._on_downloaded)

    def _on_downloaded(self, checkpoint: CheckpointId | None, problem: str) -> None:
        if checkpoint is None:
            self._loaded(None, problem)
        else:
            self._images.adopt(checkpoint, self._loaded)

    def _loaded(self, placed: PlacedImage | None, problem: str) -> None:
        if placed is None:
            # Back off here: the fetches in between succeed, so the fetch loop doesn't back off.
            doublings = min(self._failed_loads, _BACKOFF_MAX_DOUBLINGS)
            self._failed_loads += 1
            self._not_before = self._clock.monotonic() + 0.05 * 2**doublings
            self._on_loaded(problem)
            return
        self._failed_loads = 0
        self.snapshots_loaded += 1
        self._log.info(SNAPSHOT_LOADED, offset=placed.mark.log_end)

        def replacing() -> Generator[None, None, None]:
            yield from self._view.replace_in_steps(placed)
            yield from self._settle()

        self._in_slices(replacing(), lambda: self._on_loaded(""), at_once=True)


def _lost_or_replaced(diverging: Divergence, view: MetadataView) -> str:
    end, seen = diverging.end_offset, view.fetched_offset
    said = f"the controller's log differs from ours at offset {end}"
    if end >= seen:
        return said
    return (
        f"{said}: the cluster lost or replaced offsets {end} to {seen - 1}, which this broker has "
        "seen. It was recovered, or restored from a backup"
    )
