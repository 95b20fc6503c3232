"""What can be wrong with a checkpoint."""

from metadata.codec import RecordDecodeError


class CheckpointError(Exception):
    """The base of all errors of a checkpoint store."""


class DamagedCheckpointError(CheckpointError):
    """A checkpoint has wrong bytes. It is never loaded, not even in part."""

    def __init__(self, name: str, position: int, reason: str) -> None:
        super().__init__(
            f"{name}, byte {position}: {reason}. Use an older checkpoint, or fetch this one again"
        )
        self.name = name
        self.position = position
        self.reason = reason


class CheckpointNotFoundError(CheckpointError):
    """This checkpoint is not here, or not any more. The caller must ask again which one to load."""


class PositionOutOfRangeError(CheckpointError):
    """A position after the end of the file."""


class ColumnsError(RecordDecodeError):
    """A block of topics is not the encoding of topics and partitions, or not at its place."""
