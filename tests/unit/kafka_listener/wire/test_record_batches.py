"""Record batches to bytes and back."""

import contextlib

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka_listener.wire.errors import WireError
from kafka_listener.wire.record_batches import decode_batches, encode_batch

values = st.lists(
    st.tuples(st.none() | st.binary(max_size=200), st.binary(max_size=9000)), min_size=1, max_size=5
)
KEPT = encode_batch(7, 3, 1_700_000_000_000, [(None, b"one"), (b"key", b"two")], control=False)
HEX = (
    "0000000000000007" "00000048" "00000003" "02" "53107968" "0000" "00000001"
    "0000018bcfe56800" "0000018bcfe56800" "ffffffffffffffff" "ffff" "ffffffff" "00000002"
    "12" "00" "00" "00" "01" "06" "6f6e65" "00"
    "18" "00" "00" "02" "06" "6b6579" "06" "74776f" "00"
)  # fmt: skip


@given(
    st.integers(0, 2**62), st.integers(0, 2**31 - 1), st.integers(0, 2**50), values, st.booleans()
)
def test_what_is_written_is_read_again(
    offset: int, epoch: int, time: int, pairs: list[tuple[bytes | None, bytes]], control: bool
) -> None:
    data = encode_batch(offset, epoch, time, pairs, control=control)
    first, second = decode_batches(data + data)
    assert first.records == second.records == pairs
    assert first[:4] == (offset, epoch, time, control)
    assert (first.position, first.size) == (0, len(data))
    assert (second.position, second.size) == (len(data), len(data))


def test_the_bytes_are_kafkas() -> None:
    assert KEPT.hex() == HEX


@given(st.integers(0, len(KEPT) - 1), st.integers(1, 255))
def test_a_flipped_byte_after_the_checksum_is_found(position: int, flip: int) -> None:
    damaged = bytearray(KEPT)
    damaged[position] ^= flip
    if position < 8 or 12 <= position < 16:  # offset and epoch: nothing guards them in Kafka
        assert len(list(decode_batches(bytes(damaged)))) == 1
    else:
        with pytest.raises(WireError):
            list(decode_batches(bytes(damaged)))


@pytest.mark.parametrize("cut", range(1, len(KEPT)))
def test_a_cut_is_found(cut: int) -> None:
    with pytest.raises(WireError):
        list(decode_batches(KEPT + KEPT[:cut]))


def test_a_batch_has_a_record() -> None:
    with pytest.raises(WireError, match="without records"):
        encode_batch(0, 0, 0, [], control=False)


def with_checksum(data: bytes) -> bytes:
    """The batch with the checksum that its bytes have now."""
    return data[:17] + google_crc32c.value(data[21:]).to_bytes(4, "big") + data[21:]


@given(st.integers(21, len(KEPT) - 1), st.integers(0, 255))
def test_a_wrong_byte_under_a_right_checksum_raises_nothing_else(position: int, byte: int) -> None:
    damaged = bytearray(KEPT)
    damaged[position] = byte
    with contextlib.suppress(WireError):
        list(decode_batches(with_checksum(bytes(damaged))))


WRONG = {
    "compressed": (22, b"\x01", "is compressed"),
    "an older magic": (16, b"\x01", "has magic 1"),
    "a negative length": (8, b"\xff\xff\xff\xff", "can't be -1 bytes long"),
    "a huge length": (8, b"\x7f\xff\xff\xff", "can't be 2147483647 bytes long"),
    "a huge count": (57, b"\x7f\xff\xff\xff", "can't hold 2147483647 records"),
    "a negative count": (57, b"\xff\xff\xff\xff", "can't hold -1 records"),
    "a record that is too long": (61, b"\x7e", "does not fit into its batch"),
    "a key that is too long": (79, b"\x7e", "does not fit into its record"),
    "too many headers": (len(KEPT) - 1, b"\x7d", "can't have"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_batch_is_refused(name: str) -> None:
    position, data, why = WRONG[name]
    damaged = with_checksum(KEPT[:position] + data + KEPT[position + len(data) :])
    with pytest.raises(WireError, match=why):
        list(decode_batches(damaged))
