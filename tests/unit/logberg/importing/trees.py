"""Trees of ZooKeeper's nodes for tests: the one in `kafka_tree.json`, changed node by node."""

from pathlib import Path

from logberg.importing.tree_file import read_tree_file
from logberg.importing.znodes import Znode, ZnodeTree

FILE = Path(__file__).parent / "kafka_tree.json"


def kafka_tree(changed: dict[str, str | None] | None = None) -> ZnodeTree:
    """Return the tree with the data of some nodes changed; None: without the node."""
    changed = changed or {}
    nodes = {}
    for zxid, node in enumerate(read_tree_file(FILE), 0x1001):
        nodes[node.path] = node._replace(czxid=zxid, mzxid=zxid, pzxid=zxid)
    for path, data in changed.items():
        if data is None:
            del nodes[path]
        else:
            before = nodes.get(path, Znode(path, czxid=0x2000, mzxid=0x2000, pzxid=0x2000))
            nodes[path] = before._replace(data=data.encode())
    return ZnodeTree(nodes.values())
