"""Records about controller processes (KIP-919, 1312)."""

from typing import ClassVar

from metadata.records.brokers import SecurityProtocol
from metadata.records.declaring import Columns, KnownNames, Need, metadata_level
from metadata.records.record import Codes, Part, Record
from metadata.types import BrokerId, Int16, UInt16, Uuid


class ControllerEndpoint(Part, frozen=True):
    """An address at which a controller listens; names are unique within a registration."""

    CODES: ClassVar[Codes] = {"security_protocol": SecurityProtocol}

    name: str
    host: str
    port: UInt16
    security_protocol: Int16
    """A `SecurityProtocol`."""


class ControllerFeature(Part, frozen=True):
    """The levels of one feature that a controller supports, both ends included."""

    name: str
    min_supported_version: Int16
    max_supported_version: Int16


class RegisterControllerRecord(Record, frozen=True, tag=2700):
    """Registers a controller process with its addresses and feature levels (KIP-919)."""

    TYPE_ID: ClassVar[int] = 27
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(15)
    COLUMNS: ClassVar[Columns] = {"name": lambda record: str(record.controller_id)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("controller",)

    controller_id: BrokerId
    incarnation_id: Uuid
    zk_migration_ready: bool
    end_points: tuple[ControllerEndpoint, ...]
    features: tuple[ControllerFeature, ...]

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"controller:{self.controller_id}",)


class UnregisterControllerRecord(Record, frozen=True, tag=2900):
    """Removes a controller's registration (KIP-1312)."""

    TYPE_ID: ClassVar[int] = 29
    VERSION: ClassVar[int] = 0
    NEEDS: ClassVar[tuple[Need, ...]] = metadata_level(33)
    COLUMNS: ClassVar[Columns] = {"name": lambda record: str(record.controller_id)}
    SUBJECT_KINDS: ClassVar[tuple[str, ...]] = ("controller",)

    controller_id: BrokerId

    def subjects(self, names: KnownNames) -> tuple[str, ...]:
        return (f"controller:{self.controller_id}",)
