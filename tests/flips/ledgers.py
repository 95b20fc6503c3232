"""Harms the ledger and its stored indexes; then its node opens them, and auditors read and verify.

Rule: before the mark a wrong byte raises DamagedLedgerError, at the latest when it is read. After
the mark the node cuts it, reports that, and writes it again from the journal. A question to the
ledger (which offset, which hash, which time) gets the right answer or an error, never a wrong one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from ledger.batch import Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.errors import DivergedError, LedgerError
from ledger.ledger import Accepted, Ledger
from ledger.opening import LEDGER_TAIL_CUT
from ledger.reader import LedgerReader
from ledger.verify import verify_ledger
from metadata.codec import encode_records
from tests.flips.events import Events
from tests.flips.memory import Files, MemoryDisk
from tests.flips.verdicts import DETECTED, HARMLESS, SILENT, Verdict, unclean, worst
from tests.histories import History
from tests.unit.ledger.ledger_world import CLUSTER, Node

SAME = Verdict(HARMLESS, "the same is read")


class Question(NamedTuple):
    """What somebody asks of a ledger that was just opened, and which answers are true."""

    name: str
    ask: Callable[[Ledger, LedgerReader], object]
    true: Sequence[object]
    """More than one where what was never synced may be gone."""


class LedgerCase:
    """One node's ledger, the mark it was synced to, and the batches that the journal has."""

    def __init__(
        self,
        file: str,
        files: Files,
        targets: Sequence[str],
        batches: Sequence[Batch],
        mark: LogMark,
        *,
        segment_bytes: int,
        cluster_id: str = CLUSTER,
        others: Files | None = None,
    ) -> None:
        self.file = file
        self.files = files
        self.targets = list(targets)
        self.others = others or {}
        self._batches = batches
        self._encoded = [batch.encoded for batch in batches]
        self._behind = [batch for batch in batches if batch.header.base_offset >= mark.log_end]
        self._mark = mark
        self._segment_bytes = segment_bytes
        self._cluster_id = cluster_id
        self._judged = 0
        self._questions = self._questions_and_answers()
        assert self.judge(files, thorough=True) == SAME

    def judge(self, harmed: Files, *, thorough: bool = False) -> Verdict:
        """Open harmed files in each way, and hold what is read against what was written.

        One question is asked at a time, the next one each time; `thorough`: all of them.
        """
        self._judged += 1
        ways = [self._by_its_node, self._while_it_runs, self._by_a_reader, self._by_verify]
        verdicts = [_cleanly(way, harmed) for way in ways]
        asked = self._questions
        if not thorough:
            asked = [asked[self._judged % len(asked)]]
        verdicts += [_cleanly(partial(self._asked, question), harmed) for question in asked]
        return worst(verdicts)

    def _by_its_node(self, harmed: Files) -> Verdict:
        """As a controller starts: opened at the mark, read, and the journal's batches again."""
        events = Events()
        ledger = self._open(MemoryDisk(harmed), events)
        synced = [batch.encoded for batch in ledger.batches(0, self._mark.log_end)]
        if synced != self._encoded[: len(synced)] or ledger.mark() != self._mark:
            return Verdict(SILENT, "another ledger before the mark")
        for batch in self._behind:
            if not isinstance(ledger.accept(batch.header.epoch, batch), Accepted):
                return Verdict(SILENT, "a batch of the journal was skipped")
        if [batch.encoded for batch in ledger.batches(0)] != self._encoded:
            return Verdict(SILENT, "another ledger behind the mark")
        if LEDGER_TAIL_CUT in events.names:
            return Verdict(DETECTED, "cut behind the mark, and written again")
        return SAME

    def _while_it_runs(self, harmed: Files) -> Verdict:
        """As a running node, which opened the files before the harm and reads them again."""
        disk = MemoryDisk(self.files)
        ledger = self._open(disk, Events())
        if harmed.keys() != self.files.keys():
            return SAME  # a file that is taken away from a running node is still open there
        disk.files = dict(harmed)
        if [batch.encoded for batch in ledger.batches(0)] != self._encoded[: -len(self._behind)]:
            return Verdict(SILENT, "a running node reads another ledger")
        found, offset = list[bytes](), 0
        while more := ledger.read_from(offset, 600, self._mark.log_end):
            found += more
            offset = self._batches[len(found)].header.base_offset
        if found != self._encoded[: -len(self._behind)]:
            return Verdict(SILENT, "a running node hands out another ledger")
        return SAME

    def _by_a_reader(self, harmed: Files) -> Verdict:
        """As an auditor who has the manifest too."""
        reader = self._reader(harmed)
        read = [batch.encoded for batch in reader.batches()]
        if read != self._encoded[-len(read) :] and read != self._encoded[: len(read)]:
            return Verdict(SILENT, "a reader reads another ledger")
        if reader.log_start:
            return Verdict(DETECTED, "a reader says where its history begins")
        if reader.notes:
            return Verdict(DETECTED, "a reader notes where the log ends")
        if len(read) < len(self._encoded) - len(self._behind):
            return Verdict(SILENT, "a reader misses what was synced")
        return SAME

    def _by_verify(self, harmed: Files) -> Verdict:
        """As `logberg audit verify` does."""
        report = verify_ledger(MemoryDisk(harmed), synced_to=self._mark)
        if report.first_bad is not None:
            return Verdict(DETECTED, "verify names the place")
        if report.notes:
            return Verdict(DETECTED, "verify notes an unfinished tail")
        if report.log_start or report.log_end < self._mark.log_end:
            return Verdict(SILENT, "verify misses what was synced")
        if report.head not in [batch.hash for batch in self._batches]:
            return Verdict(SILENT, "verify finds another ledger right")
        return SAME

    def _asked(self, question: Question, harmed: Files) -> Verdict:
        disk = MemoryDisk(harmed)
        ledger = self._open(disk, Events())
        if ledger.log_start:
            return Verdict(DETECTED, "the node says where its history begins")
        answer = question.ask(ledger, LedgerReader(disk, synced_to=self._mark))
        if answer not in question.true:
            return Verdict(SILENT, f"a wrong answer to: {question.name}")
        return SAME

    def _open(self, disk: MemoryDisk, events: Events) -> Ledger:
        return Ledger.open(
            disk,
            self._cluster_id,
            synced_to=self._mark,
            segment_bytes=self._segment_bytes,
            log=events.log,
        )

    def _reader(self, harmed: Files) -> LedgerReader:
        return LedgerReader(MemoryDisk(harmed), cluster_id=self._cluster_id, synced_to=self._mark)

    def _questions_and_answers(self) -> list[Question]:
        headers = [batch.header for batch in self._batches]
        known = {batch.header.end_offset: batch.hash for batch in self._batches}
        synced = [header for header in headers if header.end_offset <= self._mark.log_end]
        middle = synced[len(synced) // 2]
        until = max(h.end_offset for h in synced if h.timestamp_ms <= middle.timestamp_ms)
        epochs = {h.epoch: h.base_offset for h in reversed(synced)}
        later = {h.end_offset: h.timestamp_ms for h in headers if h not in synced[:-1]}
        return [
            Question(
                "where does each epoch begin?",
                lambda ledger, _: {
                    one.epoch: one.start_offset for one in ledger.epoch_start_offsets
                },
                [dict(sorted(epochs.items()))],
            ),
            Question(
                "which hashes are at the batches' ends?",
                lambda ledger, _: [ledger.hash_at(header.end_offset) for header in synced],
                [[known[header.end_offset] for header in synced]],
            ),
            Question(
                "what follows an offset?",
                lambda ledger, _: ledger.read_from(middle.base_offset, 1, self._mark.log_end),
                [[one.encoded] for one in self._batches if one.header == middle],
            ),
            Question(
                "which state was there at a time?",
                lambda _, reader: _state_at(reader, middle.timestamp_ms),
                [(until, [b.encoded for b in self._batches if b.header.end_offset <= until])],
            ),
            Question(
                "which batches end where?",
                lambda _, reader: [
                    (reader.end_of_batch(h.base_offset + 1), reader.hash_at(h.end_offset))
                    for h in synced[1:]
                ],
                [[(h.end_offset, known[h.end_offset]) for h in synced[1:]]],
            ),
            Question(
                "when was the last batch written?",
                lambda _, reader: _last_time(reader),
                [*later.items(), *(("noted", time) for time in later.values())],
            ),
        ]


def _state_at(reader: LedgerReader, timestamp_ms: int) -> object:
    """As `--at TIME` does: the offset, and the batches below it."""
    offset = reader.offset_at_time(timestamp_ms)
    return offset, [batch.encoded for batch in reader.batches(0, offset)]


def _last_time(reader: LedgerReader) -> object:
    """The end and the time of the last batch; of an unfinished tail it is said where it ends."""
    time = reader.last_timestamp_ms()
    return "noted" if reader.notes else reader.log_end, time


def _cleanly(way: Callable[[Files], Verdict], harmed: Files) -> Verdict:
    try:
        return way(harmed)
    except DivergedError:
        return Verdict(SILENT, "the node is said to have diverged, and it has not")
    except LedgerError as error:
        return Verdict(DETECTED, type(error).__name__)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a finding
        return unclean(error)


# -- files, as the product writes them -------------------------------------------------------------


def batches_of(seed: int, count: int, cluster_id: str = CLUSTER) -> list[Batch]:
    """A chained run of batches with records of every kind that seed comes to."""
    mark, made = LogMark.beginning(cluster_id), list[Batch]()
    for number, one in enumerate(History(seed).batches(count)):
        header = BatchHeader(
            base_offset=one.base_offset,
            count=len(one.records),
            epoch=one.epoch + number // 3,
            timestamp_ms=one.timestamp_ms,
            provenance=Provenance(principal="User:alice", operation="CreateTopics"),
            previous_hash=mark.head,
        )
        made.append(seal(header, encode_records(one.records)))
        mark = mark.after(made[-1])
    return made


def written_ledger(
    *, seed: int = 4, count: int = 7, behind: int = 2, segment_bytes: int = 900
) -> LedgerCase:
    """A ledger of several segments, some batches of it not synced yet, with its kept indexes."""
    batches = batches_of(seed, count)
    node = Node(seed, segment_bytes=segment_bytes)
    ledger = node.open()
    for batch in batches[: count - behind]:
        ledger.accept(batch.header.epoch, batch)
    mark = node.sync(ledger)
    for batch in batches[count - behind :]:
        ledger.accept(batch.header.epoch, batch)
    node.settle()
    files = {**node.files("log"), **node.files("index")}
    stranger = Node(seed, "another-cluster-000000", segment_bytes=segment_bytes)
    other = stranger.open()
    for batch in batches_of(seed, count, stranger.cluster_id):
        other.accept(batch.header.epoch, batch)
    return LedgerCase(
        "ledger",
        files,
        list(files),
        batches,
        mark,
        segment_bytes=segment_bytes,
        others={f"another cluster's {name}": data for name, data in stranger.files().items()},
    )


def ledger_without_indexes() -> LedgerCase:
    """The same records in fewer segments, whose heads are walked for want of kept indexes."""
    case = written_ledger(segment_bytes=2_400)
    case.files = {name: data for name, data in case.files.items() if name.startswith("log/")}
    case.targets = list(case.files)
    return case
