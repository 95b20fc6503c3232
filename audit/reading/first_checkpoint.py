"""The checkpoint from which both engines count a log that was cut.

Rule: it is the first one at or after the beginning of the history, and not after the requested end.
No transaction reaches across a checkpoint, so everything after it is whole.
"""

from audit.places.replicas import NoLogError, Replica
from audit.reading.readable_log import ReadableLog
from metadata.steps import finished
from snapshots.store import LoadedCheckpoint, list_checkpoints, load_steps


def first_checkpoint(replica: Replica, reader: ReadableLog, end: int) -> LoadedCheckpoint:
    """Load the checkpoint. Raises NoLogError if there is none, CheckpointError, OSError."""
    start = reader.log_start
    usable = [each for each in list_checkpoints(replica.disk) if start <= each.offset <= end]
    if not usable:
        raise NoLogError(
            f"{replica.location}: history begins at offset {start}, and there is no checkpoint "
            f"between there and {end} to begin from. Use a controller that has the history."
        )
    return finished(load_steps(replica.disk, reader.cluster_id, usable[0]))
