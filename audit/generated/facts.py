"""What happened in a generated history that is worth finding again: the answers to a test.

Rule: a fact is noted when its batch is sealed, so offsets and times are those of the log.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

KINDS: Final = (
    "deployment",
    "broker_died",
    "broker_flapped",
    "broker_replaced",
    "rack_outage",
    "session_lost",
    "isr_storm",
    "controller_failover",
    "unclean_election",
    "leaderless",
    "acl",
    "intrusion",
    "scram",
    "feature",
    "upgrade",
    "transaction_ended",
    "transaction_aborted",
    "transaction_discarded",
    "transaction_open",
)


class Fact(NamedTuple):
    """One thing that happened; what has no end (yet) has None there."""

    kind: str
    """One of KINDS."""
    subject: str
    """`broker:3`, `topic:orders-7` (a partition) …: what it happened to."""
    from_offset: int
    """Of the first record, or of the first batch where many are meant."""
    until_offset: int | None
    """End offset of the last batch; for `leaderless` the base offset of the batch that ended it."""
    from_ms: int
    until_ms: int | None
    principal: str
    """Who did it; `Controller:…` for what the cluster did itself."""
    sentence: str
    """For people; empty where there are too many of the kind to tell."""


class GeneratedHistory(NamedTuple):
    """A history on disk, and what is in it."""

    folder: Path
    nodes: tuple[Path, ...]
    """One folder a controller; they are equal."""
    cluster_id: str
    seed: int
    log_end: int
    head: bytes
    """Hash of the last batch."""
    batches: int
    segments: int
    checkpoints: tuple[int, ...]
    """Their offsets."""
    first_ms: int
    last_ms: int
    brokers: int
    topics: int
    partitions: int
    facts: tuple[Fact, ...]
    """In the order of the log; of a kind at most FACTS_PER_KIND."""

    def of(self, kind: str) -> tuple[Fact, ...]:
        """Return the facts of a kind."""
        assert kind in KINDS, kind
        return tuple(fact for fact in self.facts if fact.kind == kind)

    @property
    def story(self) -> tuple[str, ...]:
        """The history in sentences, in order."""
        return story(self.facts)


FACTS_PER_KIND: Final = 10_000


def story(facts: Iterable[Fact]) -> tuple[str, ...]:
    """Return the sentences of the facts that have one."""
    return tuple(fact.sentence for fact in facts if fact.sentence)
