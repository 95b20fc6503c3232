"""The one-file verifier reads checkpoints in format 2, and refuses what the product refuses."""

from pathlib import Path

import pytest

from snapshots.checkpoint import COLUMNS_FORMAT, Block, encode_block, parse_header
from tests.flips.checkpoints import images
from tests.unit.snapshots.column_cases import (
    BLOCK_CASES,
    HOSTILE,
    ORDERS,
    file_of,
    header_of,
    image_of,
    sealed,
)
from verifier.logberg_verify import Bad, read_checkpoint

EMPTY = image_of([])


def read(content: bytes, folder: Path) -> None:
    header, _ = parse_header(content)
    path = folder / header.id.name
    path.write_bytes(content)
    found = read_checkpoint(path, skip_crc=True)
    assert (found.cluster, found.mark.offset) == (header.cluster_id, header.offset)


@pytest.mark.parametrize("name", BLOCK_CASES)
def test_blocks_that_end_where_they_must(name: str, tmp_path: Path) -> None:
    """It adds up the state hash from the records that it makes of the columns."""
    read(file_of(image_of(BLOCK_CASES[name][0]), COLUMNS_FORMAT), tmp_path)


@pytest.mark.parametrize("seed", range(8))
def test_images_of_histories(seed: int, tmp_path: Path) -> None:
    for image in images(seed, 20, 60, 90):
        read(file_of(image, COLUMNS_FORMAT), tmp_path)


def refused(blocks: list[Block], folder: Path) -> str:
    frames = [encode_block(block, COLUMNS_FORMAT) for block in blocks]
    header = header_of(EMPTY, COLUMNS_FORMAT)
    with pytest.raises(Bad) as caught:
        read(sealed(header, frames, sum(block.records for block in blocks)), folder)
    return caught.value.kind


@pytest.mark.parametrize("name", HOSTILE)
def test_a_block_that_nobody_writes(name: str, tmp_path: Path) -> None:
    data, count, why = HOSTILE[name]
    kind = refused([Block(True, count, data)], tmp_path)
    # What is right but for its sum is only refused for that.
    assert (kind == "state") is (why is None)


@pytest.mark.parametrize("name", ORDERS)
def test_blocks_in_another_order(name: str, tmp_path: Path) -> None:
    assert refused(ORDERS[name][0], tmp_path) == "block"


def test_a_block_of_topics_in_format_1(tmp_path: Path) -> None:
    block = encode_block(ORDERS["a block behind one that is not full"][0][0], 1)
    with pytest.raises(Bad, match="how a frame begins"):
        read(sealed(header_of(EMPTY, 1), [block], 1), tmp_path)


def test_a_frame_of_format_1_in_a_file_of_format_2(tmp_path: Path) -> None:
    block = encode_block(Block(False, 1, b"\x91\x91\xcd\x07\xd0"), 1)
    with pytest.raises(Bad, match="format and flags"):
        read(sealed(header_of(EMPTY, COLUMNS_FORMAT), [block], 1), tmp_path)
