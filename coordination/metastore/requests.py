"""The nine requests of Kafka's ZooKeeper client, and their responses (KIP-273).

Each request has a path and a `ctx`, which comes back with the response. A response has a code
instead of an exception, since a caller sends many requests at once.
"""

import enum
from dataclasses import dataclass
from typing import Any

ANY_VERSION = -1


class ResultCode(enum.Enum):
    """What came of a request; the names are ZooKeeper's."""

    OK = "ok"
    NO_NODE = "there is no such node"
    NODE_EXISTS = "the node exists"
    BAD_VERSION = "the node has another version"
    NOT_EMPTY = "the node has children"
    NO_CHILDREN_FOR_EPHEMERALS = "an ephemeral node can't have children"
    BAD_ARGUMENTS = "the path is not allowed"
    INVALID_ACL = "nodes have no ACLs of their own here"
    CONNECTION_LOSS = "no answer came; a change may have been made"
    SESSION_EXPIRED = "the session is over"
    AUTH_FAILED = "the store refuses the credentials"
    RUNTIME_INCONSISTENCY = "another operation of the same multi failed"


class CreateMode(enum.Enum):
    """How a node is made: (ephemeral, sequential)."""

    PERSISTENT = (False, False)
    EPHEMERAL = (True, False)
    PERSISTENT_SEQUENTIAL = (False, True)
    EPHEMERAL_SEQUENTIAL = (True, True)


@dataclass(frozen=True, slots=True)
class ZnodeStat:
    """What a node is besides its data. A zxid is a revision of the store; there are no times."""

    czxid: int
    mzxid: int
    pzxid: int
    version: int
    """How often the data was set; 0 after the creation."""
    cversion: int
    """How often a child came or went."""
    ephemeral_owner: str
    """The session's id; empty: the node is persistent."""
    data_length: int
    num_children: int


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Make a node below one that exists."""

    path: str
    data: bytes
    mode: CreateMode = CreateMode.PERSISTENT
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class SetDataRequest:
    """Replace a node's data."""

    path: str
    data: bytes
    version: int = ANY_VERSION
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    """Delete a node without children."""

    path: str
    version: int = ANY_VERSION
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """Within a multi: the node is there and has this version."""

    path: str
    version: int = ANY_VERSION
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class ExistsRequest:
    """Look whether a node is there. Watches the path if a handler of it is registered."""

    path: str
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class GetDataRequest:
    """Read a node. Watches it if it is there and a handler of the path is registered."""

    path: str
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class GetChildrenRequest:
    """List a node's children. Watches them if asked to and a child handler is registered."""

    path: str
    register_watch: bool = True
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class GetAclRequest:
    """Read a node's ACL: everybody may do everything, since the store decides about access."""

    path: str
    ctx: Any = None


@dataclass(frozen=True, slots=True)
class SetAclRequest:
    """Is answered with INVALID_ACL."""

    path: str
    ctx: Any = None


Operation = CreateRequest | SetDataRequest | DeleteRequest | CheckRequest


@dataclass(frozen=True, slots=True)
class MultiRequest:
    """Do all operations, or none."""

    operations: tuple[Operation, ...]
    ctx: Any = None

    @property
    def path(self) -> str:
        """That of the first operation."""
        return self.operations[0].path if self.operations else ""


Request = (
    CreateRequest
    | SetDataRequest
    | DeleteRequest
    | ExistsRequest
    | GetDataRequest
    | GetChildrenRequest
    | GetAclRequest
    | SetAclRequest
    | MultiRequest
)


@dataclass(frozen=True, slots=True)
class MetastoreResponse:
    """The answer to one request. What a request doesn't ask for, or what failed, is left out."""

    code: ResultCode
    path: str
    ctx: Any = None
    name: str = ""
    """Of a create: the path of the node that was made."""
    data: bytes | None = None
    children: tuple[str, ...] = ()
    stat: ZnodeStat | None = None
    results: tuple["MetastoreResponse", ...] = ()
    """Of a multi, in the order of its operations."""
