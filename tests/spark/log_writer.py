"""Writes a ledger as a controller's folder has it: whole, growing, unfinished or damaged."""

from pathlib import Path

from ledger.batch import ACTED_AS, Batch, BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.segments import SEGMENT_BYTES, SegmentHeader, must_roll, segment_name
from metadata.codec import encode_records
from metadata.records import Record
from tests.histories import History

CLUSTER_ID = "spark-test"


class LogWriter:
    """Appends batches of a made-up history, rolling segments as a node does."""

    def __init__(self, folder: Path, *, seed: int = 1, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder = folder
        self.batches: list[Batch] = []
        self.mark = LogMark.beginning(CLUSTER_ID)
        self._log = folder / "log"
        self._log.mkdir(parents=True)
        self._history = History(seed)
        self._segment_bytes = segment_bytes
        self._header_length = self._size = 0
        self.withheld = 0
        """Bytes that the next batch lacks at its end, until `finish`."""
        self._withheld = b""

    @property
    def end(self) -> int:
        return self.mark.log_end

    @property
    def segments(self) -> list[Path]:
        return sorted(self._log.iterdir())

    def append(self, count: int) -> "LogWriter":
        for made in self._history.batches(count):
            self.append_records(list(made.records), made.epoch, made.timestamp_ms)
        return self

    def append_records(self, records: list[Record], epoch: int = 0, timestamp_ms: int = 0) -> None:
        mark = self.mark
        number = len(self.batches)
        header = BatchHeader(
            mark.log_end,
            len(records),
            max(epoch, mark.epoch),
            max(timestamp_ms, mark.timestamp_ms),
            Provenance(
                f"User:u{number % 5}",
                "certificate",
                "User:behind" if number % 3 == 0 else "",
                "127.0.0.1",
                f"client-{number % 2}",
                number.to_bytes(16, "big") if number % 2 else b"",
                b"",
                "try",
                "because",
            ),
            mark.head,
            {ACTED_AS: b"Broker:7"} if number % 4 == 1 else {},
        )
        batch = seal(header, encode_records(records))
        self._write(batch)
        self.batches.append(batch)
        self.mark = mark.after(batch)

    def finish(self) -> None:
        """Append what was withheld of the last batch: a node never takes back what it wrote."""
        with self._path.open("ab") as file:
            file.write(self._withheld)
        self.withheld = 0

    def _write(self, batch: Batch) -> None:
        rolls = not self._size or must_roll(
            self._size, self._header_length, len(batch.encoded), self._segment_bytes
        )
        if rolls:
            header = SegmentHeader(CLUSTER_ID, self.mark).encode()
            self._path = self._log / segment_name(self.mark.log_end)
            self._path.write_bytes(header)
            self._header_length = self._size = len(header)
        with self._path.open("ab") as file:
            file.write(batch.encoded[: len(batch.encoded) - self.withheld])
        self._withheld = batch.encoded[len(batch.encoded) - self.withheld :]
        self._size += len(batch.encoded)
