"""Which access control entry decides about an action: every entry is looked at, none is looked up.

Written from the rules of Kafka's StandardAuthorizer (features H), KIP-290 for patterns of names,
and ADR 0032 for ranges of addresses and for the entry that a verdict names.

Rule: this module knows nothing of the product.
"""

from collections.abc import Collection, Iterable
from ipaddress import ip_address, ip_network
from typing import NamedTuple

IMPLIED_BY = {
    "DESCRIBE": {"READ", "WRITE", "DELETE", "ALTER"},
    "DESCRIBE_CONFIGS": {"ALTER_CONFIGS"},
}
"""By operation: the permitted operations that permit it as well. A denied one denies no other."""


class Entry(NamedTuple):
    """An access control entry."""

    kind: str
    name: str
    pattern: str
    """LITERAL or PREFIXED."""
    principal: str
    operation: str
    permission: str = "ALLOW"
    host: str = "*"
    """An address, a range of addresses, or *."""


class Action(NamedTuple):
    """What somebody is about to do."""

    principal: str
    host: str
    operation: str
    kind: str
    name: str


class Verdict(NamedTuple):
    """Whether the action may be done, and which entries can be named as the reason."""

    allowed: bool
    reason: str
    entries: frozenset[Entry] = frozenset()
    """Those with the narrowest pattern among the entries that decide."""


def judge(
    entries: Iterable[Entry],
    action: Action,
    super_users: Collection[str],
    *,
    allowed_without_entries: bool,
) -> Verdict:
    """Decide by the first rule that applies."""
    if action.principal in super_users:
        return Verdict(True, "super user")
    about = [entry for entry in entries if _is_about(entry, action)]
    if not about:
        return Verdict(allowed_without_entries, "no entry for the resource")
    matching = [entry for entry in about if _is_for(entry, action)]
    for permission, also in (("DENY", set[str]()), ("ALLOW", IMPLIED_BY.get(action.operation, ()))):
        operations = {"ALL", action.operation, *also}
        decide = [
            entry
            for entry in matching
            if entry.permission == permission and entry.operation in operations
        ]
        if decide:
            return Verdict(permission == "ALLOW", permission.lower(), _narrowest(decide))
    return Verdict(False, "no entry matches")


def _is_about(entry: Entry, action: Action) -> bool:
    """Return whether an entry's pattern matches the resource."""
    if entry.kind != action.kind:
        return False
    if entry.pattern == "PREFIXED":
        return action.name.startswith(entry.name)
    return entry.name in ("*", action.name)


def _is_for(entry: Entry, action: Action) -> bool:
    """Return whether an entry speaks of who acts, and of where from."""
    if entry.principal not in ("User:*", action.principal):
        return False
    if "/" not in entry.host:
        return entry.host in ("*", action.host)
    try:
        return ip_address(action.host) in ip_network(entry.host, strict=False)
    except ValueError:
        return False


def _narrowest(entries: list[Entry]) -> frozenset[Entry]:
    """The name itself is the narrowest, then the longest prefix; * is the widest."""

    def width(entry: Entry) -> tuple[int, int]:
        if entry.pattern == "PREFIXED":
            return 1, -len(entry.name)
        return (2 if entry.name == "*" else 0), 0

    least = min(map(width, entries))
    return frozenset(entry for entry in entries if width(entry) == least)
