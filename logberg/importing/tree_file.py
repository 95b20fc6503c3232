"""Reads a tree of nodes from a file of JSON, for a rehearsal without a server.

The file is a list of objects with `path` and `data` (text or null), and as far as one knows them
`version`, `czxid`, `mzxid`, `pzxid` and `ephemeral`.
"""

from pathlib import Path

import msgspec

from logberg.importing.source_error import SourceError
from logberg.importing.znodes import Znode, ZnodeTree


class _FileNode(msgspec.Struct):
    path: str
    data: str | None = None
    version: int = 0
    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ephemeral: bool = False


def read_tree_file(path: Path) -> ZnodeTree:
    """Return the nodes of a file. Raises SourceError."""
    try:
        nodes = msgspec.json.decode(path.read_bytes(), type=list[_FileNode])
    except (OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: {error}") from None
    if len({node.path for node in nodes}) < len(nodes):
        raise SourceError(f"{path}: a path is there twice")
    return ZnodeTree(
        Znode(
            node.path,
            (node.data or "").encode(),
            node.version,
            node.czxid,
            node.mzxid,
            node.pzxid,
            node.ephemeral,
        )
        for node in nodes
    )
