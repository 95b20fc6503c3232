"""The error that replay raises."""


class ReplayError(Exception):
    """A committed record can't be replayed: the log or this software is wrong. The node stops.

    Replay never raises it for a record that a controller of this version wrote. It raises instead
    of guessing what a record means.
    """

    def __init__(self, offset: int, sentence: str) -> None:
        super().__init__(f"the record at offset {offset} can't be replayed: {sentence}")
        self.offset = offset
