"""The agent's image and its place in the log.

Rule: batches are applied in order, each onto the one before. A batch whose base offset is not
our end, or whose previous hash is not our head, is not applied at all: history has two versions,
and the agent keeps the one it has seen until someone says which is right. An image that is
loaded replaces; it never merges.

Batches of an open transaction are held in the image's branch: they are fetched (and count in
`fetched_offset`), while readers and publishers see the image before it until its end.
"""

from collections.abc import Sequence

import structlog

from broker_agent.publishers import Manifest, Publisher
from ledger.batch import Batch, parse
from ledger.chain import first_hash
from ledger.errors import LedgerError
from metadata.codec import decode_records
from metadata.image import EMPTY_IMAGE, MetadataDelta, MetadataImage
from metadata.messages.fetch import StateAt
from metadata.records import RequestOutcomeRecord

HASH_OFFSETS_STEP = 1024
_HASHES_KEPT = 64


class HistoryDiffersError(Exception):
    """A controller sent a history that is not the one we have seen."""


class MetadataView:
    """An image that follows the log."""

    def __init__(
        self,
        cluster_id: str,
        publishers: tuple[Publisher, ...],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._first_hash = first_hash(cluster_id)
        self._publishers = publishers
        self._log = log
        self._image = EMPTY_IMAGE
        self._published = EMPTY_IMAGE
        self.head = self._first_hash
        self.differs = False
        self.publisher_failures = 0
        self._hashes: dict[int, tuple[bytes, bytes]] = {}
