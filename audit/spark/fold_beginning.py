"""What the folds know before the first record: nothing, or the facts of a checkpoint.

Rule: a log that was cut is counted from its first checkpoint. Its records are facts of the offset
before the checkpoint's own, at the checkpoint's time, and no events.
"""

from typing import NamedTuple

import pyarrow as pa

from audit.findings.event_making import EventMaker
from audit.findings.events import AuditEvent
from audit.spark.arrow_values import from_ipc
from audit.spark.bronze import bronze_rows
from audit.spark.cluster_fold import ClusterCarried, ClusterFold
from audit.spark.partition_fold import PartitionFold
from audit.spark.partition_state import PartitionsCarried
from audit.spark.slices import COLUMNS, ROWS, messages
from audit.spark.state_checkpoint import as_batches
from snapshots.store import LoadedCheckpoint


class FoldBeginning(NamedTuple):
    """Where the folds begin, and with what."""

    offset: int
    horizon_ms: int
    parts: tuple[PartitionsCarried, ...]
    cluster: ClusterCarried
    events: bytes | None
    """What the maker of events remembers."""
    rights: tuple[AuditEvent, ...] = ()
    """Who holds rights already, for the watcher of findings."""


def beginning(checkpoint: LoadedCheckpoint | None, parts: int) -> FoldBeginning:
    """Return the beginning; `checkpoint` None: that of a log from offset 0."""
    folds = tuple(PartitionsCarried(part, parts) for part in range(parts))
    cluster = ClusterCarried()
    if checkpoint is None:
        return FoldBeginning(0, 0, folds, cluster, None)
    header = checkpoint.header
    fact, time_ms = header.offset - 1, header.timestamp_ms
    batches = as_batches(header, checkpoint.arrays())
    rows = pa.Table.from_batches(bronze_rows(batches, COLUMNS)).sort_by("offset")
    for message in messages(rows, parts):
        if message.kind == ROWS:
            PartitionFold(folds[message.part]).begin(from_ipc(message.content), fact, time_ms)
    records = list(checkpoint.records())
    ClusterFold(cluster).begin(records, fact, time_ms)
    maker = EventMaker(leaders=False)
    rights = tuple(fact for fact in maker.begin(records, time_ms) if fact.grantee)
    return FoldBeginning(header.offset, time_ms, folds, cluster, maker.carried(), rights)
