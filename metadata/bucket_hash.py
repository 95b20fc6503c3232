"""Hash functions that choose the bucket for a key of a `BucketMap`, keyed with a secret.

Rule: a client that chooses keys (topic names, request ids, broker ids) must not be able to choose
their buckets. Otherwise it could put all keys into one bucket, and each change copies a bucket. So
every function here uses a secret of the process (`key_buckets`), which comes from the injected
randomness. Nothing that leaves a process depends on the secret: maps are iterated sorted, and the
state hash is a sum.

For text and bytes the hash is Python's own (SipHash) of the secret followed by the key. It takes as
long as crc32. The secret protects it even where PYTHONHASHSEED is fixed, because nobody else knows
SipHash's state after the secret. For numbers the hash is the middle bits of the product with a
secret odd number.

A map uses the secret that is set when it gets its first entry, and its later versions keep that
one. So a process may set the secret at any time.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

K = TypeVar("K")

Mix = Callable[[Any], int]
"""Takes a key and returns a number, whose lowest bits choose the bucket."""
MixFor = Callable[[bytes], Mix]
"""Takes a secret and returns a `Mix`. There is one for each kind of key."""

SECRET_BYTES: Final = 16
UNKEYED: Final = b"quorate, unkeyed"
"""The secret until `key_buckets` sets one: in tests, and in tools that read their own files."""


def mix_bytes(secret: bytes) -> Mix:
    """Hash uuids and other bytes."""
    return lambda key: hash(secret + key)


def mix_text(secret: bytes) -> Mix:
    """Hash names."""
    before = _as_text(secret)
    return lambda key: hash(before + key)


def mix_int(secret: bytes) -> Mix:
    """Hash ids of 32 bits, also ids that differ by multiples of a power of two."""
    factor = int.from_bytes(secret[:8], "big") | 1
    return lambda key: key * factor >> 32


def mix_partition(secret: bytes) -> Mix:
    """Hash partition keys. Eight neighbours of a topic share a bucket, the next ones the next.

    Partitions of a topic often change together. With a bucket for each of them, copying buckets
    took a quarter of the replay of new topics.
    """
    return lambda key: hash(secret + key[0]) + (key[1] >> 3)


def mix_typed_name(secret: bytes) -> Mix:
    """Hash (code, name), such as a config resource."""
    before = _as_text(secret)
    return lambda key: hash(before + key[1]) + key[0]


def mix_name_and_code(secret: bytes) -> Mix:
    """Hash (name, code), such as the key of a SCRAM credential."""
    before = _as_text(secret)
    return lambda key: hash(before + key[0]) + key[1]


def mix_entity(secret: bytes) -> Mix:
    """Hash a sequence of (kind, names), such as the entity of a client quota."""
    before = _as_text(secret)
    return lambda key: hash(
        before + "\0".join(part for kind, name in key for part in (kind, *name))
    )


def mix_row(secret: bytes) -> Mix:
    """For rows of names and codes, such as what an access control entry says."""
    before = _as_text(secret)
    return lambda key: hash(before + "\0".join(map(str, key)))


def _as_text(secret: bytes) -> str:
    """Return the secret as 16 characters, one for each byte."""
    # In Latin-1 the text takes one byte a character, so that joining it with a name is cheap.
    return secret.decode("latin-1")


_SECRET: list[bytes] = [UNKEYED]
_MADE: dict[MixFor, Mix] = {}


def key_buckets(secret: bytes) -> None:
    """Set the secret, 16 random bytes, for all maps that get their first entry from now on.

    Raises ValueError for another length.
    """
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"the secret must have {SECRET_BYTES} bytes; this one has {len(secret)}")
    _SECRET[0] = secret
    _MADE.clear()


def keyed(kind: MixFor) -> Mix:
    """Return the function of this kind for the secret that is set now."""
    made = _MADE.get(kind)
    if made is None:
        made = _MADE[kind] = kind(_SECRET[0])
    return made
