"""Records about configuration (KIP-133, 226, 1000)."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.record import Record
from metadata.types import Int8


class ConfigResourceType(IntEnum):
    """Codes of `ConfigRecord.resource_type`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigRecord(Record, frozen=True, tag=400):
    """One config key of one resource gets a value or loses it (KIP-631)."""

    TYPE_ID: ClassVar[int] = 4
    VERSION: ClassVar[int] = 0

    resource_type: Int8
    """A `ConfigResourceType`."""
    resource_name: str
    """Empty with BROKER: the default of all brokers."""
    name: str
    value: str | None
    """None: the key is deleted."""
