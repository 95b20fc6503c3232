"""Founds a node's part of a quorum on what was kept: from a backup, or from what survived.

Rule: the founded folder is what a catch-up leaves behind. Its journal holds the two entries of its
manifest, the manifest holds the owner's mark, and the formation names the new voters. All of them
have new directory ids, so nothing that an older quorum promised or remembers concerns this one.
"""

from collections.abc import Sequence

from structlog.typing import FilteringBoundLogger

from quorum.api import Voter
from quorum.journal.founding import found_journal
from quorum.journal.manifest import JournalManifest
from quorum.membership.formation import encode_formation
from quorum.terms import leap_from
from runtime.disk.interface import Disk

_NO_OP = b"\x01"
"""The core's command that does nothing."""
_FIRST, _SECOND = 1, 2


def founding_epoch(last_epoch: int) -> int:
    """Return the epoch in which a quorum is founded on a log that ends in `last_epoch`.

    The quorum before may have held elections that the log doesn't show. It would take twelve days
    of them, one a second, to reach this epoch.
    """
    return last_epoch + leap_from(last_epoch)


def found_node(
    disk: Disk,
    *,
    cluster_id: str,
    node_id: int,
    voters: Sequence[Voter],
    epoch: int,
    mark_data: bytes,
    log: FilteringBoundLogger,
) -> None:
    """Write journal and manifest of one of the voters into its folder. Blocks.

    `mark_data`: the owner's mark. What it vouches for must be durable before. Raises OSError;
    DamagedError if the folder has a journal already.
    """
    directory_id = next(v.directory_id for v in voters if v.node_id == node_id)
    manifest = JournalManifest(
        cluster_id=cluster_id,
        first=(_NO_OP, _FIRST, epoch),
        second=(_NO_OP, _SECOND, epoch),
        mark_data=mark_data,
        voters=tuple(sorted(voters, key=lambda voter: voter.node_id)),
        directory_id=directory_id,
    )
    pinned = {voter.node_id: voter.directory_id for voter in voters}
    found_journal(disk, node_id, manifest, encode_formation(cluster_id, pinned), log)
