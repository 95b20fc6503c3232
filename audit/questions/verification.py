"""Everything about one replica that can be proved from its files.

Rule: nothing is believed because it is there. The ledger first (frames, checksums, chain, offsets,
epochs, times, heads that were written down), then the checkpoints: each one's bytes, its chain hash
against the log, its content against its own state hash, and that against a replay of the log. The
replay ends at the first bad place; behind it nothing can be said of states.
"""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from audit.places.replicas import Replica
from audit.places.tree_disk import CutDisk
from audit.reading.replay import Fold
from audit.reading.state_start import UnbelievableCheckpointError, image_of, load
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.reader import LedgerReader
from ledger.verify import VerifyReport, verify_ledger
from metadata.image import EMPTY
from metadata.image.metadata_image import hash_from_scratch
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
    """LOG, CHECKPOINT (its bytes), STATE (what it or the log says of the state), MANIFEST."""
    file: str
    position: int
    """Of the frame that is bad, in the file; 0 where it is about a whole file."""
    offset: int
    """In the log: of the first record that can't be vouched for."""
    sentence: str

    def __str__(self) -> str:
        at = f", byte {self.position}" if self.position else ""
        return f"{self.file}{at}, offset {self.offset}: {self.sentence}"


class VerificationResult(msgspec.Struct, frozen=True):
    """What was found about a replica."""

    name: str
    location: str
    report: VerifyReport | None
    """Of the ledger; None where there is none that could be read."""
    problems: tuple[VerificationProblem, ...]
    checkpoints: int
    """How many were looked at."""
    proved: int
    """How many of them are what the log replays to."""
    replayed_to: int
    """The offset up to which the log was replayed; 0 when it wasn't."""
    state_hash: bytes
    """64 bytes, at `replayed_to`; empty when the log wasn't replayed."""
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Nothing is wrong."""
        return not self.problems


OnProgress = Callable[[int, int], None]


def verify_replica(
    replica: Replica,
    *,
    known: Mapping[int, bytes] | None = None,
    keep_going: bool = False,
    with_replay: bool = True,
    whole: bool = False,
    on_progress: OnProgress | None = None,
) -> VerificationResult:
    """Verify one replica. Without `keep_going` it ends at the first problem.

    `known`: chain hashes by offset that were written down elsewhere. `with_replay` False: states
    aren't held against the log. `whole`: a history that doesn't begin at offset 0 is a problem, not
    a note. Raises NoLogError, LedgerError, OSError for what can't be begun.
    """
    verification = _Verification(
        replica, known or {}, keep_going=keep_going, whole=whole, on_progress=on_progress
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
    """The first problem was found, and no more are wanted."""


class _Verification:
    def __init__(
        self,
        replica: Replica,
        known: Mapping[int, bytes],
        *,
        keep_going: bool,
        whole: bool,
        on_progress: OnProgress | None,
    ) -> None:
        self._replica = replica
        self._known = known
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
            missing = f"offsets 0 to {report.log_start - 1} are not here"
            self._add(VerificationProblem(LOG, LOG, 0, 0, missing))
        for bad in report.findings:
            self._add(VerificationProblem(LOG, bad.file, bad.position, bad.offset, bad.sentence))

    def _checkpoints_here(self) -> list[CheckpointId]:
        """Those to look at, oldest first; what lies behind the log's end is said."""
        found = list_checkpoints(self._replica.disk)
        self._checkpoints = len(found)
        end = self._report.log_end if self._report is not None else 0
        for checkpoint in found:
            if self._report is None or checkpoint.offset <= end:
                continue
            what = f"{_file(checkpoint)} reaches to offset {checkpoint.offset}, the log to {end}"
            if self._replica.live:
                self._notes.append(f"{what}: the node is catching up, or writes its end again")
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
        """Load one whose bytes are right."""
        cluster_id = self._report.cluster_id if self._report is not None else None
        try:
            return load(self._replica.disk, cluster_id, checkpoint)
        except CheckpointNotFoundError:
            self._notes.append(f"{_file(checkpoint)} was removed while we looked")
        except UnbelievableCheckpointError as error:
            self._add(
                VerificationProblem(CHECKPOINT, _file(checkpoint), 0, checkpoint.offset, str(error))
            )
        return None

    def _replay(self, checkpoints: list[CheckpointId]) -> None:
        """Fold the log as far as it is right, and stop at each checkpoint to compare."""
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
            self._notes.append(f"states can't be held against the log: {error}")
            end, reader = 0, None
        fold = None
        if reader is not None and reader.log_start == 0:
            fold = Fold(EMPTY, LogMark.beginning(reader.cluster_id))
        for checkpoint in checkpoints:
            loaded = self._load(checkpoint)
            if loaded is None:
                continue
            if reader is None or not reader.log_start <= checkpoint.offset <= end:
                self._notes.append(f"{_file(checkpoint)} can't be held against the log")
            elif fold is None:
                fold = self._begun_from(checkpoint, loaded)
            elif not self._reach(fold, reader, checkpoint.offset, end):
                return
            else:
                self._compare(checkpoint, loaded, fold)
        if fold is not None and reader is not None and self._reach(fold, reader, end, end):
            self._replayed_to = fold.mark.log_end
            self._state_hash = hash_from_scratch(fold.image).encode()

    def _begun_from(self, checkpoint: CheckpointId, loaded: LoadedCheckpoint) -> Fold | None:
        """Begin where the history was cut, from what can't be proved any more."""
        try:
            image = image_of(loaded, check=True)
        except UnbelievableCheckpointError as error:
            self._add(
                VerificationProblem(STATE, _file(checkpoint), 0, checkpoint.offset, str(error))
            )
            return None
        self._notes.append(
            f"{_file(checkpoint)} is where the replay begins: the history before it isn't here to "
            "prove it by"
        )
        return Fold(image, loaded.header.mark)

    def _reach(self, fold: Fold, reader: LedgerReader, offset: int, end: int) -> bool:
        """Fold up to an offset; tells whether replay could."""
        try:
            for reached in fold.take_all(reader.batches(fold.mark.log_end, offset)):
                if self._on_progress is not None:
                    self._on_progress(reached, end)
        except LedgerError as error:
            self._add(VerificationProblem(STATE, LOG, 0, fold.mark.log_end, str(error)))
            return False
        return True

    def _compare(self, checkpoint: CheckpointId, loaded: LoadedCheckpoint, fold: Fold) -> None:
        header = loaded.header
        sentence = ""
        if fold.mark.log_end != header.offset:
            sentence = "no batch of the log ends at its offset"
        elif fold.mark != header.mark:
            sentence = "its chain hash, epoch or time is not the log's there"
        elif fold.image.transaction is not None:
            sentence = "a transaction is open there, and a snapshot stops before one"
        elif (replayed := hash_from_scratch(fold.image).encode()) != header.state_hash:
            sentence = (
                f"its state hash is {header.state_hash.hex()[:16]}…, and the log replays to "
                f"{replayed.hex()[:16]}…: one of them was replaced"
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
