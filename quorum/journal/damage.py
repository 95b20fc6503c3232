"""What can be wrong with a node's files, and the words for it.

Rule: a torn tail is cut and told; damage is told and keeps the node from voting; what leaves
no way to go on is an error that names the file and says what to do.
"""

from typing import NamedTuple


class DamagedError(Exception):
    """A file is damaged so that the node can't go on; the message says which, and what to do."""


class WrongFolderError(Exception):
    """The folder belongs to another node or another cluster; the message says whose it is."""


class JournalDamage(NamedTuple):
    """Bytes that were durable once and are not what they were.

    Acknowledged entries or a vote may be lost: the node must not vote until it has caught up.
    """

    file: str
    offset: int
    what: str

    def __str__(self) -> str:
        return f"{self.file} is damaged at byte {self.offset}: {self.what}"


class TornTail(NamedTuple):
    """What a crash left of bytes that were never known to be durable; it was cut."""

    file: str
    offset: int
    bytes_cut: int
    what: str

    def __str__(self) -> str:
        cut = f"{self.bytes_cut} bytes of a torn tail cut at byte {self.offset}"
        return f"{self.file}: {cut}: {self.what}"
