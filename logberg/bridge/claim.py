"""Makes this cluster the controller in ZooKeeper's eyes, as KIP-866 does it.

The claim raises `/controller_epoch`, whose version fences the old controller in every multi, and
puts a lasting `/controller` in the place of its ephemeral one. Rule: a node that belongs to another
cluster of controllers, with a newer or equal epoch, is never replaced.
"""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import msgspec

from logberg.importing.source_error import SourceError
from logberg.importing.zookeeper_source import KazooModules

CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
MIGRATION: Final = "/migration"
_FIRST_FREE: Final = 3_000
"""Controllers whose id a legacy broker has, appear in ZooKeeper under an id from here on."""


class Claimant(NamedTuple):
    """The active controller of this cluster."""

    node_id: int
    epoch: int
    """In which it leads."""


class Claim866(NamedTuple):
    """A claim that holds."""

    epoch: int
    """The controller epoch in ZooKeeper."""
    epoch_version: int
    """Of the node `/controller_epoch`."""
    claimant: Claimant


class _ControllerNode(msgspec.Struct, rename={"kraft_epoch": "kraftControllerEpoch"}):
    brokerid: int
    kraft_epoch: int = -1


class ControllerClaim:
    """Takes the controller's node, and gives it back."""

    def __init__(self, client: Any, kazoo: KazooModules, root: str) -> None:
        """`root`: what stands before each path."""
        self._client = client
        self._kazoo = kazoo
        self._root = root

    def take(self, claimant: Claimant, legacy: Callable[[int], bool]) -> Claim866:
        """Claim, also anew. `legacy` says whether a broker has an id. Raises SourceError."""
        number = claimant.node_id if not legacy(claimant.node_id) else _FIRST_FREE
        while legacy(number):
            number += 1
        claimant = claimant._replace(node_id=number)
        self._ensure(CONTROLLER_EPOCH, b"0")
        self._ensure(MIGRATION, migration_node(claimant, -1))
        epoch, stat = self._client.get(self._path(CONTROLLER_EPOCH))
        claimed = int(epoch) + 1
        request = self._client.transaction()
        request.set_data(self._path(CONTROLLER_EPOCH), b"%d" % claimed, stat.version)
        holder = self._holder(claimant)
        if holder is not None:
            request.delete(self._path(CONTROLLER), holder)
        node = {
            "version": 2,
            "brokerid": number,
            "timestamp": str(int(time.time() * 1_000)),
            "kraftControllerEpoch": claimant.epoch,
        }
        request.create(self._path(CONTROLLER), msgspec.json.encode(node))
        request.set_data(self._path(MIGRATION), migration_node(claimant, -1))
        failed = [each for each in request.commit() if isinstance(each, Exception)]
        if failed:
            raise SourceError(
                "another controller claimed ZooKeeper at the same moment: start the command again"
            )
        return Claim866(claimed, stat.version + 1, claimant)

    def note(self, claim: Claim866, offset: int) -> None:
        """Write up to which offset ZooKeeper has everything, whatever `/migration` says.

        What was written there before this, this cluster has followed.
        """
        self._client.set(self._path(MIGRATION), migration_node(claim.claimant, offset))

    def held(self, epoch: int) -> Claim866:
        """Return the claim of a controller epoch. Raises SourceError if it is lost."""
        found, stat = self._client.get(self._path(CONTROLLER_EPOCH))
        node = self._controller()
        if int(found) != epoch or node is None:
            raise SourceError(
                f"{CONTROLLER_EPOCH} is {int(found)} at version {stat.version}, and this cluster "
                f"claimed epoch {epoch}: another controller leads there. Nothing is overwritten. "
                "Stop it, or give the bridge up with --roll-back"
            )
        return Claim866(epoch, stat.version, Claimant(node.brokerid, node.kraft_epoch))

    def release(self, claim: Claim866) -> None:
        """Delete the claim and `/migration`, so that ZooKeeper leads alone. Raises SourceError."""
        request = self._client.transaction()
        request.check(self._path(CONTROLLER_EPOCH), claim.epoch_version)
        for path in (CONTROLLER, MIGRATION):
            if self._client.exists(self._path(path)) is not None:
                request.delete(self._path(path))
        failed = [each for each in request.commit() if isinstance(each, Exception)]
        if failed:
            raise SourceError(f"{CONTROLLER_EPOCH} has changed: another controller leads there")

    def _holder(self, claimant: Claimant) -> int | None:
        """Return the version of `/controller`; None: nobody has it. Raises SourceError."""
        found = self._controller()
        if found is None:
            return None
        if found.kraft_epoch >= claimant.epoch and found.brokerid != claimant.node_id:
            raise SourceError(
                f"{CONTROLLER} belongs to controller {found.brokerid} of a quorum at epoch "
                f"{found.kraft_epoch}; this one is at {claimant.epoch}"
            )
        return int(self._client.exists(self._path(CONTROLLER)).version)

    def _controller(self) -> _ControllerNode | None:
        try:
            data, _ = self._client.get(self._path(CONTROLLER))
        except self._kazoo.exceptions.NoNodeError:
            return None
        try:
            return msgspec.json.decode(data, type=_ControllerNode)
        except msgspec.DecodeError as error:
            raise SourceError(f"{CONTROLLER}: {error}") from None

    def _ensure(self, path: str, data: bytes) -> None:
        try:
            self._client.create(self._path(path), data)
        except self._kazoo.exceptions.NodeExistsError:
            return

    def _path(self, path: str) -> str:
        return self._root + path


def migration_node(claimant: Claimant, offset: int) -> bytes:
    """Return the data of `/migration`; `offset`: up to which everything is written."""
    return msgspec.json.encode(
        {
            "version": 0,
            "kraft_controller_id": claimant.node_id,
            "kraft_controller_epoch": claimant.epoch,
            "kraft_metadata_offset": offset,
            "kraft_metadata_epoch": claimant.epoch,
        }
    )
