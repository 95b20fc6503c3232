"""Harms done to a node's log, each with the sentence that tells of it by name.

Rule: a harm changes files of the second segment or of the last one, so a log needs two of them.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from audit.generated import write_history
from audit.places.replicas import one_replica
from ledger.batch import seal
from ledger.frame import finish_frame
from metadata.records import VERSIONS_PER_TYPE


def segments(log: Path) -> list[Path]:
    return sorted((log / "log").glob("*.log"))


def flip_a_byte(log: Path) -> None:
    path = segments(log)[1]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut_off_the_middle(log: Path) -> None:
    path = segments(log)[1]
    path.write_bytes(path.read_bytes()[:-50])


def take_a_segment_away(log: Path) -> None:
    segments(log)[1].unlink()


def put_another_cluster_s_segment_in(log: Path) -> None:
    other = log.parent / "other"
    write_history(other, records=300, seed=5, cluster_id="T3RoZXJDbHVzdGVy")
    shutil.copy(segments(other / "controller-1")[0], segments(log)[1])
    shutil.rmtree(other)


def use_a_newer_format(log: Path) -> None:
    path = segments(log)[1]
    data = path.read_bytes()
    header = int.from_bytes(data[8:12], "big")
    length = int.from_bytes(data[header + 8 : header + 12], "big")
    frame = data[header : header + length]
    newer = finish_frame(frame[:4] + (9).to_bytes(2, "big") + frame[6:-4])
    path.write_bytes(data[:header] + newer + data[header + length :])


def append_a_newer_record(log: Path) -> None:
    """A batch that is right, with a record that this release doesn't know."""
    reader = one_replica(str(log)).reader()
    (last,) = reader.batches(reader.log_end - 1)
    header = msgspec.structs.replace(
        last.header,
        base_offset=reader.log_end,
        count=1,
        previous_hash=last.hash,
        extensions={},
    )
    records = msgspec.msgpack.encode([[9_999 * VERSIONS_PER_TYPE, "new"]])
    with segments(log)[-1].open("ab") as file:
        file.write(seal(header, records).encoded)


def stop_in_the_last_batch(log: Path) -> None:
    path = segments(log)[-1]
    path.write_bytes(path.read_bytes()[:-20])


HARMS: dict[Callable[[Path], None], str] = {
    flip_a_byte: r"log/\d{20}\.log, byte \d+, offset \d+: the checksum \(CRC-32C\) does not fit",
    cut_off_the_middle: r"log/\d{20}\.log, byte \d+, offset \d+: ",
    take_a_segment_away: r"log/\d{20}\.log.*offset|offsets \d+ to \d+ are missing",
    put_another_cluster_s_segment_in: r"log/\d{20}\.log.* belongs to cluster 'T3RoZX",
    use_a_newer_format: r"log/\d{20}\.log.*: format 9 .*newer release",
    append_a_newer_record: r"offset \d+.*: record type 9999 version 0: .*upgrade",
}
"""What is done to a log, and the sentence that tells of it."""
