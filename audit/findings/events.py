"""Events: what happened in a log, as rules see it. One small struct for each.

Rule: an event follows from the records up to its own, and from nothing else. Events are in the
log's order: by the base offset of the batch that settled them, then by offset. Their time is that
batch's, so times never fall. Rules name kinds and traits; both are listed here with their meaning.
"""

from collections.abc import Iterable
from typing import Final

import msgspec

from metadata.sealed_addresses import shown_address

KINDS: Final = {
    "acl_added": "An access control entry was added.",
    "acl_removed": "An access control entry was removed.",
    "user_set": "A SCRAM credential was set.",
    "user_removed": "A SCRAM credential was removed.",
    "token_set": "A delegation token, an access token or a join token was made or changed.",
    "token_removed": "A token was removed or revoked, or expired, or a node used its join token.",
    "quota_set": "A client quota was set or removed.",
    "feature_set": "A feature level was finalised.",
    "voters_set": "The quorum's voters changed, or a generation of the cluster began.",
    "key_set": "Another cluster key seals secrets from here on.",
    "unclean_elected": "A replica that was not in sync became leader.",
    "unclean_allowed": "A config that allows or forbids unclean elections was set.",
    "config_set": "A config was set.",
    "config_removed": "A config was removed, so its default counts.",
    "topic_created": "A topic was created.",
    "topic_removed": "A topic was deleted.",
    "broker_registered": "A broker process registered, or amended its registration.",
    "broker_removed": "A broker's registration was removed.",
    "broker_fenced": "A broker was fenced that was not.",
    "broker_unfenced": "A broker was unfenced.",
    "leader_lost": "A partition lost its leader.",
    "leader_found": "A partition without a leader got one, or was removed.",
    "epoch_begun": "A controller began to lead.",
    "refused": "An item of a request was refused, while other items were written.",
    "clock_apart": "A request's id was drawn long before or after the time of its batch.",
    "activity": "A principal was seen for the first time from this network with this method.",
}
"""What an event may be."""

TRAITS: Final = {
    "wide": "The entry gives much: all operations, all names, everybody, or power over the cluster;"
    " or an entry was removed that denied something.",
    "deny": "The entry denies.",
    "lowered": "The config's number fell, or removing the config lets it fall.",
    "raised": "The config's number rose.",
    "secret": "The config's value is a secret.",
    "replaced": "Voters or a cluster key were set where others were set before.",
    "unclean": "The config allows unclean elections.",
    "internal": "The controllers did it by themselves.",
    "unexplained": "The caller gave no reason.",
    "new_caller": "The principal was first seen within the last day, and the log is older.",
    "new_address": "The principal has been known for a day, and first came from this network within"
    " the last day.",
    "new_grantee": "The one who gets the right had none before, and the log is older than a day.",
}
"""What rules may ask about an event besides its kind."""


class EventCaller(msgspec.Struct, frozen=True, array_like=True):
    """Who asked, from where and why; as in the batch. Fields that don't apply are empty."""

    principal: str = ""
    on_behalf_of: str = ""
    auth_method: str = ""
    address: str = ""
    acted_as: str = ""
    operation: str = ""
    reason: str = ""

    @property
    def actor(self) -> str:
        """The one for whom it was done: the user, if a broker forwarded the request."""
        return self.on_behalf_of or self.principal

    @property
    def identity(self) -> tuple[str, ...]:
        """What tells callers apart: principal, method and address, a sealed one by its number."""
        return self.principal, self.auth_method, shown_address(self.address)


class AuditEvent(msgspec.Struct, frozen=True, array_like=True):
    """One event."""

    base: int
    """Base offset of the batch that settled it."""
    offset: int
    """Of the record."""
    time_ms: int
    """Timestamp of the batch that settled it."""
    kind: str
    """One of KINDS."""
    subject: str
    """The narrowest word of `Record.subjects`, such as `topic:orders`; may be empty."""
    caller: EventCaller
    grantee: str = ""
    """The principal who gets or loses a right, a credential or a token."""
    what: str = ""
    """What it is in words: an entry's operation and resource, a config's value, an error's code."""
    before: str = ""
    """A config's value before, where it is known."""
    amount: int = 0
    """`refused`: items. `clock_apart`: ms that the id is older than the batch; else 0."""
    traits: tuple[str, ...] = ()
    """Some of TRAITS."""

    @property
    def place(self) -> tuple[int, int]:
        """By which events are ordered."""
        return self.base, self.offset


def in_log_order(events: Iterable[AuditEvent]) -> list[AuditEvent]:
    """Return events in the log's order; of one record, in the order of `KINDS`.

    `activity` comes before the other events of its record.
    """
    return sorted(events, key=lambda event: (*event.place, _RANK[event.kind], event.subject))


_RANK: Final = {"activity": -1} | {
    kind: rank for rank, kind in enumerate(KINDS) if kind != "activity"
}
