"""Writes what this cluster says back into Kafka's nodes, and stops when somebody else writes there.

Each batch of changes is one multi: it checks the version of `/controller_epoch`, applies the
changes, each on the version that was read, and sets `/migration` on its version. So nothing is
written under somebody else's claim, and nothing of a foreign writer is overwritten (KIP-866).

After each batch the tree is read again. A node of ours that has changed by another zxid than the
batch's, is a foreign write.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from logberg.bridge.claim import CONTROLLER, CONTROLLER_EPOCH, MIGRATION, Claim866, migration_node
from logberg.bridge.client_nodes import Opened, write_clients
from logberg.bridge.live_tree import LiveTree
from logberg.bridge.node_changes import NodeChange, NodeChanges, NodeDeed, Notice
from logberg.bridge.source_state import source_state
from logberg.bridge.topic_nodes import write_topics
from logberg.importing.source_error import SourceError
from logberg.importing.znodes import Znode, ZnodeTree
from logberg.importing.zookeeper_source import KazooModules
from metadata.image import MetadataImage

_OURS: Final = (
    "/admin/delete_topics",
    "/brokers/topics",
    "/config/brokers",
    "/config/clients",
    "/config/ips",
    "/config/topics",
    "/config/users",
    CONTROLLER,
    CONTROLLER_EPOCH,
    "/delegation_token/tokens",
    "/kafka-acl",
    "/kafka-acl-extended",
    "/latest_producer_id_block",
    MIGRATION,
)
"""What only this cluster writes after the claim: these nodes and all below them."""
_PER_MULTI: Final = 100


class ForeignWriteError(SourceError):
    """Somebody else has written what this cluster leads."""


def differences(
    image: MetadataImage, tree: ZnodeTree, zxid: int, claim: Claim866, opened: Opened
) -> NodeChanges:
    """Return the changes that would make a tree say what an image says. Raises SourceError."""
    changes = NodeChanges(tree)
    state = source_state(tree, zxid)
    write_topics(image, state, changes, claim.epoch)
    write_clients(image, state, changes, opened)
    return changes


class WriteBack:
    """Keeps Kafka's nodes equal to this cluster, as long as the claim holds."""

    def __init__(
        self, client: Any, kazoo: KazooModules, root: str, live: LiveTree, claim: Claim866
    ) -> None:
        self._client = client
        self._kazoo = kazoo
        self._root = root
        self._live = live
        self._claim = claim
        self._tree, self.zxid = live.settled()
        migration = self._tree.get(MIGRATION)
        if migration is None:
            raise SourceError(f"{MIGRATION} is gone: somebody has ended the claim")
        for node in self._tree:
            # Every write of ours sets `/migration` too, in the same change or a later one.
            if _is_ours(node.path) and node.mzxid > migration.mzxid:
                raise _foreign(node.path, None, node)

    @property
    def tree(self) -> ZnodeTree:
        """The tree as it was read last."""
        return self._tree

    def look(self) -> ZnodeTree:
        """Read what has changed. Raises ForeignWriteError, SourceError."""
        self._settle(frozenset(), own=False)
        return self._tree

    def bring(self, image: MetadataImage, opened: Opened) -> int:
        """Write what differs; returns how many nodes. Raises ForeignWriteError, SourceError."""
        wanted = differences(image, self.look(), self.zxid, self._claim, opened)
        for start in range(0, len(wanted.changes), _PER_MULTI):
            self._write(wanted.changes[start : start + _PER_MULTI], image.offset)
        for notice in wanted.notices:
            self._notify(notice)
        return len(wanted.changes)

    def _write(self, changes: Sequence[NodeChange], offset: int) -> None:
        migration = self._tree.get(MIGRATION)
        assert migration is not None
        request = self._client.transaction()
        request.check(self._root + CONTROLLER_EPOCH, self._claim.epoch_version)
        for each in changes:
            path = self._root + each.path
            if each.deed is NodeDeed.CREATE:
                request.create(path, each.data)
            elif each.deed is NodeDeed.SET:
                request.set_data(path, each.data, each.version)
            else:
                request.delete(path, each.version)
        node = migration_node(self._claim.claimant, offset)
        request.set_data(self._root + MIGRATION, node, migration.version)
        paths = [CONTROLLER_EPOCH, *(each.path for each in changes), MIGRATION]
        self._check(request.commit(), paths)
        self._settle(
            frozenset(each.path for each in changes if each.deed is NodeDeed.DELETE), own=True
        )

    def _check(self, results: Sequence[Any], paths: Sequence[str]) -> None:
        """Raise ForeignWriteError for the operation that ZooKeeper refused."""
        exceptions = self._kazoo.exceptions
        beside = (exceptions.RolledBackError, exceptions.RuntimeInconsistency)
        for path, result in zip(paths, results, strict=True):
            if isinstance(result, Exception) and not isinstance(result, beside):
                stat = self._client.exists(self._root + path)
                now = None if stat is None else Znode(path, version=stat.version)
                raise _foreign(path, self._tree.get(path), now)

    def _settle(self, deleted: frozenset[str], *, own: bool) -> None:
        """Read again, and look for foreign writes. `own`: a batch was written just now."""
        before = self._tree
        self._tree, self.zxid = self._live.settled()
        after = self._tree
        migration = after.get(MIGRATION)
        own_zxid = migration.mzxid if own and migration is not None else None
        for path in _changed(before, after):
            was, now = before.get(path), after.get(path)
            if now is None:
                if path not in deleted:
                    raise _foreign(path, was, now)
            elif now.mzxid != own_zxid:
                raise _foreign(path, was, now)

    def _notify(self, notice: Notice) -> None:
        """Tell Kafka's brokers. Outside the multi, as in Kafka: it is no part of the state."""
        path = self._root + notice.prefix
        self._client.create(path, notice.data, sequence=True, makepath=True)


def _changed(before: ZnodeTree, after: ZnodeTree) -> list[str]:
    """Return our nodes that came, went, or have other data."""

    def marks(tree: ZnodeTree) -> Mapping[str, tuple[int, int]]:
        return {node.path: (node.czxid, node.mzxid) for node in tree if _is_ours(node.path)}

    old, new = marks(before), marks(after)
    return sorted(path for path in {*old, *new} if old.get(path) != new.get(path))


def _is_ours(path: str) -> bool:
    return any(path == each or path.startswith(each + "/") for each in _OURS)


def _foreign(path: str, was: Znode | None, now: Znode | None) -> ForeignWriteError:
    def version(node: Znode | None) -> str:
        return "not there" if node is None else f"at version {node.version}"

    return ForeignWriteError(
        f"{path}: somebody else wrote it. It was {version(was)}, and is {version(now)}. This "
        "cluster leads, and overwrites nothing of it: undo that write, or give the bridge up with "
        "--roll-back"
    )
