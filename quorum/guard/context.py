"""What the parts of one node share.

Rule: a part keeps its own state and finds the others' here. Nobody but the node itself calls the
listener or schedules a turn; parts ask for a turn by `wake`.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from quorum.api import QuorumListener
from quorum.config import QuorumConfig
from quorum.guard.outbox import Outbox
from quorum.guard.replicas import PeerReplicas
from quorum.journal import LogView, RaftJournal
from quorum.membership.formation import Formation
from quorum.raft.core import Core
from runtime.clock import Clock
from runtime.disk import Disk
from runtime.links import PeerLinks

if TYPE_CHECKING:
    from runtime.randomness import Random


class BrokenPromiseError(Exception):
    """Something that can't happen has: the node stops; the message says what."""


@dataclass
class NodeContext:
    """One node, seen by its parts."""

    config: QuorumConfig
    clock: Clock
    random: "Random"
    disk: Disk
    links: PeerLinks
    listener: QuorumListener
    log: FilteringBoundLogger
    journal: RaftJournal
    formation: Formation
    outbox: Outbox
    view: LogView
    wake: Callable[[], None]
    replicas: PeerReplicas = field(default_factory=PeerReplicas)
    core: Core | None = None
    """None until the voters are known."""
    stopped: bool = False
    no_vote_up_to: int = -1
    """Terms in which a vote may have been forgotten (see `quorum.guard.repair`)."""
    silent_until: float = 0.0
    """Until then a peer that remembers more of us than we do may still turn up."""
    compared: set[int] = field(default_factory=set)
    """Voters that told us, in this incarnation, what they remember of us (`quorum.guard.memory`).
    """
    repairs: list[str] = field(default_factory=list)
    """Of the journal in this incarnation, a sentence each."""
    disk_is_stuck: bool = False
    counters: dict[str, int] = field(default_factory=dict)
    """What was refused, by reason."""

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.monotonic()

    @property
    def term(self) -> int:
        """The current term; the stamp of what we send."""
        return self.core.term if self.core is not None else self.journal.term

    @property
    def may_vote(self) -> bool:
        """Whether this node's voice counts: a pinned voter with a sound journal."""
        return self.formation.we_vote and self.is_counted

    @property
    def is_counted(self) -> bool:
        """Whether what we acknowledge counts: our journal is sound as far as anyone can tell.

        After a repair: once that is durable, and durably said to be.
        """
        journal = self.journal
        return not journal.damage and journal.repair_is_noted and self._is_compared()

    def _is_compared(self) -> bool:
        if self.now >= self.silent_until:
            return True
        return self.other_voters <= self.compared

    @property
    def other_voters(self) -> set[int]:
        """Node ids of all voters but us."""
        return self.formation.pinned.keys() - {self.config.node_id}

    @property
    def may_lead(self) -> bool:
        """Whether this node could serve as leader: its disk answers and has room."""
        return not self.disk_is_stuck and self.journal.has_room

    def count(self, reason: str) -> None:
        """Count something that was refused."""
        self.counters[reason] = self.counters.get(reason, 0) + 1
