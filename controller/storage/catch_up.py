"""Catches up by files: this controller is too far behind for entries.

It fetches ledger segments, chained up to the mark that the quorum vouches for. If a checkpoint
makes that shorter, it fetches the checkpoint first, and then only the segments behind it; what the
checkpoint skips is backfilled later. A checkpoint may also be newer than the mark: then the applier
compares it with the log that the entries after the mark bring.

Rule: all segments lie in `incoming/`, verified and synced, before the quorum is told. Until then
nothing of the present ledger is touched. What an earlier incarnation fetched is taken up.

The durable steps come in this order:

1. The checkpoint is put in place in `checkpoints/`.
2. All fetched segments are synced in `incoming/`.
3. `incoming/install` is written: all is ready.
4. The quorum writes the manifest. This is the commit point.
5. `Storage.installed` opens the ledger anew, which moves the segments into place.
"""

from collections.abc import Callable
from contextlib import closing

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.storage.fetch_job import CannotGoOnError, FetchJob, NoHelpError, Steps
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.history_pull import HistoryPull
from ledger.incoming import drop_incoming
from ledger.segments import LOG_FOLDER, segment_base
from quorum.api import Mark, Quorum
from runtime.clock import Clock
from runtime.disk.errors import NO_ROOM, sentence
from runtime.disk.interface import Disk
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointError
from snapshots.fetching import CheckpointFetch

_PAUSE_FIRST_S = 1.0
_PAUSE_MOST_S = 30.0


class _Goal:
    """The mark to reach, and the peer that is asked now."""

    def __init__(self, mark: Mark, source: int, log_end: int, image_offset: int) -> None:
        """`log_end` and `image_offset` are our own. Raises LedgerError."""
        self.mark = mark
        self.target = LogMark.decode(mark.data)
        self.source = source
        self.log_end = log_end
        self.image_offset = image_offset


class CatchUp:
    """Reaches one mark at a time."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        disk: Disk,
        quorum: Quorum,
        on_failed: Callable[[str], None],
        log: FilteringBoundLogger,
    ) -> None:
        """`on_failed` stops the node: our own disk did not take what was fetched."""
        self._config = config
        self._disk = disk
        self._quorum = quorum
        self._on_failed = on_failed
        self._log = log
        self._job = FetchJob(config, clock, quorum, on_failed)
        self._goal: _Goal | None = None
        self._history: HistoryPull | None = None
        self._no_room = False

    @property
    def note(self) -> str:
        """What is going on; empty: nothing."""
        goal = self._goal
        if goal is None:
            return ""
        if self._no_room:
            return "too far behind, and no room for what must be fetched: the disk is full"
        at = self._history.fetched_to if self._history is not None else goal.log_end
        return (
            f"too far behind: fetching the log from controller {goal.source}, at offset {at} of "
            f"{goal.target.log_end}"
        )

    def begin(self, mark: Mark, source: int, log_end: int, image_offset: int) -> None:
        """Reach `mark` by the files of `source`. Replaces the mark before it."""
        self.finish()
        try:
            goal = self._goal = _Goal(mark, source, log_end, image_offset)
        except LedgerError as error:
            # A peer made this mark up. The next leader offers another one.
            self._log.warning("catch_up_refused", source=source, reason=str(error))
            return
        self._log.info(
            "catch_up_started", source=source, log_end=log_end, target=goal.target.log_end
        )
        self._job.start(self._steps(goal))

    def drop(self) -> None:
        """Stop, and throw away what was fetched: ordinary entries have overtaken it."""
        if self._goal is None:
            return
        self.finish()
        try:
            drop_incoming(self._disk)
        except OSError as error:
            self._on_failed(_own_disk(error))
        else:
            self._log.info("catch_up_dropped")

    def finish(self) -> None:
        """Stop. What was fetched stays."""
        self._job.stop()
        self._goal = self._history = None
        self._no_room = False

    def _steps(self, goal: _Goal) -> Steps[None]:
        pause_s = _PAUSE_FIRST_S
        while True:
            try:
                yield from self._fetch(goal)
            except NoHelpError:
                yield from self._job.pause()
            except OSError as error:
                self._make_room(goal, error)
                self._no_room, self._history = True, None
                yield from self._job.pause(pause_s)
                self._no_room, pause_s = False, min(2 * pause_s, _PAUSE_MOST_S)
            else:
                break
        self._log.info("catch_up_ready", target=goal.target.log_end)
        self._quorum.caught_up(goal.mark)

    def _fetch(self, goal: _Goal) -> Steps[None]:
        """Fetch everything from one peer, and seal it. Raises NoHelpError, OSError."""
        names = yield from self._job.list_files(goal.source, LOG_FOLDER)
        bases = ((segment_base(name), size) for name, size in names.items())
        segments = {base: size for base, size in bases if base is not None}
        checkpoints = yield from self._job.list_files(goal.source, FOLDER)
        checkpoint = _worth_loading(goal, segments, checkpoints)
        if checkpoint is not None:
            yield from self._fetch_checkpoint(goal, checkpoint, checkpoints[checkpoint.name])
        yield from self._fetch_history(goal, sorted(segments), checkpoint)

    def _fetch_checkpoint(self, goal: _Goal, checkpoint: CheckpointId, size: int) -> Steps[None]:
        name = f"{FOLDER}/{checkpoint.name}"
        with closing(
            CheckpointFetch(self._disk, self._config.cluster_id, checkpoint, size)
        ) as fetch:
            try:
                yield from self._job.in_slices(fetch.prepare())
                yield from self._job.fill(fetch, goal.source, name)
            except (CheckpointError, LedgerError) as error:
                self._refuse(goal, error)
                fetch.discard()
                raise NoHelpError from error
            yield from self._job.written(fetch.place)

    def _fetch_history(
        self, goal: _Goal, bases: list[int], checkpoint: CheckpointId | None
    ) -> Steps[None]:
        start_at = None if checkpoint is None else checkpoint.offset
        if checkpoint is None and min(bases, default=0) > goal.log_end:
            # Our image may be from a checkpoint that an earlier attempt has fetched.
            start_at = goal.image_offset
        try:
            history = HistoryPull(
                self._disk,
                self._config.cluster_id,
                goal.target,
                bases,
                log_end=goal.log_end,
                start_at=start_at,
            )
        except LedgerError as error:
            self._refuse(goal, error)
            # Peers archive segments and remove checkpoints: nobody may ever have these again.
            self._quorum.out_of_reach(goal.mark)
            raise NoHelpError from error
        self._history = history
        with closing(history):
            try:
                yield from self._pull_segments(goal, history)
            except LedgerError as error:
                self._refuse(goal, error)
                history.discard()
                raise NoHelpError from error
            yield from self._job.written(history.seal)

    def _pull_segments(self, goal: _Goal, history: HistoryPull) -> Steps[None]:
        yield from self._job.in_slices(history.prepare())
        while (wanted := history.wanted) is not None:
            name, position = wanted
            piece = yield from self._job.read(goal.source, f"{LOG_FOLDER}/{name}", position)
            if history.add(piece):
                yield from self._job.in_slices(history.prepare())

    def _refuse(self, goal: _Goal, error: Exception) -> None:
        """Ask the next peer from now on.

        A peer whose bytes don't verify is damaged, and its damage must not be copied. The mark
        vouches for whatever ends in it, so any peer will do.
        """
        self._log.warning("catch_up_refused", source=goal.source, reason=str(error))
        ring = sorted({goal.source, *(v.node_id for v in self._quorum.voters())})
        others = [n for n in ring if n != self._config.node_id]
        goal.source = others[(others.index(goal.source) + 1) % len(others)]

    def _make_room(self, goal: _Goal, error: OSError) -> None:
        """Our own disk did not take what was fetched. Raises CannotGoOnError if it is not full.

        A full disk ends no node for this: what was fetched is thrown away, which makes room for
        what the quorum must write.
        """
        if error.errno not in NO_ROOM:
            raise CannotGoOnError(_own_disk(error)) from error
        try:
            drop_incoming(self._disk)
        except OSError as failed:
            raise CannotGoOnError(_own_disk(failed)) from failed
        self._log.warning("catch_up_without_room", target=goal.target.log_end, reason=str(error))


def _worth_loading(
    goal: _Goal, segments: dict[int, int], files: dict[str, int]
) -> CheckpointId | None:
    """Return the peer's checkpoint to load, if the log alone won't do or is longer.

    That is the newest one up to the mark, if the peer has the log after it. A peer that archives
    may have none: then it is the peer's newest one, and the entries after the mark lead there.

    `segments` gives size by base offset, `files` size by name of checkpoint.
    """
    newer: list[tuple[CheckpointId, int]] = []
    for name, size in files.items():
        try:
            checkpoint = CheckpointId.parse(name)
        except CheckpointError:
            continue
        if checkpoint.offset > goal.image_offset:
            newer.append((checkpoint, size))
    first = min(segments, default=goal.target.log_end)
    if not newer or first >= goal.target.log_end:
        return None
    usable = [each for each in newer if first <= each[0].offset <= goal.target.log_end]
    if first > max(goal.log_end, goal.image_offset):
        return max(usable or newer)[0]
    if first > goal.log_end or not usable:
        return None
    checkpoint, size = max(usable)
    saved = _bytes_from(segments, goal.log_end) - _bytes_from(segments, checkpoint.offset)
    return checkpoint if size < saved else None


def _bytes_from(segments: dict[int, int], offset: int) -> int:
    """Return the bytes of the segments from the one that holds `offset`."""
    first = max((base for base in segments if base <= offset), default=0)
    return sum(size for base, size in segments.items() if base >= first)


def _own_disk(error: OSError) -> str:
    return sentence(error, "writing what was fetched")
