"""Erasures of subjects and pseudonyms of people (ADR 0093).

`/v1/erasures`, `/v1/subject-keys`, `/v1/pseudonyms`.
"""

from typing import Annotated, Any, Final

from msgspec import Meta

from metadata.messages.message import ReplyMessage, RequestMessage

EARLIER_MAX: Final = 1_000


class EraseRequest(RequestMessage, frozen=True):
    """Destroy the key of a subject, on every controller, for good."""

    subject: Annotated[str, Meta(max_length=300)]
    """Such as user:alice, or from:192.0.2.7 for attempts of nobody who was authenticated."""
    earlier: Annotated[
        tuple[Annotated[str, Meta(max_length=400)], ...], Meta(max_length=EARLIER_MAX)
    ] = ()
    """Of an address: sealed texts of it from before another address was erased, one for each number
    of a subject. Only who has the keys can find them."""
    dry_run: bool = False


class EraseReply(ReplyMessage, frozen=True):
    """What is removed with the key."""

    subject: str
    credentials: int
    """SCRAM credentials that the subject had until now."""
    tokens: int
    """Delegation tokens that the subject owned until now."""
    access_tokens: int
    """Access tokens of the subject that are revoked."""
    offset: int = -1
    epoch: int = -1
    request_id: str | None = None
    dry_run: bool = False
    records: tuple[dict[str, Any], ...] = ()


class ErasuresReply(ReplyMessage, frozen=True):
    """How far one controller is with destroying keys."""

    node_id: int
    offset: int
    """Of the state that the controller has applied."""
    keys_id: str | None
    """The tree of keys that the log names, in hex; None: it names none."""
    held: bool
    """Whether the tree is in this controller's folder."""
    usable: bool
    """Whether this controller opens and seals values of subjects now."""
    erasures: int
    """How many erasures it knows."""
    destroyed: int
    """How many of them it has carried out, durably."""


class SubjectKeysReply(ReplyMessage, frozen=True):
    """The tree of keys, for the agent of a broker that has the cluster key."""

    keys_id: str
    """In hex."""
    sealed: bytes
    """The tree, sealed under the cluster key."""


class Person(ReplyMessage, frozen=True):
    """A pseudonym, and whom it stands for."""

    pseudonym: str
    """`p-` and 13 characters. The person's principal in the log is `User:` and this."""
    name: str | None
    """The name, without `User:`; None: this controller can't open it."""


class ListPseudonymsReply(ReplyMessage, frozen=True):
    """Pseudonyms, in order, from one image."""

    offset: int
    epoch: int
    people: tuple[Person, ...]
    age_ms: int | None = 0
    continuation: str | None = None
    """Set if there are more: ask again with it as `continuation`."""
