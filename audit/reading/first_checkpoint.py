"""Where a log that was cut is counted from, by either engine: its first checkpoint.

Rule: the first one at or behind the place where history begins, and not behind the end that is
asked for. No transaction reaches across a checkpoint, so what follows it is whole.
"""

from audit.places.replicas import NoLogError, Replica
from ledger.reader import LedgerReader
from snapshots.store import LoadedCheckpoint, finish_steps, list_checkpoints, load_steps


def first_checkpoint(replica: Replica, reader: LedgerReader, end: int) -> LoadedCheckpoint:
    """Load it. Raises NoLogError when there is none, CheckpointError, OSError."""
    start = reader.log_start
    usable = [each for each in list_checkpoints(replica.disk) if start <= each.offset <= end]
    if not usable:
        raise NoLogError(
            f"{replica.location}: history begins at offset {start}, and no checkpoint between "
            f"there and {end} is here to begin from; ask a controller that has the history."
        )
    return finish_steps(load_steps(replica.disk, reader.cluster_id, usable[0]))
