"""Sealed blocks open with the key, at their place, and give the salted hash that they had."""

import pytest

from metadata.sealed_blocks import OVERHEAD, SealingError, key_id_of
from metadata.sealing import ClusterKey, salted_hash

KEY, OTHER = ClusterKey(bytes(range(32))), ClusterKey(bytes(32))
SECRET = b"the stored key of a user, so to say"


def test_a_block_is_opened_where_it_was_made() -> None:
    sealed = KEY.seal("scram/1/storedKey/al", SECRET, b"r" * 16)
    assert SECRET not in sealed.block
    assert len(sealed.block) == len(SECRET) + OVERHEAD
    assert KEY.open("scram/1/storedKey/al", sealed.block) == SECRET
    salt, secret = KEY.open_with_salt("scram/1/storedKey/al", sealed.block)
    assert salted_hash(salt, secret) == sealed.salted_hash


@pytest.mark.parametrize(
    ("key", "place", "change", "why"),
    [
        (KEY, "scram/1/storedKey/bob", lambda b: b, "made for another place"),
        (OTHER, "place", lambda b: b, "sealed under cluster key"),
        (KEY, "place", lambda b: b[:-1] + bytes([b[-1] ^ 1]), "changed"),
        (KEY, "place", lambda b: b[:20] + bytes([b[20] ^ 1]) + b[21:], "changed"),
        (KEY, "place", lambda b: b[: OVERHEAD - 1], "not a sealed block"),
        (KEY, "place", lambda b: b"x" * len(b), "not a sealed block"),
    ],
)
def test_nothing_else_opens_it(key: ClusterKey, place: str, change: object, why: str) -> None:
    block = KEY.seal("place", SECRET, b"r" * 16).block
    assert callable(change)
    with pytest.raises(SealingError, match=why):
        key.open(place, change(block))


def test_the_same_secret_gives_another_block_each_time() -> None:
    blocks = {KEY.seal("place", SECRET, bytes([n]) * 16) for n in range(50)}
    assert len({sealed.block for sealed in blocks}) == 50
    assert len({sealed.salted_hash for sealed in blocks}) == 50
    assert len({sealed.block[13:25] for sealed in blocks}) == 50


def test_nonces_differ_even_where_the_random_bytes_do_not() -> None:
    """AES-GCM breaks when a nonce repeats for another secret."""
    blocks = {KEY.seal("place", bytes([n]) * 32, b"r" * 16).block[13:25] for n in range(50)}
    assert len(blocks) == 50


def test_the_id_tells_keys_apart_and_the_text_shows_no_key() -> None:
    assert key_id_of(KEY.seal("p", SECRET, b"r" * 16).block) == KEY.id != OTHER.id
    assert key_id_of(SECRET) is None
    assert repr(KEY) == f"ClusterKey({KEY.id.hex()})"
    assert bytes(range(32)).hex() not in repr(KEY)
    with pytest.raises(ValueError, match="32 bytes"):
        ClusterKey(b"short")


def test_a_mac_is_bound_to_its_purpose() -> None:
    assert KEY.mac("tokens", b"id") != KEY.mac("requests", b"id")
    assert KEY.mac("tokens", b"id") != OTHER.mac("tokens", b"id")
    assert len(KEY.mac("tokens", b"id")) == 64
