"""Consul's messages, as its HTTP API takes and gives them.

Rule: field names are Consul's own. Values are base64 in JSON; msgspec does that for `bytes`.

Source: Consul 1.13, `api/kv.go`, `api/txn.go`, `api/session.go`.
"""

from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

Message = TypeVar("Message")


class ConsulKey(Struct, frozen=True):
    """A key and what stands in it."""

    Key: str = ""
    Value: bytes | None = None
    Flags: int = 0
    """A number that Consul only keeps. Here it is how often the key was written."""
    CreateIndex: int = 0
    ModifyIndex: int = 0
    Session: str = ""
    """The session with which the key ends; empty: it stays."""

    @property
    def content(self) -> bytes:
        """The value."""
        return self.Value or b""


class KeyStep(Struct, frozen=True, omit_defaults=True):
    """One step of a transaction: a condition or a change."""

    Verb: Literal["cas", "lock", "delete-cas", "check-index", "check-not-exists"]
    Key: str
    Value: bytes = b""
    Flags: int = 0
    Index: int | None = None
    Session: str = ""


class TxnStep(Struct, frozen=True):
    """A step, as a transaction holds it."""

    KV: KeyStep


class SteppedKey(Struct, frozen=True):
    """A key that a transaction changed or checked."""

    KV: ConsulKey = ConsulKey()


class StepRefusal(Struct, frozen=True):
    """Why a step was refused."""

    OpIndex: int = 0
    What: str = ""


class ConsulTxnReply(Struct, frozen=True):
    """The keys of a transaction, or why it was refused."""

    Results: tuple[SteppedKey, ...] | None = None
    Errors: tuple[StepRefusal, ...] | None = None

    def index_of(self, key: str) -> int:
        """Return the index at which the transaction changed this key."""
        return max(each.KV.ModifyIndex for each in self.Results or () if each.KV.Key == key)


class SessionRequest(Struct, frozen=True):
    """Begin a session. Without checks of nodes it ends by its ttl alone."""

    TTL: str
    Name: str = "logberg"
    Behavior: Literal["delete", "release"] = "delete"
    LockDelay: str = "0s"
    NodeChecks: tuple[str, ...] = ()


class SessionReply(Struct, frozen=True):
    """A session."""

    ID: str = ""
    CreateIndex: int = 0


def encode(message: object) -> bytes:
    """Return the message as JSON."""
    return msgspec.json.encode(message)


def decode(content: bytes, kind: type[Message]) -> Message:
    """Read a message. Raises msgspec.DecodeError."""
    return msgspec.json.decode(content, type=kind, strict=False)


def is_absent(key: str) -> KeyStep:
    """Return the condition that the key isn't there."""
    return KeyStep("check-not-exists", key)


def is_at(key: str, index: int) -> KeyStep:
    """Return the condition that the key's last change has this index; 0: it isn't there."""
    return KeyStep("check-index", key, Index=index) if index else is_absent(key)
