"""Reads a tree of ZooKeeper's nodes as keys: those of any program, or of our own client library.

Rule: a node that has data or no children is a key; others are folders. An ephemeral node ends with
its session and is left, and so is one that ZooKeeper removes by itself (containers, nodes with a
ttl). Who may read a node is not taken along.
"""

from collections.abc import Iterator

from coordination.backends.zookeeper.paths import decoded, encoded
from logberg.importing.found_keys import OF_A_REQUEST, OF_A_SESSION, FoundKey
from logberg.importing.store_url import KeyLayout
from logberg.importing.znodes import Znode, ZnodeTree

_ROOT = "/keys/"


def keys_of_nodes(tree: ZnodeTree, layout: KeyLayout) -> tuple[FoundKey, ...]:
    """Return the keys by path; `layout` says who wrote them."""
    read = _plain if layout is KeyLayout.PLAIN else _of_library
    return tuple(found for node in tree for found in read(tree, node))


def _plain(tree: ZnodeTree, node: Znode) -> Iterator[FoundKey]:
    if node.ephemeral:
        yield FoundKey(node.path, "", left=OF_A_SESSION)
    elif node.data or not any(tree.children(node.path)):
        yield FoundKey(node.path, node.path.removeprefix("/"), node.data)


def _of_library(_tree: ZnodeTree, node: Znode) -> Iterator[FoundKey]:
    """A key is two levels below `/keys`: its folder, and its name in it."""
    parts = node.path.removeprefix(_ROOT).split("/")
    if node.ephemeral:
        yield FoundKey(node.path, "", left=OF_A_SESSION)
    elif not node.path.startswith(_ROOT):
        if node.data:
            yield FoundKey(node.path, "", left=OF_A_REQUEST)
    elif len(parts) == 2 and all(encoded(decoded(part)) == part for part in parts):
        yield FoundKey(node.path, "".join(map(decoded, parts)), node.data)
    elif len(parts) > 1 or node.data:
        why = "its name isn't encoded as this library does it: somebody else wrote it"
        yield FoundKey(node.path, "", malformed=why)
