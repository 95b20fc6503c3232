"""What a catch-up does with files that an earlier incarnation left after the accepted history."""

from pathlib import Path

import structlog

from ledger.chain import LogMark
from ledger.gaps import Gap, list_gaps
from ledger.incoming import NOTE_NAME, CatchUpNote, finish_catch_up
from ledger.pull import part_name
from ledger.segments import segment_bases, segment_name
from runtime.disk.real import RealDisk


def test_segments_that_were_never_accepted_go_when_a_jump_is_finished(tmp_path: Path) -> None:
    """Nobody vouches for them, and the gap's marker says that nothing is there."""
    disk = RealDisk(tmp_path)
    disk.make_folder("log")
    disk.make_folder("incoming")
    for base in (0, 54, 76):
        disk.replace(f"log/{segment_name(base)}", b"left by an earlier life")
    disk.replace(part_name(184), b"fetched")
    mark = LogMark(193, bytes(32), 4, 1)
    disk.replace(NOTE_NAME, CatchUpNote(mark, (184,), 52).encode())

    assert finish_catch_up(disk, mark, structlog.get_logger())

    assert segment_bases(disk.list("log")) == [0, 184]
    assert list_gaps(disk) == [Gap(52, 184)]
    disk.close()
