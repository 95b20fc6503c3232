"""Records about brokers: registration, fencing, controlled shutdown (KIP-631, 841, 858, 1066)."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.declaring import Columns, KnownNames, Need, metadata_level
from metadata.records.record import Codes, Part, Record
from metadata.types import BrokerId, Int8, Int16, Int64, UInt16, Uuid


class SecurityProtocol(IntEnum):
    """Codes of `BrokerEndpoint.security_protocol`."""

    PLAINTEXT = 0
    SSL = 1
    SASL_PLAINTEXT = 2
    SASL_SSL = 3


class FencingChange(IntEnum):
    """Codes of `BrokerRegistrationChangeRecord.fenced`."""

    UNFENCE = -1
    NONE = 0
    FENCE = 1


class ControlledShutdownChange(IntEnum):
    """Codes of `BrokerRegistrationChangeRecord.in_controlled_shutdown`.

    Only a new incarnation clears the flag.
    """

    NONE = 0
    IN_CONTROLLED_SHUTDOWN = 1


class BrokerEndpoint(Part, frozen=True):
    """An address at which a broker listens; names are unique within a registration."""

    CODES: ClassVar[Codes] = {"security_protocol": SecurityProtocol}

    name: str
    host: str
    port: UInt16
    security_protocol: Int16


class BrokerFeature(Part, frozen=True):
    """The levels of one feature that a broker supports, both ends included."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


class RegisterBrokerRecord(Record, frozen=True, tag=4):
    """Registers a broker process, or amends its registration (KIP-631)."""

    TYPE_ID: ClassVar[int] = 0
    VERSION: ClassVar[int] = 4
    NEEDS: ClassVar[tuple[Need, ...]] = (
        *metadata_level(17, "log_dirs", default=()),
        *metadata_level(30, "cordoned_log_dirs"),
    )
    COLUMNS: ClassVar[Columns] = {
        "broker_id": "broker_id",
        "broker_epoch": "broker_epoch",
        "fenced": lambda record: FencingChange.FENCE if record.fenced else FencingChange.UNFENCE,
        "in_controlled_shutdown": lambda record: int(record.in_controlled_shutdown),
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    broker_id: BrokerId
    incarnation_id: Uuid
    broker_epoch: Int64
    """For a new incarnation: the offset of this record."""
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    is_migrating_zk_broker: bool = False
    cordoned_log_dirs: tuple[Uuid, ...] | None = None

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.broker_id}",)


class UnregisterBrokerRecord(Record, frozen=True, tag=100):
    """Removes a broker's registration, which has this broker epoch (KIP-631)."""

    TYPE_ID: ClassVar[int] = 1
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {"broker_id": "broker_id", "broker_epoch": "broker_epoch"}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    broker_id: BrokerId
    broker_epoch: Int64

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.broker_id}",)


class FenceBrokerRecord(Record, frozen=True, tag=700):
    """Fences a broker. Only logs below metadata.version 3.3-IV2 hold it (KIP-631)."""

    TYPE_ID: ClassVar[int] = 7
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {
        "broker_id": "id",
        "broker_epoch": "epoch",
        "fenced": lambda _record: 1,
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    id: BrokerId
    epoch: Int64

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.id}",)


class UnfenceBrokerRecord(Record, frozen=True, tag=800):
    """Unfences a broker. Only logs below metadata.version 3.3-IV2 hold it (KIP-631)."""

    TYPE_ID: ClassVar[int] = 8
    VERSION: ClassVar[int] = 0
    COLUMNS: ClassVar[Columns] = {
        "broker_id": "id",
        "broker_epoch": "epoch",
        "fenced": lambda _record: -1,
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    id: BrokerId
    epoch: Int64

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.id}",)


class BrokerRegistrationChangeRecord(Record, frozen=True, tag=1703):
    """Changes the flags or the log directories of a registration (KIP-841, 858, 1066)."""

    TYPE_ID: ClassVar[int] = 17
    VERSION: ClassVar[int] = 3
    CODES: ClassVar[Codes] = {
        "fenced": FencingChange,
        "in_controlled_shutdown": ControlledShutdownChange,
    }
    NEEDS: ClassVar[tuple[Need, ...]] = (
        *metadata_level(17, "log_dirs", default=()),
        *metadata_level(30, "cordoned_log_dirs"),
    )
    COLUMNS: ClassVar[Columns] = {
        "broker_id": "broker_id",
        "broker_epoch": "broker_epoch",
        "fenced": "fenced",
        "in_controlled_shutdown": "in_controlled_shutdown",
    }
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("broker",)

    broker_id: BrokerId
    broker_epoch: Int64
    fenced: Int8 = 0
    """A `FencingChange`."""
    in_controlled_shutdown: Int8 = 0
    """A `ControlledShutdownChange`."""
    log_dirs: tuple[Uuid, ...] = ()
    """The directories that work; empty: unchanged."""
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    """None: unchanged; empty: no directory is cordoned any more."""

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"broker:{self.broker_id}",)
