"""Verifies one replica: everything that its files alone can prove.

Rule: nothing is trusted because it is there. First the ledger is verified: frames, checksums,
chain, offsets, epochs, times, and heads that were written down. Then each checkpoint: its bytes,
its chain hash against the log, its content against its own state hash, and that hash against a
replay of the log. The replay ends at the first bad place, because no state after it can be proved.
A log that is equal to one that was replayed, by the hash of its chain, is not replayed again.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from audit.places.replicas import Replica
from audit.places.tree_disk import CutDisk
from audit.questions.log_replay import KnownReplays, LogReplay, ReplayedState
from audit.reading.replay import Fold
from audit.reading.state_start import UnbelievableCheckpointError, image_of, load
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from ledger.verify import VerifyReport, verify_ledger
from metadata.image import EMPTY
from snapshots.checkpoint import FOLDER, CheckpointId
from snapshots.errors import CheckpointNotFoundError
from snapshots.store import LoadedCheckpoint, list_checkpoints

LOG: Final = "log"
CHECKPOINT: Final = "checkpoint"
STATE: Final = "state"
MANIFEST: Final = "manifest"


class VerificationProblem(msgspec.Struct, frozen=True):
    """One thing that is wrong."""

    kind: str
    """LOG, CHECKPOINT (its bytes), STATE (its content, or the log's state there) or MANIFEST."""
    file: str
    position: int
    """Where the bad frame begins in the file; 0 if the problem is the whole file."""
    offset: int
    """The first record in the log that can't be vouched for."""
    sentence: str

    def __str__(self) -> str:
        at = f", byte {self.position}" if self.position else ""
        return f"{self.file}{at}, offset {self.offset}: {self.sentence}"


class VerificationResult(msgspec.Struct, frozen=True):
    """What was found about a replica."""

    name: str
    location: str
    report: VerifyReport | None
    """That of the ledger; None if the ledger could not be read."""
    problems: tuple[VerificationProblem, ...]
    checkpoints: int
    """How many were checked."""
    proved: int
    """How many of them equal the replay of the log."""
    replayed_to: int
    """The log was replayed up to this offset; 0 if it was not."""
    state_hash: bytes
    """64 bytes, at `replayed_to`; empty if the log was not replayed."""
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """There is no problem."""
        return not self.problems


OnProgress = Callable[[int, int], None]


def verify_replica(
    replica: Replica,
    *,
    known: Mapping[int, bytes] | None = None,
    keep_going: bool = False,
    with_replay: bool = True,
    whole: bool = False,
    replays: KnownReplays | None = None,
    on_progress: OnProgress | None = None,
) -> VerificationResult:
    """Verify one replica. Without `keep_going` it ends at the first problem.

    `known`: chain hashes by offset that were written down elsewhere. `with_replay` False: don't
    compare checkpoints with a replay. `whole`: a history that doesn't begin at offset 0 is a
    problem, not a note. `replays`: the same for all replicas of a cluster, so that equal logs are
    replayed once. Raises NoLogError, LedgerError, OSError if verification can't begin.
    """
    verification = _Verification(
        replica,
        known or {},
        replays or KnownReplays(),
        keep_going=keep_going,
        whole=whole,
        on_progress=on_progress,
    )
    return verification.run(with_replay=with_replay)


def verify_log(
    replica: Replica,
    *,
    known: Mapping[int, bytes] | None = None,
    keep_going: bool = False,
    on_progress: OnProgress | None = None,
) -> VerifyReport:
    """Verify a replica's ledger: frames, checksums, chain, offsets, epochs and times.

    `known`, `keep_going`: as in `verify_replica`. Raises NoLogError, LedgerError, OSError.
    """
    return verify_ledger(
        replica.disk,
        synced_to=replica.synced_to,
        known=known,
        live=replica.live,
        keep_going=keep_going,
        on_progress=on_progress,
    )


def sound_part(replica: Replica, report: VerifyReport) -> LedgerReader:
    """Open a replica's ledger up to the first bad place. Raises LedgerError, OSError."""
    bad = report.first_bad
    if bad is None:
        return replica.reader()
    return LedgerReader(CutDisk(replica.disk, bad.file, bad.position))


class _Enough(Exception):  # noqa: N818 - the end of a search, not an error
    """The first problem was found, and the caller wants only one."""


class _Verification:
    def __init__(
        self,
        replica: Replica,
        known: Mapping[int, bytes],
        replays: KnownReplays,
        *,
        keep_going: bool,
        whole: bool,
        on_progress: OnProgress | None,
    ) -> None:
        self._replica = replica
        self._known = known
        self._replays = replays
        self._keep_going = keep_going
        self._whole = whole
        self._on_progress = on_progress
        self._report: VerifyReport | None = None
        self._problems: list[VerificationProblem] = []
        self._notes: list[str] = []

        self._checkpoints = self._proved = self._replayed_to = 0
        self._state_hash = b""

    def run(self, *, with_replay: bool) -> VerificationResult:
        try:
            if self._replica.problem:
                self._add(VerificationProblem(MANIFEST, "manifest", 0, 0, self._replica.problem))
            self._check_ledger()
            checkpoints = self._checkpoints_here()
            if with_replay:
                self._replay(checkpoints)
            else:
                for checkpoint in checkpoints:
                    self._load(checkpoint)
        except _Enough:
            pass
        return VerificationResult(
            name=self._replica.name,
            location=self._replica.location,
            report=self._report,
            problems=tuple(self._problems),
            checkpoints=self._checkpoints,
            proved=self._proved,
            replayed_to=self._replayed_to,
            state_hash=self._state_hash,
            notes=tuple(dict.fromkeys(self._notes)),
        )

    def _add(self, problem: VerificationProblem) -> None:
        self._problems.append(problem)
        if not self._keep_going:
            raise _Enough

    def _check_ledger(self) -> None:
        try:
            self._report = report = verify_log(
                self._replica,
                known=self._known,
                keep_going=self._keep_going,
                on_progress=self._on_progress,
            )
        except LedgerError as error:
            if not self._keep_going:
                raise
            self._add(VerificationProblem(LOG, LOG, 0, 0, str(error)))
            return
        self._notes += report.notes
        if self._whole and report.log_start:
            missing = f"offsets 0 to {report.log_start - 1} are missing"
            self._add(VerificationProblem(LOG, LOG, 0, 0, missing))
        for bad in report.findings:
            self._add(VerificationProblem(LOG, bad.file, bad.position, bad.offset, bad.sentence))

    def _checkpoints_here(self) -> list[CheckpointId]:
        """Return the checkpoints, oldest first. Report those after the log's end."""
        found = list_checkpoints(self._replica.disk)
        self._checkpoints = len(found)
        end = self._report.log_end if self._report is not None else 0
        for checkpoint in found:
            if self._report is None or checkpoint.offset <= end:
                continue
            what = f"{_file(checkpoint)} reaches to offset {checkpoint.offset}, the log to {end}"
            if self._replica.live:
                self._notes.append(f"{what}: the node is catching up or writes its end again")
            elif self._report.first_bad is None:
                sentence = (
                    f"the log ends at offset {end}: its end is lost, or this is another log's "
                    "checkpoint"
                )
                self._add(
                    VerificationProblem(STATE, _file(checkpoint), 0, checkpoint.offset, sentence)
                )
        return found

    def _load(self, checkpoint: CheckpointId) -> LoadedCheckpoint | None:
        """Load a checkpoint; None if its bytes are wrong, which is reported."""
        cluster_id = self._report.cluster_id if self._report is not None else None
        try:
            return load(self._replica.disk, cluster_id, checkpoint)
        except CheckpointNotFoundError:
            self._notes.append(f"the node removed {_file(checkpoint)} during the verification")
        except UnbelievableCheckpointError as error:
            self._add(
                VerificationProblem(CHECKPOINT, _file(checkpoint), 0, checkpoint.offset, str(error))
            )
        return None

    def _replay(self, checkpoints: list[CheckpointId]) -> None:
        """Fold the sound part of the log, and compare each checkpoint on the way."""
        report = self._report
        if report is None:
            for checkpoint in checkpoints:
                self._load(checkpoint)
            return
        reader: LedgerReader | None
        try:
            reader = sound_part(self._replica, report)
            end = reader.log_end
        except LedgerError as error:
            self._notes.append(f"checkpoints can't be compared with the log: {error}")
            end, reader = 0, None
        replay = None
        if reader is not None and reader.log_start == 0:
            beginning = Fold(EMPTY, LogMark.beginning(reader.cluster_id))
            known = self._replays.of(report)
            replay = LogReplay(reader, beginning, known, self._on_progress)
        for checkpoint in checkpoints:
            loaded = self._load(checkpoint)
            if loaded is None:
                continue
            if reader is None or not reader.log_start <= checkpoint.offset <= end:
                self._notes.append(f"{_file(checkpoint)} can't be compared with the log")
            elif replay is None:
                fold = self._begun_from(checkpoint, loaded)
                if fold is not None:
                    replay = LogReplay(reader, fold, {}, self._on_progress)
            elif (state := self._state_at(replay, checkpoint.offset)) is None:
                return
            else:
                self._compare(checkpoint, loaded, state)
        if replay is not None and (state := self._state_at(replay, end)) is not None:
            self._replayed_to = state.mark.log_end
            self._state_hash = state.state_hash

    def _begun_from(self, checkpoint: CheckpointId, loaded: LoadedCheckpoint) -> Fold | None:
        """Begin a cut history at a checkpoint, whose state can't be proved any more."""
        try:
            image = image_of(loaded, check=True)
        except UnbelievableCheckpointError as error:
            self._add(
                VerificationProblem(STATE, _file(checkpoint), 0, checkpoint.offset, str(error))
            )
            return None
        self._notes.append(
            f"the replay begins at {_file(checkpoint)}: the history before it, which would prove "
            "it, is not here"
        )
        return Fold(image, loaded.header.mark)

    def _state_at(self, replay: LogReplay, offset: int) -> ReplayedState | None:
        """Return the log's state at an offset; None if replay fails, which is reported."""
        try:
            return replay.at(offset)
        except LedgerError as error:
            self._add(VerificationProblem(STATE, LOG, 0, replay.reached, str(error)))
            return None

    def _compare(
        self, checkpoint: CheckpointId, loaded: LoadedCheckpoint, state: ReplayedState
    ) -> None:
        header = loaded.header
        sentence = ""
        if state.mark.log_end != header.offset:
            sentence = "no batch of the log ends at the checkpoint's offset"
        elif state.mark != header.mark:
            sentence = "its chain hash, epoch or time differs from the log's at that offset"
        elif state.in_transaction:
            sentence = "a transaction is open at that offset, and snapshots never contain one"
        elif state.state_hash != header.state_hash:
            sentence = (
                f"its state hash is {header.state_hash.hex()[:16]}…, but the log replays to "
                f"{state.state_hash.hex()[:16]}…: one of them was replaced"
            )
        else:
            try:
                image_of(loaded, check=True)
            except UnbelievableCheckpointError as error:
                sentence = str(error)
        if sentence:
            self._add(VerificationProblem(STATE, _file(checkpoint), 0, checkpoint.offset, sentence))
        else:
            self._proved += 1


def _file(checkpoint: CheckpointId) -> str:
    return f"{FOLDER}/{checkpoint.name}"
