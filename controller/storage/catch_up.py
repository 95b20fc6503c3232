"""A jump: this controller is too far behind for entries, so it fetches files.

Rule: ledger segments, chained up to the mark that the quorum vouches for; if a checkpoint makes
that shorter, the checkpoint first and then only the segments behind it (what it skips is
backfilled later). Everything lies in `incoming/`, verified and synced, before the quorum is told;
what an earlier life fetched is taken up. Nothing of the present ledger is touched until then.

A peer whose bytes don't verify is damaged, and its damage is not copied: the next peer is asked,
for the mark vouches for whatever ends in it, whoever has it.

What our own disk refuses on the way, in slices or not, ends the node, with one exception: a full
disk ends no node for it. What was fetched is thrown away, which makes room for what the
quorum must write, and fetched again after a pause that grows.
"""

from collections.abc import Callable, Generator, Sequence

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.peer_files import PeerFiles
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.incoming import drop_incoming
from ledger.jump import HistoryPull
from ledger.segments import LOG_FOLDER, segment_base
from quorum.api import Mark, PeerFile, Quorum
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.disk_errors import NO_ROOM
from runtime.slices import run_in_slices
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointError
from snapshots.fetching import CheckpointFetch

_PAUSE_FIRST_S = 1.0
_PAUSE_MOST_S = 30.0


class _Job:
    """One mark to reach, from one peer."""

    def __init__(self, mark: Mark, source: int, log_end: int, image_offset: int) -> None:
        self.mark = mark
        self.target = LogMark.decode(mark.data)
        self.source = source
        self.log_end = log_end
        self.image_offset = image_offset
        self.segments: dict[int, int] = {}
        """The peer's segments: size by base offset."""
        self.checkpoint: CheckpointId | None = None
        self.fetch: CheckpointFetch | None = None
        self.history: HistoryPull | None = None


class CatchUp:
    """Does one jump at a time."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        on_failed: Callable[[OSError], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_failed` stops the node: our own disk did not take what was fetched."""
        self._config = config
        self._clock = clock
        self._disk = disk
        self._quorum = quorum
        self._on_failed = on_failed
        self._log = log
        self._files = PeerFiles(config, clock, quorum)
        self._job: _Job | None = None
        self._cancel: Callable[[], None] | None = None
        self._pause_s = _PAUSE_FIRST_S
        self._no_room = False

    @property
    def note(self) -> str:
        """What is going on; empty: nothing."""
        job = self._job
        if job is None:
            return ""
        if self._no_room:
            return "too far behind, and no room for what must be fetched: the disk is full"
        at = job.history.fetched_to if job.history is not None else job.log_end
        return (
            f"too far behind: fetching the log from controller {job.source}, at offset {at} of "
            f"{job.target.log_end}"
        )

    def begin(self, mark: Mark, source: int, log_end: int, image_offset: int) -> None:
        """Reach `mark` by the files of `source`; replaces what was under way."""
        self._close()
        self._pause_s, self._no_room = _PAUSE_FIRST_S, False
        try:
            self._job = _Job(mark, source, log_end, image_offset)
        except LedgerError as error:
            # Made up by a peer: the next leader offers another.
            self._log.warning("catch_up_refused", source=source, reason=str(error))
            return
        self._log.info(
            "catch_up_started", source=source, log_end=log_end, target=self._job.target.log_end
        )
        self._start()

    def drop(self) -> None:
        """It is not needed any more; what was fetched goes."""
        if self._job is not None:
            self._close()
            try:
                drop_incoming(self._disk)
            except OSError as error:
                self._on_failed(error)
            else:
                self._log.info("catch_up_dropped")

    def finish(self) -> None:
        """The quorum has taken the mark over."""
        self._close()

    def _close(self) -> None:
        self._files.new_job()
        if self._cancel is not None:
            self._cancel()
            self._cancel = None
        job, self._job = self._job, None
        if job is not None and job.fetch is not None:
            job.fetch.close()
        if job is not None and job.history is not None:
            job.history.close()

    # -- what does the peer have --------------------------------------------------------------

    def _start(self) -> None:
        assert self._job is not None
        self._files.list(self._job.source, LOG_FOLDER, self._listed_segments, self._start)

    def _listed_segments(self, names: Sequence[tuple[str, int]]) -> None:
        assert self._job is not None
        bases = ((segment_base(name), size) for name, size in names)
        self._job.segments = {base: size for base, size in bases if base is not None}
        self._files.list(self._job.source, FOLDER, self._listed_checkpoints, self._start)

    def _listed_checkpoints(self, names: Sequence[tuple[str, int]]) -> None:
        job = self._job
        assert job is not None
        job.checkpoint = self._worth_loading(job, names)
        if job.checkpoint is None:
            self._pull_history()
            return
        size = dict(names)[job.checkpoint.name]
        job.fetch = CheckpointFetch(self._disk, self._config.cluster_id, job.checkpoint, size)
        fetch = job.fetch
        self._in_slices(fetch.prepare(), self._next_of_checkpoint, fetch.discard)

    def _worth_loading(self, job: _Job, names: Sequence[tuple[str, int]]) -> CheckpointId | None:
        """The peer's newest checkpoint before the mark, if the log alone won't do or is longer."""
        found: list[tuple[CheckpointId, int]] = []
        for name, size in names:
            try:
                found.append((CheckpointId.parse(name), size))
            except CheckpointError:
                continue
        usable = [f for f in found if job.image_offset < f[0].offset <= job.target.log_end]
        if not usable:
            return None
        checkpoint, size = max(usable)
        if not any(base <= job.log_end for base in job.segments):
            return checkpoint
        saved = self._bytes_from(job, job.log_end) - self._bytes_from(job, checkpoint.offset)
        return checkpoint if size < saved else None

    def _bytes_from(self, job: _Job, offset: int) -> int:
        """Bytes of the peer's segments from the one that holds an offset."""
        first = max((base for base in job.segments if base <= offset), default=0)
        return sum(size for base, size in job.segments.items() if base >= first)

    # -- the checkpoint -----------------------------------------------------------------------

    def _next_of_checkpoint(self) -> None:
        job = self._job
        assert job is not None
        assert job.fetch is not None
        assert job.checkpoint is not None
        if job.fetch.complete:
            job.fetch.place(self._placed_checkpoint)
            return
        self._files.read(
            job.source,
            f"{FOLDER}/{job.checkpoint.name}",
            job.fetch.position,
            self._take_of_checkpoint,
            self._start,
        )

    def _take_of_checkpoint(self, piece: PeerFile) -> None:
        job = self._job
        assert job is not None
        assert job.fetch is not None
        try:
            job.fetch.add(piece.data)
        except (CheckpointError, LedgerError, OSError) as error:
            self._not_right(error, job.fetch.discard)
            return
        self._next_of_checkpoint()

    def _placed_checkpoint(self, error: OSError | None) -> None:
        if self._job is None or self._job.fetch is None:
            return
        self._job.fetch = None
        if error is not None:
            self._not_taken(error)
            return
        self._pull_history()

    # -- the ledger ---------------------------------------------------------------------------

    def _pull_history(self) -> None:
        job = self._job
        assert job is not None
        try:
            job.history = HistoryPull(
                self._disk,
                self._config.cluster_id,
                job.target,
                sorted(job.segments),
                log_end=job.log_end,
                start_at=None if job.checkpoint is None else job.checkpoint.offset,
            )
        except LedgerError as error:
            self._refuse(error)
            self._files.later(self._start)
            return
        self._prepare()

    def _prepare(self) -> None:
        assert self._job is not None
        assert self._job.history is not None
        history = self._job.history
        self._in_slices(history.prepare(), self._next_of_history, history.discard)

    def _next_of_history(self) -> None:
        job = self._job
        assert job is not None
        assert job.history is not None
        if job.history.complete:
            job.history.seal(self._sealed)
            return
        wanted = job.history.wanted
        assert wanted is not None
        name, position = wanted
        self._files.read(
            job.source, f"{LOG_FOLDER}/{name}", position, self._take_of_history, self._start
        )

    def _take_of_history(self, piece: PeerFile) -> None:
        job = self._job
        assert job is not None
        assert job.history is not None
        try:
            done = job.history.add(piece.data)
        except (LedgerError, OSError) as error:
            self._not_right(error, job.history.discard)
            return
        if done:
            self._prepare()
        else:
            self._next_of_history()

    def _sealed(self, error: OSError | None) -> None:
        job = self._job
        if job is None or job.history is None or not job.history.complete:
            return
        if error is not None:
            self._not_taken(error)
            return
        self._log.info("catch_up_ready", target=job.target.log_end)
        self._quorum.installed(job.mark)

    def _not_right(self, error: Exception, discard: Callable[[], None]) -> None:
        """What was fetched is wrong, or our own disk did not take it."""
        if isinstance(error, OSError):
            self._not_taken(error)
            return
        self._refuse(error)
        try:
            discard()
        except OSError as failed:
            self._not_taken(failed)
        else:
            self._files.later(self._start)

    def _not_taken(self, error: OSError) -> None:
        """Our own disk did not take what was fetched."""
        job = self._job
        if job is None or error.errno not in NO_ROOM:
            self._on_failed(error)
            return
        self._close()
        try:
            drop_incoming(self._disk)
        except OSError as failed:
            self._on_failed(failed)
            return
        self._log.warning("catch_up_without_room", target=job.target.log_end, reason=str(error))
        self._no_room = True
        self._job = _Job(job.mark, job.source, job.log_end, job.image_offset)
        self._files.later(self._again, self._pause_s)
        self._pause_s = min(2 * self._pause_s, _PAUSE_MOST_S)

    def _again(self) -> None:
        self._no_room = False
        self._start()

    def _refuse(self, error: Exception) -> None:
        assert self._job is not None
        job = self._job
        self._log.warning("catch_up_refused", source=job.source, reason=str(error))
        ring = sorted({job.source, *(v.node_id for v in self._quorum.voters())})
        others = [n for n in ring if n != self._config.node_id]
        job.source = others[(others.index(job.source) + 1) % len(others)]

    def _in_slices(
        self,
        work: Generator[None, None, None],
        then: Callable[[], None],
        discard: Callable[[], None],
    ) -> None:
        """Work, then go on; what is wrong on the way is met as in `add`."""
        wrong: list[Exception] = []

        def caught() -> Generator[None, None, None]:
            try:
                yield from work
            except (CheckpointError, LedgerError, OSError) as error:
                wrong.append(error)

        def worked() -> None:
            if wrong:
                self._not_right(wrong[0], discard)
            else:
                then()

        guarded = self._files.guarded(worked)

        def done() -> None:
            self._cancel = None
            guarded()

        self._cancel = run_in_slices(self._clock, caught(), done)
