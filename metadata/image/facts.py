"""Facts of an image that no record says in full, as a snapshot writes them.

Rule: replay gets these facts from where a record stands (its offset, its batch's end, its
epoch), so a snapshot, whose records stand nowhere, must write them out. They are written as
ConfigRecords of a resource type that no user's config can have, so that every reader can decode
them; in a log they are refused.

Which facts: the offset a broker's controlled shutdown waits for, the start of each epoch, and the
largest request key that was evicted.
"""

from typing import Final, NamedTuple

from metadata.image.replay_error import ReplayError
from metadata.records import ConfigRecord

FACT_RESOURCE: Final = 127
"""`ConfigRecord.resource_type` of a fact; Kafka's own types are powers of two."""
SHUTDOWN: Final = "broker-shutdown-offset"
EPOCH: Final = "epoch-start"
FLOOR: Final = "request-floor"


class EpochFact(NamedTuple):
    """An epoch's number, where it began and who led it."""

    epoch: int
    start: int
    leader_id: int


def shutdown_fact(broker_id: int, shutdown_offset: int) -> ConfigRecord:
    """Say what a broker's controlled shutdown waits for."""
    return ConfigRecord(FACT_RESOURCE, SHUTDOWN, str(broker_id), str(shutdown_offset))


def epoch_fact(epoch: int, start: int, leader_id: int) -> ConfigRecord:
    """Say where an epoch began, and who led it."""
    return ConfigRecord(FACT_RESOURCE, EPOCH, str(epoch), f"{start} {leader_id}")


def floor_fact(key: bytes) -> ConfigRecord:
    """Say which request key was the largest evicted."""
    return ConfigRecord(FACT_RESOURCE, FLOOR, "", key.hex())


def parse_shutdown(fact: ConfigRecord, offset: int) -> tuple[int, int]:
    """Return (broker id, shutdown offset). Raises ReplayError."""
    try:
        return int(fact.name), int(fact.value or "")
    except ValueError as error:
        raise _unreadable(fact, offset) from error


def parse_epoch(fact: ConfigRecord, offset: int) -> EpochFact:
    """Raises ReplayError."""
    try:
        start, leader_id = (fact.value or "").split(" ")
        return EpochFact(int(fact.name), int(start), int(leader_id))
    except ValueError as error:
        raise _unreadable(fact, offset) from error


def parse_floor(fact: ConfigRecord, offset: int) -> bytes:
    """Return the key. Raises ReplayError."""
    try:
        return bytes.fromhex(fact.value or "")
    except ValueError as error:
        raise _unreadable(fact, offset) from error


def _unreadable(fact: ConfigRecord, offset: int) -> ReplayError:
    return ReplayError(offset, f"the snapshot says {fact.value!r} of {fact.resource_name}")
