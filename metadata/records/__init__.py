"""All records of the metadata log: Kafka's, with Kafka's names and ids, and our own.

Rule: a record is a fact. Its class declares everything that needs no image: its fields, the feature
level that it needs, its subjects, whether it is privileged. `metadata.image` holds what a record
does to an image.
"""

# ruff: noqa: F403 - a record is declared in its module only, and not listed here again

from operator import attrgetter
from typing import Final

from metadata.records.attempts import *
from metadata.records.bridge import *
from metadata.records.brokers import *
from metadata.records.configs import *
from metadata.records.control import *
from metadata.records.controllers import *
from metadata.records.coordination import *
from metadata.records.credentials import *
from metadata.records.erasure import *
from metadata.records.features import *
from metadata.records.heads import *
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
"""All record classes, sorted by type id and version."""

REGISTRY: Final[dict[tuple[int, int], type[Record]]] = {
    (cls.TYPE_ID, cls.VERSION): cls for cls in RECORD_CLASSES
}
"""The class for a type id and version."""

SNAPSHOT_ONLY: Final[tuple[type[Record], ...]] = tuple(
    cls for cls in RECORD_CLASSES if cls.SNAPSHOT_ONLY
)
"""The records that are allowed only in snapshots. Replay refuses them in a log."""
