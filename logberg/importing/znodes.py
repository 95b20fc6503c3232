"""A tree of ZooKeeper's nodes as somebody read it: path, bytes and what ZooKeeper says of the node.

Rule: paths are relative to the chroot and begin with "/". The tree is whole and never changes.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Znode(NamedTuple):
    """One node."""

    path: str
    data: bytes = b""
    version: int = 0
    """How often the data was set after the node was made. Kafka counts partition epochs by it."""
    czxid: int = 0
    """The change that made the node; it tells a node from one that was deleted before."""
    mzxid: int = 0
    """The last change of its data."""
    pzxid: int = 0
    """The last change of its list of children."""
    ephemeral: bool = False
    """It lives as long as the session that made it."""

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]


class ZnodeTree:
    """All nodes, by path."""

    def __init__(self, nodes: Iterable[Znode]) -> None:
        self._nodes = {node.path: node for node in nodes}
        self._children: dict[str, list[str]] = {}
        for path in sorted(self._nodes):
            parent, _, name = path.rpartition("/")
            if name:
                self._children.setdefault(parent, []).append(name)

    def __iter__(self) -> Iterator[Znode]:
        """Yield the nodes by path."""
        return (self._nodes[path] for path in sorted(self._nodes))

    def __len__(self) -> int:
        return len(self._nodes)

    def get(self, path: str) -> Znode | None:
        """Return a node; None: there is none."""
        return self._nodes.get(path)

    def children(self, path: str) -> Iterator[Znode]:
        """Yield the children of a node by name. A child may be known though its parent isn't."""
        for name in self._children.get(path, ()):
            yield self._nodes[f"{path}/{name}"]

    @property
    def last_zxid(self) -> int:
        """The newest change that the tree shows; 0 for an empty one."""
        return max((max(n.czxid, n.mzxid, n.pzxid) for n in self._nodes.values()), default=0)
