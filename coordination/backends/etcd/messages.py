"""etcd's messages, as its JSON gateway takes and gives them.

Rule: field names are etcd's own. Keys and values are base64 in JSON; msgspec does that for `bytes`.
Replies hold 64-bit numbers as text and leave out zeros, so every field has a default, and `decode`
reads numbers from text.

Source: etcd's `api/etcdserverpb/rpc.proto`; measured on etcd 3.4.23 and 3.7.3.
"""

from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

Message = TypeVar("Message", bound=Struct)


class EtcdKey(Struct, frozen=True):
    """`mvccpb.KeyValue`: a key and what stands in it."""

    key: bytes = b""
    value: bytes = b""
    create_revision: int = 0
    mod_revision: int = 0
    version: int = 0
    lease: int = 0
    """0: the key stays."""


class ReplyHeader(Struct, frozen=True):
    """The store's revision when the reply was made."""

    revision: int = 0


class RangeRequest(Struct, frozen=True, omit_defaults=True):
    """Read one key, or those from `key` to before `range_end`."""

    key: bytes
    range_end: bytes = b""
    limit: int = 0
    revision: int = 0
    sort_order: Literal["NONE", "ASCEND", "DESCEND"] = "NONE"
    sort_target: Literal["KEY", "CREATE"] = "KEY"
    serializable: bool = False
    keys_only: bool = False


class RangeReply(Struct, frozen=True):
    """What was read."""

    header: ReplyHeader = ReplyHeader()
    kvs: tuple[EtcdKey, ...] = ()
    more: bool = False


class PutRequest(Struct, frozen=True, omit_defaults=True):
    """Write one key; 0 is no lease."""

    key: bytes
    value: bytes = b""
    lease: int = 0


class DeleteRangeRequest(Struct, frozen=True, omit_defaults=True):
    """Delete one key."""

    key: bytes


class DeleteRangeReply(Struct, frozen=True):
    """How many keys were deleted."""

    deleted: int = 0


class Compare(Struct, frozen=True, omit_defaults=True):
    """One condition of a transaction. Exactly one of the values is given."""

    key: bytes
    target: Literal["CREATE", "MOD", "LEASE"]
    result: Literal["EQUAL", "NOT_EQUAL"] = "EQUAL"
    create_revision: int | None = None
    mod_revision: int | None = None
    lease: int | None = None


class RequestOp(Struct, frozen=True, omit_defaults=True):
    """One step of a transaction. Exactly one of the fields is given."""

    request_range: RangeRequest | None = None
    request_put: PutRequest | None = None
    request_delete_range: DeleteRangeRequest | None = None


class TxnRequest(Struct, frozen=True):
    """All of `success` if every comparison holds, else all of `failure`."""

    compare: tuple[Compare, ...] = ()
    success: tuple[RequestOp, ...] = ()
    failure: tuple[RequestOp, ...] = ()


class ResponseOp(Struct, frozen=True):
    """What came of one step."""

    response_range: RangeReply | None = None
    response_delete_range: DeleteRangeReply | None = None


class TxnReply(Struct, frozen=True):
    """Whether the comparisons held, and what came of the steps."""

    header: ReplyHeader = ReplyHeader()
    succeeded: bool = False
    responses: tuple[ResponseOp, ...] = ()

    def read(self, step: int) -> EtcdKey | None:
        """Return the key that step number `step` read; None: it isn't there."""
        found = self.responses[step].response_range
        return found.kvs[0] if found is not None and found.kvs else None

    def deleted(self, step: int) -> bool:
        """Return whether step number `step` deleted a key."""
        gone = self.responses[step].response_delete_range
        return gone is not None and gone.deleted > 0


class LeaseGrantRequest(Struct, frozen=True):
    """Begin a lease under an id that the client chose. The ttl is in seconds."""

    ID: int
    TTL: int


class LeaseRequest(Struct, frozen=True):
    """Keep a lease alive, or revoke it."""

    ID: int


class LeaseReply(Struct, frozen=True):
    """The granted ttl in seconds. 0, which JSON leaves out: there is no such lease."""

    TTL: int = 0


class KeepAliveReply(Struct, frozen=True):
    """One message of the stream of keep-alive replies."""

    result: LeaseReply = LeaseReply()


class AuthRequest(Struct, frozen=True):
    """Log in."""

    name: str
    password: str


class AuthReply(Struct, frozen=True):
    """What to send with each request."""

    token: str = ""


class EmptyRequest(Struct, frozen=True):
    """A request without fields."""


class EmptyReply(Struct, frozen=True):
    """A reply whose fields nobody needs."""


class ListedServer(Struct, frozen=True):
    """A server of the cluster."""

    name: str = ""


class MemberListReply(Struct, frozen=True):
    """The servers of the cluster."""

    members: tuple[ListedServer, ...] = ()


class RefusalReply(Struct, frozen=True):
    """An error: gRPC's code, and what etcd says."""

    code: int = 0
    message: str = ""
    error: str = ""


class WatchCreateRequest(Struct, frozen=True, omit_defaults=True):
    """Begin a watch. `start_revision` 0 is: from now."""

    key: bytes
    watch_id: int
    range_end: bytes = b""
    start_revision: int = 0


class WatchCancelRequest(Struct, frozen=True):
    """End a watch."""

    watch_id: int


class WatchRequest(Struct, frozen=True, omit_defaults=True):
    """One message to the watch stream. Exactly one of the fields is given."""

    create_request: WatchCreateRequest | None = None
    cancel_request: WatchCancelRequest | None = None
    progress_request: EmptyRequest | None = None


class WatchedChange(Struct, frozen=True):
    """A put or a delete."""

    type: Literal["PUT", "DELETE"] = "PUT"
    kv: EtcdKey = EtcdKey()


class EtcdWatchReply(Struct, frozen=True):
    """One message of the watch stream. A `watch_id` of -1 is about all watches."""

    header: ReplyHeader = ReplyHeader()
    watch_id: int = 0
    created: bool = False
    canceled: bool = False
    compact_revision: int = 0
    cancel_reason: str = ""
    events: tuple[WatchedChange, ...] = ()


class WatchMessage(Struct, frozen=True):
    """The gateway wraps each message of a stream."""

    result: EtcdWatchReply | None = None
    error: RefusalReply | None = None


def encode(message: Struct) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def decode(content: bytes | str, kind: type[Message]) -> Message:
    """Read a message. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=kind, strict=False)


def read_key(key: bytes) -> RequestOp:
    """Return the step of a transaction that reads one key."""
    return RequestOp(request_range=RangeRequest(key=key))


def put_key(key: bytes, value: bytes, lease: int = 0) -> RequestOp:
    """Return the step of a transaction that writes one key."""
    return RequestOp(request_put=PutRequest(key=key, value=value, lease=lease))


def delete_key(key: bytes) -> RequestOp:
    """Return the step of a transaction that deletes one key."""
    return RequestOp(request_delete_range=DeleteRangeRequest(key=key))


def is_absent(key: bytes) -> Compare:
    """Return the condition that the key isn't there."""
    return Compare(key=key, target="CREATE", create_revision=0)


def is_present(key: bytes) -> Compare:
    """Return the condition that the key is there."""
    return Compare(key=key, target="CREATE", result="NOT_EQUAL", create_revision=0)


def created_at(key: bytes, revision: int) -> Compare:
    """Return the condition that the key was created at this revision and is still there."""
    return Compare(key=key, target="CREATE", create_revision=revision)


def changed_at(key: bytes, revision: int) -> Compare:
    """Return the condition that the key's last change has this revision; 0: it isn't there."""
    return Compare(key=key, target="MOD", mod_revision=revision)


def prefix_end(prefix: bytes) -> bytes:
    """Return the first key after all that begin with the prefix; etcd's `range_end` for them."""
    shortened = prefix.rstrip(b"\xff")
    return shortened[:-1] + bytes([shortened[-1] + 1]) if shortened else b"\0"
