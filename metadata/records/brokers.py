"""Records about brokers: who is registered, fenced or leaving (KIP-631, 841, 858, 1066)."""

from enum import IntEnum
from typing import ClassVar

from metadata.records.record import Part, Record
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
    """Where a broker listens; names are unique within a registration."""

    name: str
    host: str
    port: UInt16
    security_protocol: Int16


class BrokerFeature(Part, frozen=True):
    """The levels of one feature that a broker can work with, both ends included."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


class RegisterBrokerRecord(Record, frozen=True, tag=4):
    """A broker process is known to the cluster, or has amended its registration (KIP-631)."""

    TYPE_ID: ClassVar[int] = 0
    VERSION: ClassVar[int] = 4

    broker_id: BrokerId
    incarnation_id: Uuid
    broker_epoch: Int64
    """The offset at which this record was to be written, for a new incarnation."""
    end_points: tuple[BrokerEndpoint, ...]
    features: tuple[BrokerFeature, ...]
    rack: str | None
    fenced: bool = True
    in_controlled_shutdown: bool = False
    log_dirs: tuple[Uuid, ...] = ()
    is_migrating_zk_broker: bool = False
    cordoned_log_dirs: tuple[Uuid, ...] | None = None


class UnregisterBrokerRecord(Record, frozen=True, tag=100):
    """A broker is forgotten; names the epoch that it had (KIP-631)."""

    TYPE_ID: ClassVar[int] = 1
    VERSION: ClassVar[int] = 0

    broker_id: BrokerId
    broker_epoch: Int64


class FenceBrokerRecord(Record, frozen=True, tag=700):
    """A broker is fenced, as logs before metadata.version 3.3-IV2 say it (KIP-631)."""

    TYPE_ID: ClassVar[int] = 7
    VERSION: ClassVar[int] = 0

    id: BrokerId
    epoch: Int64


class UnfenceBrokerRecord(Record, frozen=True, tag=800):
    """A broker is unfenced, as logs before metadata.version 3.3-IV2 say it (KIP-631)."""

    TYPE_ID: ClassVar[int] = 8
    VERSION: ClassVar[int] = 0

    id: BrokerId
    epoch: Int64


class BrokerRegistrationChangeRecord(Record, frozen=True, tag=1703):
    """Flags or log directories of a registration change (KIP-841, 858, 1066)."""

    TYPE_ID: ClassVar[int] = 17
    VERSION: ClassVar[int] = 3

    broker_id: BrokerId
    broker_epoch: Int64
    fenced: Int8 = 0
    """A `FencingChange`."""
    in_controlled_shutdown: Int8 = 0
    """A `ControlledShutdownChange`."""
    log_dirs: tuple[Uuid, ...] = ()
    """The directories that work; empty: untouched."""
    cordoned_log_dirs: tuple[Uuid, ...] | None = None
    """None: untouched; empty: none is cordoned any more."""
