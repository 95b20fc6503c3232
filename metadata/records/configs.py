"""Records about configuration (KIP-133, 226, 1000)."""

import re
from enum import IntEnum
from operator import eq
from typing import ClassVar, Final

from metadata.records.declaring import Columns, Condition, KnownNames, Privileged
from metadata.records.record import Codes, Record
from metadata.sealed_texts import SEALED_TEXT
from metadata.types import Int8


class ConfigResourceType(IntEnum):
    """Codes of `ConfigRecord.resource_type`."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


_KINDS: Final[dict[int, str]] = {
    ConfigResourceType.TOPIC: "topic",
    ConfigResourceType.BROKER: "broker",
    ConfigResourceType.BROKER_LOGGER: "broker-logger",
    ConfigResourceType.CLIENT_METRICS: "client-metrics",
    ConfigResourceType.GROUP: "group",
}
_SECRET: Final = re.compile(
    r"password|passphrase|secret|credential|jaas\.config|keystore\.key$|private\.key"
    r"|keystore\.certificate\.chain$|truststore\.certificates$",
    re.IGNORECASE,
)


def config_kind(resource_type: int) -> str:
    """Return the word for a type of resource, such as `topic`; its number if it has no word."""
    return _KINDS.get(resource_type) or str(resource_type)


class ConfigRecord(Record, frozen=True, tag=400):
    """Sets or deletes one config key of one resource (KIP-631)."""

    TYPE_ID: ClassVar[int] = 4
    VERSION: ClassVar[int] = 0
    CODES: ClassVar[Codes] = {"resource_type": ConfigResourceType}
    PRIVILEGED: ClassVar[Privileged | None] = Privileged(
        "unclean_election",
        (Condition("config_key", eq, "unclean.leader.election.enable"), Condition("config_value")),
    )
    COLUMNS: ClassVar[Columns] = {
        "resource_type": "resource_type",
        "config_key": "name",
        "config_value": "value",
        "name": "resource_name",
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("config", *_KINDS.values())

    resource_type: Int8
    """A `ConfigResourceType`."""
    resource_name: str
    """Empty, with BROKER: the default of all brokers."""
    name: str
    value: str | None
    """None: the key is deleted."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        kind, name = config_kind(self.resource_type), self.resource_name
        word = f"config:{kind}:{name}:{self.name}"
        return (word, f"{kind}:{name}") if name else (word,)

    def secret_fields(self) -> tuple[str, ...]:
        """The value is a secret if it is sealed, or if the key's name says so."""
        if self.value is None:
            return ()
        hides = self.value.startswith(SEALED_TEXT) or _SECRET.search(self.name)
        return ("value",) if hides else ()
