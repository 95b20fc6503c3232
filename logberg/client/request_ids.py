"""Request ids: a controller makes the change of an id once, however often the request comes."""

import time
from hashlib import sha256

from metadata.uuids import UUID7_RANDOM_BITS, parse_uuid, uuid7, uuid7_time_ms, uuid_text
from runtime.randomness import Random, from_system


def new_request_id(random: Random | None = None) -> str:
    """Return a new id, as a controller reads it."""
    bits = (random or from_system()).getrandbits(74)
    return uuid_text(uuid7(int(time.time() * 1000), bits))


def derived_request_id(request_id: str, part: str) -> str:
    """Return the id of one of several changes that a command with this request id makes.

    It has the same time and depends on nothing else, so the command can be repeated. Raises
    ValueError for a text that is no UUIDv7.
    """
    whole = parse_uuid(request_id)
    drawn = sha256(whole + part.encode()).digest()
    bits = int.from_bytes(drawn, "big") >> (256 - UUID7_RANDOM_BITS)
    return uuid_text(uuid7(uuid7_time_ms(whole), bits))
