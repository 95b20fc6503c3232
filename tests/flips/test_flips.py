"""One bit of every byte of each small file, and proof that the judges would see a silent one.

The volume is run by `python -m tests.flips`.
"""

from collections.abc import Callable, Generator
from itertools import islice
from types import SimpleNamespace

import pytest

from controller.storage import checkpoint_loading
from ledger import frame
from ledger.catalogue import Catalogue
from ledger.chain import LogMark
from metadata.image import MetadataImage, image_from_records
from quorum.journal import opening
from quorum.journal.chain import read_chain
from runtime.links import frames as link_frames
from snapshots.checkpoint import CheckpointChecker, Footer
from snapshots.store import LoadedCheckpoint
from tests.flips import checkpoints, incoming, journals, ledgers, wire
from tests.flips.__main__ import KINDS, Case, run, systematic
from tests.flips.harm import Drawing
from tests.flips.verdicts import SILENT, Tally

Patch = Callable[[pytest.MonkeyPatch], None]


def tally_of(case: Case, *, drawn: int = 60) -> Tally:
    tally = Tally(case.file, 0)
    drawing = Drawing(case.files, case.targets, case.others, 1)
    for harms in (systematic(case, thinned=True), islice(iter(drawing), drawn)):
        for harm in harms:
            tally.add(harm.way, harm.where, case.judge(harm.files))
    return tally


@pytest.mark.parametrize("name", KINDS)
def test_no_flipped_bit_passes_in_silence(name: str) -> None:
    for make in KINDS[name].small:
        case = make()
        tally = tally_of(case)
        assert tally.findings == []
        assert tally.flips >= sum(len(case.files[target]) for target in case.targets)


def test_the_count_is_reached_and_told() -> None:
    (tally,) = run(["manifest"], 3_000, 5)
    assert tally.flips >= 3_000
    assert tally.figures()["silent"] == 0
    assert sum(tally.ways.values()) == tally.total == sum(tally.how.values())


class Whatever(int):
    """A checksum that is right when it is written, and fits everything when it is compared."""

    def __eq__(self, _other: object) -> bool:
        return True

    def __ne__(self, _other: object) -> bool:
        return False

    __hash__ = int.__hash__


def nothing_was_ever_synced(patch: pytest.MonkeyPatch) -> None:
    """Then whatever is wrong looks like a torn tail."""
    read = read_chain
    patch.setattr(opening, "read_chain", lambda files: read(files)._replace(synced=0))
    no_synced_notes(patch)


def no_synced_notes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(opening, "noted_position", lambda *_: 0)


def heads_are_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Catalogue, "_sure_of_epochs", lambda _self, _segment, heads, _epoch: heads)


def no_checksum(patch: pytest.MonkeyPatch) -> None:
    right = frame._crc32c
    patch.setattr(frame, "_crc32c", lambda data: Whatever(right(data)))


def neither_checksum_nor_chain(patch: pytest.MonkeyPatch) -> None:
    no_checksum(patch)
    patch.setattr(LogMark, "objection", lambda _self, _batch: "")


def neither_checksum_nor_digest_nor_state_hash(patch: pytest.MonkeyPatch) -> None:
    def believe(self: CheckpointChecker, buffer: bytes, at: int) -> int:
        self.footer = Footer(0, 0, b"")
        return len(buffer) - at

    def image_of(loaded: LoadedCheckpoint) -> Generator[None, None, MetadataImage]:
        header = loaded.header
        yield from ()
        return image_from_records(
            loaded.records(), header.offset, header.epoch, header.timestamp_ms
        )

    no_checksum(patch)
    patch.setattr(CheckpointChecker, "_take_footer", believe)
    patch.setattr(checkpoint_loading, "_image", image_of)


def no_checksum_on_the_link(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(link_frames, "google_crc32c", SimpleNamespace(value=lambda _data: Whatever(0)))


def no_digest_of_an_answer(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(wire, "is_content", lambda *_: True)


@pytest.mark.parametrize(
    ("make", "harm"),
    [
        (journals.votes, nothing_was_ever_synced),
        (journals.votes, no_synced_notes),
        (ledgers.ledger_without_indexes, heads_are_believed),
        (ledgers.written_ledger, neither_checksum_nor_chain),
        (checkpoints.written_checkpoints, neither_checksum_nor_digest_nor_state_hash),
        (checkpoints.checkpoints_in_columns, neither_checksum_nor_digest_nor_state_hash),
        (incoming.in_flight, neither_checksum_nor_chain),
        (wire.link, no_checksum_on_the_link),
        (wire.answer, no_digest_of_an_answer),
    ],
    ids=lambda value: value.__name__,
)
def test_a_build_that_believes_too_much_is_seen(
    make: Callable[[], Case], harm: Patch, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = make()
    harm(monkeypatch)
    some = islice(systematic(case), 0, None, 37)
    assert any(case.judge(harmed.files, thorough=True).kind == SILENT for harmed in some)
