"""Uuids: 16 raw bytes in records, 22 characters of url-safe base64 in text, as in Kafka.

Rule: nothing here draws random numbers or reads a clock; the caller passes both in.
"""

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from metadata.errors import ErrorCode, LogbergError

UUID_BYTES: Final = 16
UUID_CHARACTERS: Final = 22

_VERSION_SHIFT = 76
_VARIANT_SHIFT = 62
_VARIANT = 0b10
_UUID7_TIME_BITS = 48
UUID7_RANDOM_BITS: Final = 74
"""The random bits of a UUIDv7. The others are time, version and variant."""


class UuidError(ValueError):
    """The text is not a uuid."""


@lru_cache(maxsize=16_384)
def uuid_text(uuid: bytes) -> str:
    """Return a uuid of 16 bytes as 22 characters. Raises ValueError for another length.

    Remembers the last ones: the same topics and directories stand in many answers.
    """
    if len(uuid) != UUID_BYTES:
        raise ValueError(f"a uuid has 16 bytes, not {len(uuid)}")
    return urlsafe_b64encode(uuid)[:UUID_CHARACTERS].decode("ascii")


@lru_cache(maxsize=16_384)
def parse_uuid(text: str) -> bytes:
    """Return the 16 bytes of a uuid in the form of `uuid_text`. Raises UuidError for any other.

    Remembers the last ones, since a broker names its process in each heartbeat.
    """
    if len(text) == UUID_CHARACTERS:
        try:
            uuid = urlsafe_b64decode(text + "==")
        except ValueError:
            uuid = b""
        if len(uuid) == UUID_BYTES and uuid_text(uuid) == text:
            return uuid
    raise UuidError(
        f"{text[:64]!r} is not a uuid: expected 22 characters of url-safe base64, "
        "such as 'AAAAAAAAQACAAAAAAAAAAA'"
    )


def parse_uuid_of(field: str, text: str) -> bytes:
    """Parse a uuid in a request. Raises LogbergError INVALID_REQUEST, which names the field."""
    try:
        return parse_uuid(text)
    except UuidError as error:
        raise LogbergError(
            ErrorCode.INVALID_REQUEST, f"{field}: {error}", {"field": field}
        ) from None


def uuid4_from(random_bits: int) -> bytes:
    """Return a version 4 uuid (RFC 9562) of 122 random bits, such as `getrandbits(122)`."""
    if random_bits >> 122 or random_bits < 0:
        raise ValueError("uuid4_from takes 122 bits")
    high, middle, low = random_bits >> 74, random_bits >> 62 & 0xFFF, random_bits & (1 << 62) - 1
    return _assembled(high, 4, middle, low)


def new_cluster_id(draw: Callable[[], int]) -> str:
    """Return a cluster's id; `draw` gives 122 random bits each time.

    It never begins with a dash, as Kafka's ids do not: `kafka-storage format -t` would take it for
    another option.
    """
    while (text := uuid_text(uuid4_from(draw()))).startswith("-"):
        pass
    return text


def uuid7(time_ms: int, random_bits: int) -> bytes:
    """Return a version 7 uuid (RFC 9562) of a time in ms since 1970 and 74 random bits.

    Such uuids sort by time. Raises ValueError for a time or bits out of range.
    """
    if time_ms >> _UUID7_TIME_BITS or time_ms < 0:
        raise ValueError(f"a UUIDv7 can't hold the time {time_ms} ms")
    if random_bits >> UUID7_RANDOM_BITS or random_bits < 0:
        raise ValueError("uuid7 takes 74 bits")
    return _assembled(time_ms, 7, random_bits >> 62, random_bits & (1 << 62) - 1)


def uuid_version(uuid: bytes) -> int:
    """Return the version of an RFC 9562 uuid; 0 for a uuid of another variant."""
    return uuid[6] >> 4 if uuid[8] >> 6 == _VARIANT else 0


def uuid7_time_ms(uuid: bytes) -> int:
    """Return the time of a UUIDv7 in ms since 1970. Raises ValueError for another version."""
    if uuid_version(uuid) != 7:
        raise ValueError(f"{uuid_text(uuid)} is not a UUIDv7")
    return int.from_bytes(uuid[:6], "big")


def _assembled(high48: int, version: int, middle12: int, low62: int) -> bytes:
    number = high48 << 80 | version << _VERSION_SHIFT | middle12 << 64
    return (number | _VARIANT << _VARIANT_SHIFT | low62).to_bytes(UUID_BYTES, "big")
