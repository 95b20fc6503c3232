"""A jump's last step: fetched segments move into place once the manifest names their mark.

Rule: `incoming/install` is written when everything behind the mark is fetched, verified and
durable. The manifest's rename is the commit point; a start that finds the manifest at that mark
finishes the move, as often as it takes. Before that nothing of the ledger is touched.
"""

import struct
from typing import TYPE_CHECKING, NamedTuple

from ledger.chain import LogMark
from ledger.errors import LedgerError
from ledger.frame import CRC_BYTES, FORMAT, PREFIX, PREFIX_BYTES, finish_frame, take_frame
from ledger.gaps import Gap, change_gap
from ledger.pull import INCOMING_FOLDER
from ledger.segments import LOG_FOLDER, segment_bases, segment_name
from runtime.disk import Disk

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger as BoundLogger

MAGIC = b"QRTJ"
INSTALL_NAME = f"{INCOMING_FOLDER}/install"
LEDGER_INSTALLED = "ledger_installed"

_BODY = struct.Struct(">qq")


class Install(NamedTuple):
    """What is ready to be moved."""

    mark: LogMark
    first_base: int
    """Base offset of the first fetched segment."""
    history_end: int
    """Where the history that was here before ends (0: there was none)."""

    def encode(self) -> bytes:
        """Return the content of `incoming/install`."""
        body = _BODY.pack(self.first_base, self.history_end) + self.mark.encode()
        return finish_frame(
            PREFIX.pack(MAGIC, FORMAT, 0, PREFIX_BYTES + len(body) + CRC_BYTES) + body
        )

    @classmethod
    def decode(cls, data: bytes) -> "Install":
        """Read what `encode` wrote. Raises LedgerError."""
        body = take_frame(data, 0, MAGIC, 4096)[PREFIX_BYTES:-CRC_BYTES]
        if len(body) <= _BODY.size:
            raise LedgerError("incoming/install is too short")
        first_base, history_end = _BODY.unpack_from(body)
        return cls(LogMark.decode(body[_BODY.size :]), first_base, history_end)


def finish_install(disk: Disk, mark: LogMark, log: "BoundLogger") -> bool:
    """Move fetched segments into place if `mark` is what they reach to; tells whether it did."""
    try:
        install = Install.decode(disk.read(INSTALL_NAME))
    except (FileNotFoundError, LedgerError):
        return False  # not ready: whoever pulls goes on, or drops it
    if install.mark != mark:
        if install.mark.log_end <= mark.log_end:
            drop_incoming(disk)  # ordinary entries have overtaken it
        return False
    older = any(base < install.first_base for base in segment_bases(disk.list(LOG_FOLDER)))
    if older and 0 < install.history_end < install.first_base:
        change_gap(disk, None, Gap(install.history_end, install.first_base))
    names = [segment_name(base) for base in segment_bases(disk.list(INCOMING_FOLDER))]
    for name in names:
        disk.rename(f"{INCOMING_FOLDER}/{name}", f"{LOG_FOLDER}/{name}")
    disk.sync_folder(LOG_FOLDER)
    disk.sync_folder(INCOMING_FOLDER)
    disk.unlink(INSTALL_NAME)
    disk.sync_folder(INCOMING_FOLDER)
    log.info(LEDGER_INSTALLED, log_end=mark.log_end, segments=names)
    return True


def drop_incoming(disk: Disk) -> None:
    """Throw away what a jump has fetched; the note that it is ready goes first."""
    names = disk.list(INCOMING_FOLDER)
    ready = INSTALL_NAME.rpartition("/")[2]
    if ready in names:
        disk.unlink(INSTALL_NAME)
        disk.sync_folder(INCOMING_FOLDER)
    for name in names:
        if name != ready:
            disk.unlink(f"{INCOMING_FOLDER}/{name}")
    if names:
        disk.sync_folder(INCOMING_FOLDER)
