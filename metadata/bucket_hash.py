"""Which bucket of a map a key lies in: hashes that are keyed in each process.

Rule: whoever chooses keys (names of topics, request ids, broker ids) must not be able to choose
buckets, or all keys lie in one, and each change copies it. So every function here mixes in a secret
of the process, which comes from the injected randomness (`key_buckets`). Nothing that leaves a
process depends on it: maps are iterated sorted, and the state hash is a sum.

For text and bytes it is Python's own hash (SipHash) of the secret and the key together. It stays
keyed where PYTHONHASHSEED is fixed: the secret stands first, so who does not know it does not know
the state that SipHash has when the key comes. It takes as long as crc32 does. For numbers it is a
multiplication by a secret odd number, of which the middle bits count.

A map takes the secret that holds when its first entry comes, and its later versions keep it, so a
process may set it at any time.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

K = TypeVar("K")

Mix = Callable[[Any], int]
"""From a key to a number; its lowest bits choose the bucket."""
MixFor = Callable[[bytes], Mix]
"""From a secret to such a function: one for each kind of key."""

SECRET_BYTES: Final = 16
UNKEYED: Final = b"quorate, unkeyed"
"""Holds where nobody has set another: in tests, and in tools that read files of their own."""


def mix_bytes(secret: bytes) -> Mix:
    """For uuids and other bytes."""
    return lambda key: hash(secret + key)


def mix_text(secret: bytes) -> Mix:
    """For names."""
    before = _as_text(secret)
    return lambda key: hash(before + key)


def mix_int(secret: bytes) -> Mix:
    """For ids of 32 bits, which may come in steps of any size."""
    factor = int.from_bytes(secret[:8], "big") | 1
    return lambda key: key * factor >> 32


def mix_partition(secret: bytes) -> Mix:
    """For partitions: neighbours lie in neighbouring buckets, topics anywhere."""
    return lambda key: hash(secret + key[0]) + key[1]


def mix_typed_name(secret: bytes) -> Mix:
    """For (code, name), such as a config resource."""
    before = _as_text(secret)
    return lambda key: hash(before + key[1]) + key[0]


def mix_name_and_code(secret: bytes) -> Mix:
    """For (name, code), such as a SCRAM credential."""
    before = _as_text(secret)
    return lambda key: hash(before + key[0]) + key[1]


def mix_entity(secret: bytes) -> Mix:
    """For (kind, names) in a row, such as the entity of a client quota."""
    before = _as_text(secret)
    return lambda key: hash(
        before + "\0".join(part for kind, name in key for part in (kind, *name))
    )


def mix_row(secret: bytes) -> Mix:
    """For rows of names and codes, such as what an access control entry says."""
    before = _as_text(secret)
    return lambda key: hash(before + "\0".join(map(str, key)))


def _as_text(secret: bytes) -> str:
    """The same as 16 characters; few enough kinds of them that joining stays cheap."""
    return secret.decode("latin-1")


_SECRET: list[bytes] = [UNKEYED]
_MADE: dict[MixFor, Mix] = {}


def key_buckets(secret: bytes) -> None:
    """Take a secret of 16 random bytes for maps that get their first entry from now on."""
    if len(secret) != SECRET_BYTES:
        raise ValueError(f"a secret of buckets has {SECRET_BYTES} bytes, not {len(secret)}")
    _SECRET[0] = secret
    _MADE.clear()


def keyed(kind: MixFor) -> Mix:
    """Return the function of this kind for the secret that holds now."""
    made = _MADE.get(kind)
    if made is None:
        made = _MADE[kind] = kind(_SECRET[0])
    return made
