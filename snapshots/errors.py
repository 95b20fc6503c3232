"""What can be wrong with a checkpoint."""


class CheckpointError(Exception):
    """Anything a checkpoint store refuses."""


class DamagedCheckpointError(CheckpointError):
    """Bytes of a checkpoint are wrong; never loaded, not even in part."""

    def __init__(self, name: str, position: int, reason: str) -> None:
        super().__init__(
            f"{name}, byte {position}: {reason}. Use an older checkpoint, or fetch this one again"
        )
        self.name = name
        self.position = position
        self.reason = reason


class CheckpointNotFoundError(CheckpointError):
    """No such checkpoint is here (any more): ask again which one to load."""


class PositionOutOfRangeError(CheckpointError):
    """A position behind the end of the file."""
