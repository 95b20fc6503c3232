"""Feature levels: their names, the levels that this build supports, and where logs begin.

Rule: a name here is in logs for ever. A build stops at a level that it does not know, because the
rules of replay may differ from there on.

The base is the levels, in Kafka's terms, of what release 0.1 wrote; its logs don't name them. It
wrote directories of replicas (level 17), registered controllers (15), and voters in the log
(kraft.version 1, which Kafka ties to 3.9-IV0, level 21). It wrote no eligible leader replicas (23)
and no cordoned directories (30).
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

METADATA_VERSION: Final = "metadata.version"
"""Kafka's: which of Kafka's records, and in which versions, a log may hold (KIP-584, 778)."""
LOGBERG_VERSION: Final = "logberg.version"
"""Ours: which of our own records a log may hold, and which of our own rules replay follows."""

LITERAL_AMENDMENTS_FROM: Final = 1
"""From this level of `logberg.version` on, replay uses an amended registration as it is written.
Below it, replay keeps epoch and flags of the previous registration, as release 0.1 did
(ADR 0015)."""
SEALED_CONFIGS_FROM: Final = 2
"""From this level of `logberg.version` on, secret values of configs are sealed (ADR 0038)."""
NAMED_KEY_FROM: Final = 2
"""From this level of `logberg.version` on, the log names the cluster key (ADR 0039)."""
COLUMNS_FROM: Final = 3
"""From this level of `logberg.version` on, checkpoints are in format 2, with columns for topics and
partitions (ADR 0041)."""
COORDINATION_FROM: Final = 4
"""From this level of `logberg.version` on, the log holds coordination's sessions, entries and keys
(ADR 0055), and the state of the bridge (ADR 0062)."""
VOTER_CHANGES_FROM: Final = 5
"""From this level of `logberg.version` on, the quorum's log holds changes of the voters, and the
log's record of voters follows them (ADR 0081)."""
ATTEMPTS_FROM: Final = 6
"""From this level of `logberg.version` on, the log holds counts of refused attempts (ADR 0090)."""
CREDENTIALS_FROM: Final = 6
"""From this level of `logberg.version` on, the log holds access tokens, join tokens and revocations
of certificates (ADR 0089)."""
SIGNED_HEADS_FROM: Final = 6
"""From this level of `logberg.version` on, the log holds the keys that sign heads, and the heads
that a majority signed (ADR 0087)."""
ERASURE_FROM: Final = 6
"""From this level of `logberg.version` on, secrets of users are sealed under keys of their own,
which can be destroyed (ADR 0093)."""
ELR_VERSION: Final = "eligible.leader.replicas.version"
"""Kafka's: partitions remember replicas that are safe to elect (KIP-966)."""


class Levels(NamedTuple):
    """The levels of one feature that a node supports, both ends included."""

    low: int
    high: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.low <= level <= self.high

    def __str__(self) -> str:
        return str(self.low) if self.low == self.high else f"{self.low} to {self.high}"


SUPPORTED: Final[Mapping[str, Levels]] = {
    ELR_VERSION: Levels(0, 1),
    LOGBERG_VERSION: Levels(1, 6),
    METADATA_VERSION: Levels(21, 33),
}
"""The levels that this build supports, by the feature's name."""

OF_KAFKAS_BROKERS: Final[Mapping[str, Levels]] = {
    "group.version": Levels(0, 1),
    "share.version": Levels(0, 1),
    "streams.version": Levels(0, 1),
    "transaction.version": Levels(0, 2),
}
"""The levels, in Kafka 4.3, of features that concern Kafka's brokers only (KIP-848, 890, 932,
1071). The controllers keep them and no rule of theirs depends on them. So a log may have any level,
and no controller declares them."""

BASE: Final[Mapping[str, int]] = {LOGBERG_VERSION: 1, METADATA_VERSION: 21}
"""The lowest levels that cover what 0.1 wrote. A log that 0.1 began gets these. The operator raises
them when all nodes run the new release. A new log begins higher (`first_levels`)."""

METADATA_VERSION_NAMES: Final[Mapping[int, str]] = {
    3: "3.2-IV0",
    5: "3.3-IV1",
    6: "3.3-IV2",
    7: "3.3-IV3",
    8: "3.4-IV0",
    11: "3.5-IV2",
    13: "3.6-IV1",
    14: "3.6-IV2",
    15: "3.7-IV0",
    17: "3.7-IV2",
    21: "3.9-IV0",
    22: "4.0-IV0",
    23: "4.0-IV1",
    24: "4.0-IV2",
    25: "4.0-IV3",
    26: "4.1-IV0",
    27: "4.1-IV1",
    28: "4.2-IV0",
    29: "4.2-IV1",
    30: "4.3-IV0",
    31: "4.4-IV0",
    32: "4.4-IV1",
    33: "4.4-IV2",
}
"""Kafka's names for the levels of metadata.version that matter here."""

NEEDS: Final[Mapping[tuple[str, int], tuple[str, int]]] = {
    (ELR_VERSION, 1): (METADATA_VERSION, 23),
}
"""(feature, level) to the (feature, level) that it needs (KIP-1022)."""

BROUGHT: Final[Mapping[tuple[str, int], str]] = {
    (LOGBERG_VERSION, SEALED_CONFIGS_FROM): "sealed values of configs",
    (LOGBERG_VERSION, COLUMNS_FROM): "checkpoints in format 2",
    (LOGBERG_VERSION, VOTER_CHANGES_FROM): "changes of the voters",
}
"""What a level brought that is neither a record nor a field of one (those are in NEEDS of each
record): after it the level can't be lowered."""


def described(name: str, level: int) -> str:
    """Return a feature's level for people, such as `metadata.version 23 (4.0-IV1)`."""
    known = METADATA_VERSION_NAMES.get(level) if name == METADATA_VERSION else None
    return f"{name} {level}" if known is None else f"{name} {level} ({known})"


def levels_of(declared: Iterable[tuple[str, int, int]], name: str) -> Levels:
    """Return the levels of one feature that a node supports, from what the node declared.

    `declared` are (name, lowest level, highest level). A node that doesn't declare metadata.version
    or logberg.version supports their base: 0.1's agents declare nothing. A node that doesn't
    declare another feature doesn't support it: 0 to 0.
    """
    for feature, low, high in declared:
        if feature == name:
            return Levels(low, high)
    base = BASE.get(name, 0)
    return Levels(base, base)


def known_levels(name: str) -> Levels | None:
    """Return the levels of a feature that the log may be set to; None: there is no such feature."""
    return SUPPORTED.get(name) or OF_KAFKAS_BROKERS.get(name)


def first_levels(
    chosen: Mapping[str, int], declared: Iterable[Iterable[tuple[str, int, int]]]
) -> dict[str, int]:
    """Return the levels at which a new log begins (ADR 0039).

    `chosen`: the levels that the operator named. The other features of BASE begin at the newest
    level that this build and all voters support; `declared`: what each voter declared.
    """
    newest = {name: SUPPORTED[name].high for name in BASE if name not in chosen}
    for voter in declared:
        ranges = tuple(voter)
        newest = {name: min(high, levels_of(ranges, name).high) for name, high in newest.items()}
    return {**newest, **chosen}


def wrong_first_levels(chosen: Mapping[str, int]) -> str:
    """Return why a new log can't begin at these levels; empty: it can."""
    for name, level in chosen.items():
        supported = known_levels(name)
        if supported is None:
            return f"there is no feature {name!r}; this build knows {', '.join(SUPPORTED)}"
        if level not in supported:
            return f"{described(name, level)}: this build supports {supported}"
    for (name, level), (other, needed) in NEEDS.items():
        have = chosen.get(other, SUPPORTED[other].high)
        if chosen.get(name, 0) >= level and have < needed:
            return f"{described(name, level)} needs {described(other, needed)}, not {have}"
    return ""


def unknown_level(name: str, level: int) -> str:
    """Return why this build can't read a log from a feature level on; empty: it can."""
    supported = SUPPORTED.get(name)
    if supported is None or level <= supported.high:
        return ""
    return (
        f"the log is at feature level {name} {level} from here on, and this build knows levels up "
        f"to {supported.high}: a newer release wrote the log. Run a build that supports "
        f"{name} {level} on this node; `logberg features list` on a running node shows which do"
    )
