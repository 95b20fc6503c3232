"""Harms what a follower fetches in a catch-up: on its disk, and on the way from a peer.

Rule: nothing wrong is kept. In the end the follower has its peer's ledger and checkpoint, byte for
byte, or its ledger reports damage at the next opening.
"""

from collections.abc import Callable, Iterator, Sequence

from ledger.batch import Batch
from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.history_pull import HistoryPull
from ledger.ledger import Ledger
from ledger.segments import segment_bases
from snapshots.checkpoint import CheckpointId
from snapshots.errors import CheckpointError
from snapshots.fetching import CheckpointFetch
from tests.flips.checkpoints import images, written_checkpoints_of
from tests.flips.events import Events
from tests.flips.ledgers import batches_of
from tests.flips.memory import Files, MemoryDisk
from tests.flips.verdicts import DETECTED, HARMLESS, SILENT, Verdict, unclean
from tests.unit.ledger.ledger_world import CLUSTER, Node

SEGMENT_BYTES = 800
PIECE_BYTES = 1_000
_ATTEMPTS = 6
Peer = Callable[[str, int], bytes]
"""Answers with bytes of a file from a position on."""


class CatchUpCase:
    """A node that crashed after it committed a catch-up: the files are not in place yet."""

    def __init__(self, files: Files, batches: Sequence[Batch], mark: LogMark) -> None:
        self.file = "incoming"
        self.files = files
        self.targets = [name for name in files if name.startswith("incoming/")]
        self.others: Files = {}
        self._encoded = [batch.encoded for batch in batches]
        self._mark = mark
        assert self.judge(files).kind == HARMLESS

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Start as a controller does at the mark, and read everything."""
        try:
            read = _read(MemoryDisk(harmed), self._mark)
        except LedgerError as error:
            return Verdict(DETECTED, type(error).__name__)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        if read != self._encoded:
            return Verdict(SILENT, "another ledger is installed")
        return Verdict(HARMLESS, "the same is installed")


class PullCase:
    """A catch-up under way: harmed is what lies in `incoming/`, or what a peer sends the first
    time.
    """

    def __init__(
        self, file: str, own: Files, peer: Files, batches: Sequence[Batch], mark: LogMark
    ) -> None:
        self.file = file
        self._in_flight = file == "in-flight"
        self._own = own
        self._peer = peer
        self.files = peer if self._in_flight else own
        folder = ("log/", "checkpoints/") if self._in_flight else ("incoming/",)
        self.targets = [name for name in self.files if name.startswith(folder)]
        self.others: Files = {}
        self._encoded = [batch.encoded for batch in batches]
        self._mark = mark
        assert self.judge(self.files).how == "the same is fetched"

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Go on fetching until all is here, as `controller.storage.catch_up` does."""
        disk = MemoryDisk(self._own if self._in_flight else harmed)
        peer = self._harmed_once(harmed) if self._in_flight else self._answer
        try:
            refused = self.fetch_into(disk, peer)
            read = _read(disk, self._mark)
        except LedgerError as error:
            return Verdict(SILENT, f"it can't be fetched: {error}")
        except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
            return unclean(error)
        if read != self._encoded:
            return Verdict(SILENT, "another ledger is fetched")
        if any(disk.files.get(f) != self._peer[f] for f in self._peer if f.startswith("check")):
            return Verdict(SILENT, "another checkpoint is fetched")
        if refused:
            return Verdict(DETECTED, "refused, and fetched again")
        return Verdict(HARMLESS, "the same is fetched")

    def fetch_into(self, disk: MemoryDisk, peer: Peer | None = None) -> int:
        """Fetch the checkpoint, then the history; returns how often something was refused."""
        refused, peer = 0, peer or self._answer
        (name,) = (name for name in self._peer if name.startswith("checkpoints/"))
        checkpoint = CheckpointId.parse(name.removeprefix("checkpoints/"))
        fetch = CheckpointFetch(disk, CLUSTER, checkpoint, len(self._peer[name]))
        _run(fetch.prepare())
        while not fetch.complete:
            try:
                fetch.add(peer(name, fetch.position))
            except (CheckpointError, LedgerError):
                refused += 1
                fetch.discard()
            assert refused < _ATTEMPTS
        fetch.place(_no_error)
        bases = segment_bases(self._peer)
        history = HistoryPull(disk, CLUSTER, self._mark, bases, log_end=self._own_end())
        _run(history.prepare())
        while history.wanted is not None:
            segment, position = history.wanted
            try:
                if history.add(peer(f"log/{segment}", position)):
                    _run(history.prepare())
            except LedgerError:
                refused += 1
                history.discard()
                _run(history.prepare())
            assert refused < _ATTEMPTS
        history.seal(_no_error)
        return refused

    def _own_end(self) -> int:
        return _ledger(MemoryDisk(self._own), None).log_end

    def _answer(self, name: str, position: int) -> bytes:
        return self._peer[name][position : position + PIECE_BYTES]

    def _harmed_once(self, harmed: Files) -> Peer:
        """The way is bad for as long as it takes to bring each byte once."""
        seen: set[tuple[str, int]] = set()

        def answer(name: str, position: int) -> bytes:
            asked = (name, position)
            if asked in seen:
                return self._answer(name, position)
            seen.add(asked)
            return harmed.get(name, b"")[position : position + PIECE_BYTES]

        return answer


def _ledger(disk: MemoryDisk, mark: LogMark | None) -> Ledger:
    return Ledger.open(disk, CLUSTER, synced_to=mark, segment_bytes=SEGMENT_BYTES, log=Events().log)


def _read(disk: MemoryDisk, mark: LogMark) -> list[bytes]:
    return [batch.encoded for batch in _ledger(disk, mark).batches(0)]


def _run(steps: Iterator[None]) -> None:
    for _ in steps:
        pass


def _no_error(error: OSError | None) -> None:
    assert error is None


# -- files, as the product writes them -------------------------------------------------------------


class _Peers:
    """A leader's folder, and a follower's that is far behind."""

    def __init__(self, seed: int = 7, count: int = 4, behind_at: int = 1) -> None:
        self.batches = batches_of(seed, count)
        peer = Node(1, segment_bytes=SEGMENT_BYTES)
        ledger = peer.open()
        for batch in self.batches:
            ledger.accept(batch.header.epoch, batch)
        self.mark = peer.sync(ledger)
        own = Node(2, segment_bytes=SEGMENT_BYTES)
        behind = own.open()
        for batch in self.batches[:behind_at]:
            behind.accept(batch.header.epoch, batch)
        own.sync(behind)
        (image,) = images(seed, count)
        self.peer = {**peer.files("log"), **written_checkpoints_of([image])}
        self.own = {**own.files("log"), **own.files("index")}


def installing() -> CatchUpCase:
    """Everything was fetched and the manifest names it; then the node crashed."""
    world = _Peers()
    disk = MemoryDisk(world.own)
    PullCase("incoming", world.own, world.peer, world.batches, world.mark).fetch_into(disk)
    files = {name: data for name, data in disk.files.items() if not name.startswith("checkpoints/")}
    return CatchUpCase(files, world.batches, world.mark)


def fetching() -> PullCase:
    """Half of it was fetched; then the node crashed."""
    world = _Peers()
    disk = MemoryDisk(world.own)
    case = PullCase("incoming", world.own, world.peer, world.batches, world.mark)
    case.fetch_into(disk)
    parts = sorted(name for name in disk.files if name.endswith(".part"))
    (name,) = (name for name in world.peer if name.startswith("checkpoints/"))
    half = {part: disk.files[part] for part in parts[: len(parts) // 2 + 1]}
    half[parts[len(half)]] = disk.files[parts[len(half)]][:300]
    half[f"incoming/{name.removeprefix('checkpoints/')}.part"] = world.peer[name][:500]
    return PullCase("incoming", {**world.own, **half}, world.peer, world.batches, world.mark)


def in_flight() -> PullCase:
    """Everything a peer sends for a catch-up."""
    world = _Peers()
    return PullCase("in-flight", world.own, world.peer, world.batches, world.mark)
