"""The one error of replay."""


class ReplayError(Exception):
    """A committed record can't be applied: the log, or this software, is wrong. The node stops.

    Never raised for what a controller of this version writes; replay must not guess.
    """

    def __init__(self, offset: int, sentence: str) -> None:
        super().__init__(f"record at offset {offset} can't be replayed: {sentence}")
        self.offset = offset
