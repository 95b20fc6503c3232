"""Trees of ZooKeeper's nodes for tests: the one in `kafka_tree.json`, changed node by node."""

import json
from pathlib import Path

from logberg.importing.znodes import Znode, ZnodeTree

FILE = Path(__file__).parent / "kafka_tree.json"


def kafka_tree(changed: dict[str, str | None] | None = None) -> ZnodeTree:
    """Return the tree with the data of some nodes changed; None: without the node."""
    changed = changed or {}
    nodes = {}
    for number, entry in enumerate(json.loads(FILE.read_text()), 1):
        path = entry["path"] + (f"{number:010d}" if entry.get("sequence") else "")
        zxid = 0x1000 + number
        nodes[path] = Znode(
            path,
            (entry["data"] or "").encode(),
            entry.get("sets") or 0,
            zxid,
            zxid,
            zxid,
            bool(entry.get("ephemeral")),
        )
    for path, data in changed.items():
        if data is None:
            del nodes[path]
        else:
            before = nodes.get(path, Znode(path, czxid=0x2000, mzxid=0x2000, pzxid=0x2000))
            nodes[path] = before._replace(data=data.encode())
    return ZnodeTree(nodes.values())
