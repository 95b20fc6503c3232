"""Access control entries and an action, as a line of text; drawn from a seed; answered by us.

A line is `ACTION | ENTRY | ENTRY`. An action is principal, host, operation, type, name, whether
everything is allowed without entries, and super users or `-`. An entry is permission, principal,
operation, type, pattern, name and host.

Rule: names, principals and hosts come from few values, so that entries often match.
"""

from random import Random
from typing import Final

from metadata.acl_rules import AclPolicy, Action, authorize
from metadata.image import EMPTY, MetadataDelta
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
)

ALLOWED: Final = "ALLOWED"
DENIED: Final = "DENIED"

_NAMES: Final = ("a", "ab", "abc", "b", "ba")
_USERS: Final = ("User:u", "User:v", "Group:u")
_HOSTS: Final = ("10.0.0.1", "10.0.0.2", "10.0.0.255", "2001:db8:0:0:0:0:0:7")
_RANGES: Final = (
    *("10.0.0.0/31", "10.0.0.3/30", "10.0.0.0/24", "10.9.9.9/8", "10.0.0.2/32", "0.0.0.0/0"),
    *("10.0.0.0/33", "2001:db8::/32", "::/0", "2001:db8:1::/48"),
)
_TYPES: Final = ("TOPIC", "TOPIC", "TOPIC", "GROUP")
_OPERATIONS: Final = (
    *("READ", "WRITE", "CREATE", "DELETE", "ALTER", "DESCRIBE", "DESCRIBE"),
    *("CLUSTER_ACTION", "DESCRIBE_CONFIGS", "ALTER_CONFIGS", "IDEMPOTENT_WRITE"),
)


def draw(dice: Random) -> str:
    """Return a case as a line."""
    ask = " ".join(
        (
            dice.choice(_USERS),
            dice.choice(_HOSTS),
            dice.choice(_OPERATIONS),
            dice.choice(_TYPES),
            dice.choice(_NAMES),
            dice.choice(("true", "false")),
            dice.choice(("-", "-", "-", "-", "-", "User:v", "User:w;User:u")),
        )
    )
    # Kafka's authorizer refuses two entries with one content; so does our controller.
    entries = dict.fromkeys(_draw_entry(dice) for _ in range(dice.randint(0, 4)))
    return " | ".join((ask, *entries))


def answer(line: str) -> str:
    """Return what our rules say to a case."""
    ask, *entries = line.split(" | ")
    principal, host, operation, kind, name, allow, users = ask.split()
    delta = MetadataDelta(EMPTY)
    delta.replay_all([_record(number, text) for number, text in enumerate(entries)], 0)
    delta.finish_batch(len(entries), 0, 0)
    policy = AclPolicy(
        frozenset() if users == "-" else frozenset(users.split(";")), allow == "true"
    )
    action = Action(principal, host, AclOperation[operation], AclResourceType[kind], name)
    return ALLOWED if authorize(delta.apply().acls, action, policy).allowed else DENIED


def _draw_entry(dice: Random) -> str:
    return " ".join(
        (
            dice.choice(("ALLOW", "ALLOW", "DENY")),
            dice.choice((*_USERS, "User:u", "User:u", "User:*", "Group:*")),
            dice.choice((*_OPERATIONS, "ALL", "ALL")),
            dice.choice(_TYPES),
            dice.choice(("LITERAL", "PREFIXED")),
            dice.choice((*_NAMES, "*", "*")),
            dice.choice((*_HOSTS, *_RANGES, "*", "*", "*")),
        )
    )


def _record(number: int, text: str) -> AccessControlEntryRecord:
    permission, principal, operation, kind, pattern, name, host = text.split()
    return AccessControlEntryRecord(
        number.to_bytes(16),
        AclResourceType[kind],
        name,
        AclPatternType[pattern],
        principal,
        host,
        AclOperation[operation],
        AclPermissionType[permission],
    )
