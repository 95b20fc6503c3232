"""Request ids: a controller makes the change of an id once, however often the request comes."""

import time

from metadata.uuids import uuid7, uuid_text
from runtime.randomness import Random, from_system


def new_request_id(random: Random | None = None) -> str:
    """Return a new id, as a controller reads it."""
    bits = (random or from_system()).getrandbits(74)
    return uuid_text(uuid7(int(time.time() * 1000), bits))
