"""Uuids: each has one text, and no other text is accepted."""

import uuid as standard

import pytest
from hypothesis import given
from hypothesis import strategies as st

from metadata.uuids import (
    UuidError,
    new_cluster_id,
    parse_uuid,
    uuid4_from,
    uuid7,
    uuid7_time_ms,
    uuid_text,
    uuid_version,
)
from tests.strategies import uuids


@given(uuids)
def test_text_there_and_back(uuid: bytes) -> None:
    text = uuid_text(uuid)
    assert len(text) == 22
    assert parse_uuid(text) == uuid


def test_text_is_kafkas() -> None:
    assert uuid_text(bytes(16)) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert uuid_text(bytes([0xFF] * 16)) == "_____________________w"
    assert uuid_text(bytes([0xFB, 0xE0] + [0] * 14))[:2] == "--"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "AAAA",
        "AAAAAAAAAAAAAAAAAAAAAA==",
        "AAAAAAAAAAAAAAAAAAAAAB",
        "AAAAAAAAAAAAAAAAAAAA+A",
        "AAAAAAAAAAAAAAAAAAAA/A",
        "AAAAAAAAAA AAAAAAAAAAA",
        "AAAAAAAAAAAAAAAAAAAAA\n",
        "ÄAAAAAAAAAAAAAAAAAAAAA",
        "00000000-0000-0000-0000-000000000000",
    ],
)
def test_what_is_not_a_uuid_is_refused(text: str) -> None:
    with pytest.raises(UuidError, match="22 characters"):
        parse_uuid(text)


@pytest.mark.parametrize("length", [0, 15, 17])
def test_text_needs_16_bytes(length: int) -> None:
    with pytest.raises(ValueError, match="16 bytes"):
        uuid_text(bytes(length))


@given(st.integers(0, 2**122 - 1))
def test_version_4_is_as_the_rfc_has_it(bits: int) -> None:
    made = standard.UUID(bytes=uuid4_from(bits))
    assert (made.version, made.variant) == (4, standard.RFC_4122)
    assert uuid_version(made.bytes) == 4
    number = made.int
    assert (number >> 80 << 74 | (number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1) == bits


@given(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1))
def test_version_7_is_as_the_rfc_has_it(time_ms: int, bits: int) -> None:
    made = uuid7(time_ms, bits)
    assert (standard.UUID(bytes=made).version, uuid_version(made)) == (7, 7)
    assert standard.UUID(bytes=made).variant == standard.RFC_4122
    assert uuid7_time_ms(made) == time_ms
    number = int.from_bytes(made, "big")
    assert ((number >> 64 & 0xFFF) << 62 | number & (1 << 62) - 1) == bits


@given(
    st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1)),
    st.tuples(st.integers(0, 2**48 - 1), st.integers(0, 2**74 - 1)),
)
def test_version_7_sorts_by_time_then_by_dice(one: tuple[int, int], other: tuple[int, int]) -> None:
    assert (uuid7(*one) < uuid7(*other)) == (one < other)


@pytest.mark.parametrize("bits", [-1, 2**122])
def test_too_many_bits_for_version_4(bits: int) -> None:
    with pytest.raises(ValueError, match="122"):
        uuid4_from(bits)


@pytest.mark.parametrize(("time_ms", "bits"), [(-1, 0), (2**48, 0), (0, -1), (0, 2**74)])
def test_too_much_for_version_7(time_ms: int, bits: int) -> None:
    with pytest.raises(ValueError, match=r"time|74"):
        uuid7(time_ms, bits)


def test_a_time_is_read_from_version_7_only() -> None:
    with pytest.raises(ValueError, match="not a UUIDv7"):
        uuid7_time_ms(uuid4_from(0))
    assert uuid_version(bytes(16)) == 0


def test_a_cluster_s_id_never_begins_with_a_dash():
    """`kafka-storage format -t -…` says that -t lacks its argument."""
    dashed, fine = 0b111110 << 116, 1 << 116
    assert uuid_text(uuid4_from(dashed)).startswith("-")
    draws = iter([dashed, dashed, fine])
    assert new_cluster_id(lambda: next(draws)) == uuid_text(uuid4_from(fine))
