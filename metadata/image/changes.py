"""The changes between two images, table by table, for publishers, `log diff` and tests.

Rule: a table costs time only when a caller asks for its changes. After a delta, its overlays hold
the changes. Between any two images, the maps are compared bucket by bucket; related images share
most buckets.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from metadata.buckets import KeyChange
from metadata.image.brokers import BrokerRegistration
from metadata.image.client_quotas import QuotaValues
from metadata.image.cluster import ControllerRegistration
from metadata.image.configs import ConfigResource, ConfigValues
from metadata.image.families import TABLES
from metadata.image.metadata_image import MetadataImage
from metadata.image.outcomes import Outcome
from metadata.image.partition import Partition
from metadata.image.quorum import EpochStart
from metadata.image.scram import CredentialKey
from metadata.image.table import ImageTable
from metadata.image.topics import Topic
from metadata.partition_key import PlainPartitionKey
from metadata.records import (
    AccessControlEntryRecord,
    DelegationTokenRecord,
    EntityKey,
    ProducerIdsRecord,
    Record,
    UserScramCredentialRecord,
)

if TYPE_CHECKING:
    from metadata.image.branch import Branch

_BY_NAME = {table.name: table for table in TABLES}


class ImageChanges:
    """The changes from `before` to `after`: for each table `KeyChange(key, before, after)`, sorted.

    In a `KeyChange`, `before` is None for an added entry, and `after` is None for a removed one.
    """

    def __init__(
        self, before: MetadataImage, after: MetadataImage, written: "Branch | None" = None
    ) -> None:
        """`written`: the branch whose overlays lead from `before` to `after`, if there is one."""
        self.before = before
        self.after = after
        self._written = written
        self._found: dict[str, tuple[KeyChange[Any, Any], ...]] = {}

    def of(self, name: str) -> tuple[KeyChange[Any, Any], ...]:
        """Return the changes of a table by its name in `families.TABLES`."""
        if name not in self._found:
            self._found[name] = self._find(_BY_NAME[name])
        return self._found[name]

    def _find(self, table: ImageTable) -> tuple[KeyChange[Any, Any], ...]:
        if self._written is None:
            changes: tuple[KeyChange[Any, Any], ...] = self.after.table(table).changes_since(
                self.before.table(table)
            )
            return changes
        overlay = self._written.overlay(table.family, table.map)
        return () if overlay is None else overlay.changes()

    def __bool__(self) -> bool:
        """Return whether any table changed."""
        return any(self.of(table.name) for table in TABLES)

    def __iter__(self) -> Iterator[tuple[str, KeyChange[Any, Any]]]:
        """Yield (table's name, change) for every change, in the order of a snapshot."""
        for table in TABLES:
            for change in self.of(table.name):
                yield table.name, change

    @property
    def brokers(self) -> tuple[KeyChange[int, BrokerRegistration], ...]:
        return self.of("brokers")

    @property
    def controllers(self) -> tuple[KeyChange[int, ControllerRegistration], ...]:
        return self.of("controllers")

    @property
    def topics(self) -> tuple[KeyChange[bytes, Topic], ...]:
        """A created topic has no `before`, a deleted one no `after`."""
        return self.of("topics")

    @property
    def partitions(self) -> tuple[KeyChange[PlainPartitionKey, Partition], ...]:
        return self.of("partitions")

    @property
    def configs(self) -> tuple[KeyChange[ConfigResource, ConfigValues], ...]:
        return self.of("configs")

    @property
    def client_quotas(self) -> tuple[KeyChange[EntityKey, QuotaValues], ...]:
        return self.of("client_quotas")

    @property
    def features(self) -> tuple[KeyChange[str, int], ...]:
        return self.of("features")

    @property
    def producer_ids(self) -> tuple[KeyChange[str, ProducerIdsRecord], ...]:
        return self.of("producer_ids")

    @property
    def acls(self) -> tuple[KeyChange[bytes, AccessControlEntryRecord], ...]:
        return self.of("acls")

    @property
    def scram(self) -> tuple[KeyChange[CredentialKey, UserScramCredentialRecord], ...]:
        return self.of("scram")

    @property
    def tokens(self) -> tuple[KeyChange[str, DelegationTokenRecord], ...]:
        return self.of("tokens")

    @property
    def quorum(self) -> tuple[KeyChange[str, Record], ...]:
        return self.of("quorum")

    @property
    def epochs(self) -> tuple[KeyChange[int, EpochStart], ...]:
        return self.of("epochs")

    @property
    def outcomes(self) -> tuple[KeyChange[bytes, Outcome], ...]:
        return self.of("outcomes")


def difference(before: MetadataImage, after: MetadataImage) -> ImageChanges:
    """Return the changes between two images, without those inside open transactions."""
    return ImageChanges(before, after)
