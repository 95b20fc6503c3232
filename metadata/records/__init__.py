"""Every record of the metadata log: Kafka's by Kafka's names and ids, and ours beside them.

Rule: a record is a fact, and its class says all that is known of it without an image: fields, the
level that it needs, what it is about, whether it is privileged. What a record does to an image is
written once, in `metadata.image`.
"""

# ruff: noqa: F403 - a record is declared in its module, and nothing has to be listed here

from operator import attrgetter
from typing import Final

from metadata.records.brokers import *
from metadata.records.configs import *
from metadata.records.control import *
from metadata.records.controllers import *
from metadata.records.features import *
from metadata.records.outcomes import *
from metadata.records.producer_ids import *
from metadata.records.quotas import *
from metadata.records.record import VERSIONS_PER_TYPE as VERSIONS_PER_TYPE
from metadata.records.record import Part as Part
from metadata.records.record import Record as Record
from metadata.records.security import *
from metadata.records.snapshot_only import *
from metadata.records.topics import *
from metadata.records.transactions import *

RECORD_CLASSES: Final[tuple[type[Record], ...]] = tuple(
    sorted(Record.__subclasses__(), key=attrgetter("TYPE_ID", "VERSION"))
)
"""Every record class, by type id and version."""

REGISTRY: Final[dict[tuple[int, int], type[Record]]] = {
    (cls.TYPE_ID, cls.VERSION): cls for cls in RECORD_CLASSES
}
"""The class for a type id and version."""

SNAPSHOT_ONLY: Final[tuple[type[Record], ...]] = tuple(
    cls for cls in RECORD_CLASSES if cls.SNAPSHOT_ONLY
)
"""What stands in snapshots only; in a log it is refused."""
