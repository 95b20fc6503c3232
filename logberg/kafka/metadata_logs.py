"""Kafka's view of a log from files alone: written for Kafka, and compared with what brokers have.

Each controller's ledger is projected as its listener does it. All projections must be the same
bytes, and each broker's own metadata log must be the first of these bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

from kafka_listener.projection.batch_projection import BatchProjection, ProjectedBatch
from kafka_listener.projection.clear_values import ClearValues
from kafka_listener.projection.log_facts import LogFacts
from ledger.reader import LedgerReader
from metadata.codec import decode_records
from metadata.records import VotersRecord
from metadata.sealing import ClusterKey
from metadata.uuids import uuid_text

METADATA_LOG: Final = "__cluster_metadata-0"
"""The folder in each of a broker's log.dirs."""


class DifferentLogError(Exception):
    """A metadata log is not what it should be. The message says whose, and from which offset."""


class ProjectedDigest(NamedTuple):
    """One controller's projected log."""

    end: int
    digest: bytes
    """SHA-256 of all its bytes."""


def projected(reader: LedgerReader, values: ClearValues) -> Iterator[ProjectedBatch]:
    """Yield the projected log of a whole ledger. Raises LedgerError, OSError.

    `values` opens its secrets, and counts those that it could not open.
    """
    facts = LogFacts()
    for batch in reader.batches():
        facts.read(batch.header.base_offset, decode_records(batch.records))
    projection = BatchProjection(values)
    for batch in reader.batches():
        yield from projection.project(batch.header, decode_records(batch.records), facts)


def digest_of(reader: LedgerReader, key: ClusterKey | None) -> ProjectedDigest:
    """Return the digest of a ledger's projected log. Raises LedgerError, OSError."""
    found, end = sha256(), 0
    for batch in projected(reader, ClearValues(key)):
        found.update(batch.data)
        end = batch.end_offset
    return ProjectedDigest(end, found.digest())


def compare_brokers(
    batches: Iterator[ProjectedBatch], brokers: Mapping[int, Path]
) -> dict[int, int]:
    """Hold the brokers' metadata logs to a projected log. Returns the end of each.

    `brokers`: by id, the folder that holds METADATA_LOG. Raises DifferentLogError, OSError.
    """
    logs = {n: _BrokerLog(n, folder / METADATA_LOG) for n, folder in brokers.items()}
    for batch in batches:
        for log in logs.values():
            log.compare(batch)
    for log in logs.values():
        log.check_read()
    return {n: log.end for n, log in logs.items()}


class _BrokerLog:
    """The segments of one broker's metadata log, as one row of bytes."""

    def __init__(self, broker_id: int, folder: Path) -> None:
        self._broker_id = broker_id
        segments = sorted(folder.glob("*.log"))
        if not segments:
            raise DifferentLogError(f"broker {broker_id} has no metadata log in {folder}")
        self.end = int(segments[0].stem)
        self._bytes = b"".join(_contents(segments))
        self._at = 0

    def compare(self, batch: ProjectedBatch) -> None:
        """Compare the next batch, if the log has come so far."""
        if batch.base_offset < self.end or self._at == len(self._bytes):
            return
        until = self._at + len(batch.data)
        if batch.base_offset != self.end or self._bytes[self._at : until] != batch.data:
            raise DifferentLogError(
                f"the metadata log of broker {self._broker_id} differs from offset {self.end} on"
            )
        self._at, self.end = until, batch.end_offset

    def check_read(self) -> None:
        """Raise DifferentLogError if the broker has more than there is."""
        if self._at != len(self._bytes):
            raise DifferentLogError(
                f"the metadata log of broker {self._broker_id} goes on after offset {self.end}, "
                "where ours ends"
            )


def _contents(segments: Sequence[Path]) -> Iterator[bytes]:
    for segment in segments:
        yield segment.read_bytes()


SEGMENT_BYTES_MAX: Final = 1 << 30
"""Kafka's segments are at most so large: places in them are 32-bit numbers."""


class WrittenLog(NamedTuple):
    """A log that was written for Kafka's own programs."""

    folder: Path
    end: int
    kept_sealed: int
    """Records whose secrets could not be opened."""


def write_log(reader: LedgerReader, values: ClearValues, folder: Path) -> WrittenLog:
    """Write a ledger's projected log as Kafka keeps it, into METADATA_LOG in `folder`.

    Only the caller's user can read the files, for they hold secrets in clear. Raises LedgerError,
    and OSError, also if the log is there already.
    """
    place = folder / METADATA_LOG
    place.mkdir(mode=0o700, parents=True)
    end = size = 0
    sink = None
    try:
        for batch in projected(reader, values):
            if sink is None or size + len(batch.data) > SEGMENT_BYTES_MAX:
                if sink is not None:
                    sink.close()
                sink, size = (place / f"{batch.base_offset:020d}.log").open("xb"), 0
            sink.write(batch.data)
            size += len(batch.data)
            end = batch.end_offset
    finally:
        if sink is not None:
            sink.close()
    return WrittenLog(place, end, values.kept_sealed)


class LogVoter(NamedTuple):
    """A controller as the log names it to Kafka."""

    node_id: int
    directory_id: str
    """22 characters, as in meta.properties."""
    addresses: str
    """Such as CONTROLLER://10.0.0.1:9093."""


def voters_of(reader: LedgerReader) -> list[LogVoter]:
    """Return the voters that the log names last. Raises LedgerError, OSError."""
    found = VotersRecord(())
    for batch in reader.batches():
        for record in decode_records(batch.records):
            if isinstance(record, VotersRecord):
                found = record
    return [
        LogVoter(
            voter.voter_id,
            uuid_text(voter.voter_directory_id),
            ",".join(f"{e.name}://{e.host}:{e.port}" for e in voter.endpoints),
        )
        for voter in found.voters
    ]
