"""How the core names a node."""

from pysyncobj.node import Node


class CoreNode(Node):  # type: ignore[misc]
    """A node as the core names it: `<node id>@<directory id>`.

    The name holds the directory because the core counts acknowledgements by name: another disk
    under the same node id must not count as the same voter.

    It hashes as a number: the core iterates sets of nodes, and the hash of a string differs
    from process to process, which would make a seed's run differ too.
    """

    def __init__(self, node_id: int, directory_id: bytes) -> None:
        super().__init__(f"{node_id}@{directory_id.hex()}")
        self.node_id = node_id
        self.directory_id = directory_id

    def __hash__(self) -> int:
        return self.node_id

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CoreNode) and self.id == other.id

    def __ne__(self, other: object) -> bool:
        return not self == other
