"""`[coordination]` in a controller's file: how much sessions, entries and keys there may be.

Rule: a limit keeps clients from filling the memory that the whole cluster depends on. What a batch
of the log or a request can't hold can't be allowed either. A lower limit removes nothing that is
there.
"""

import msgspec

from controller.config import CoordinationLimits

KIB = 1024
MIB = 1024 * KIB


class CoordinationSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The limits of coordination; the same on all controllers."""

    ttl_min_ms: int = 500
    """The shortest ttl of a session; a client that asks for less gets this."""
    ttl_max_ms: int = 600_000
    """The longest ttl of a session; a client that asks for more gets this."""
    key_bytes: int = KIB
    """The longest key, in UTF-8."""
    name_bytes: int = KIB
    """The longest name of a group, election or lock, and the longest id of an entry, in UTF-8."""
    data_bytes: int = 64 * KIB
    """The longest data of a member or a candidate."""
    value_bytes: int = MIB - 32 * KIB
    """The longest value of a key."""
    commit_operations: int = 1_000
    """The most operations, checks and fences of one transaction, together."""
    commit_bytes: int = MIB
    """The most bytes of keys and values in one transaction."""
    entries_per_session: int = 1_000
    """The most memberships, candidacies and locks of one session."""
    entries_per_resource: int = 10_000
    """The most members of a group, candidates of an election, or holders and waiters of a lock."""
    sessions: int = 20_000
    """The most sessions."""
    entries: int = 100_000
    """The most entries of all sessions."""
    keys: int = 1_000_000
    """The most keys."""
    total_bytes: int = 256 * MIB
    """The most bytes of all sessions, entries and keys; every controller holds them in memory."""
    watch_scopes: int = 1_000
    """The most keys, prefixes and queues that one request watches."""


_TABLE = "coordination"
_BOUNDS = {
    "ttl_min_ms": (100, 3_600_000),
    "ttl_max_ms": (100, 86_400_000),
    "key_bytes": (1, 32 * KIB),
    "name_bytes": (1, 8 * KIB),
    "data_bytes": (0, MIB - 32 * KIB),
    "value_bytes": (0, MIB - 32 * KIB),
    "commit_operations": (1, 1_000),
    "commit_bytes": (1, MIB),
    "entries_per_session": (1, 10_000),
    "entries_per_resource": (1, 10_000),
    "sessions": (0, 1_000_000),
    "entries": (0, 1_000_000),
    "keys": (0, 10_000_000),
    "total_bytes": (0, 16 * KIB * MIB),
    "watch_scopes": (1, 1_000),
}
"""The least and the greatest value of each key."""


def check_coordination(settings: CoordinationSettings) -> list[str]:
    """Say what is wrong with the limits, a sentence each."""
    given = msgspec.structs.asdict(settings)
    found = [
        f"{_TABLE}.{key} is {given[key]}; use {least} to {most}."
        for key, (least, most) in _BOUNDS.items()
        if not least <= given[key] <= most
    ]
    if settings.ttl_min_ms > settings.ttl_max_ms:
        found.append(
            f"{_TABLE}.ttl_min_ms is {settings.ttl_min_ms}; it must be at most ttl_max_ms "
            f"({settings.ttl_max_ms})."
        )
    return found


def coordination_limits(settings: CoordinationSettings | None) -> CoordinationLimits:
    """Return the limits as the controller takes them; None: the defaults."""
    if settings is None:
        return CoordinationLimits()
    return CoordinationLimits(
        ttl_min_ms=settings.ttl_min_ms,
        ttl_max_ms=settings.ttl_max_ms,
        key_bytes=settings.key_bytes,
        name_bytes=settings.name_bytes,
        data_bytes=settings.data_bytes,
        value_bytes=settings.value_bytes,
        commit_operations=settings.commit_operations,
        commit_bytes=settings.commit_bytes,
        entries_per_session=settings.entries_per_session,
        entries_per_resource=settings.entries_per_resource,
        sessions=settings.sessions,
        entries=settings.entries,
        keys=settings.keys,
        total_bytes=settings.total_bytes,
        watch_scopes=settings.watch_scopes,
    )
