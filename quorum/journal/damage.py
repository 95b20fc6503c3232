"""What can be wrong with a node's files, and how it is described.

Rule: a torn tail is cut and reported. Damage is reported and keeps the node from voting. Whatever
prevents a start is an error that names the file and says what to do.
"""

from typing import NamedTuple


class DamagedError(Exception):
    """A damaged file prevents the start. The message names the file and says what to do."""


class WrongFolderError(Exception):
    """The folder belongs to another node or cluster. The message names the owner."""


class JournalDamage(NamedTuple):
    """Bytes that were durable have changed.

    Acknowledged entries or a vote may be lost, so the node must not vote until it has caught up.
    """

    file: str
    offset: int
    what: str

    def __str__(self) -> str:
        return f"{self.file} is damaged at byte {self.offset}: {self.what}"


class TornTail(NamedTuple):
    """Incomplete bytes that a crash left behind everything known to be durable. They were cut."""

    file: str
    offset: int
    bytes_cut: int
    what: str

    def __str__(self) -> str:
        cut = f"{self.bytes_cut} bytes of a torn tail cut at byte {self.offset}"
        return f"{self.file}: {cut}: {self.what}"
