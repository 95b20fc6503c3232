"""What the parts of one node share.

Rule: each part keeps its own state and finds the others' here. Only the node calls the listener
and schedules turns; a part asks for a turn by `wake`.
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
from quorum.membership.voter_history import VoterHistory
from quorum.raft.core import Core
from runtime.clock import Clock
from runtime.disk.interface import Disk
from runtime.links.interface import PeerLinks

if TYPE_CHECKING:
    from quorum.guard.heard_voters import HeardVoters
    from runtime.randomness import Random


class BrokenPromiseError(Exception):
    """A node has broken a promise, so this node stops. The message says which promise."""


@dataclass
class NodeContext:
    """The shared state of one node."""

    config: QuorumConfig
    clock: Clock
    random: "Random"
    disk: Disk
    links: PeerLinks
    listener: QuorumListener
    log: FilteringBoundLogger
    journal: RaftJournal
    formation: Formation
    voters: VoterHistory
    outbox: Outbox
    view: LogView
    wake: Callable[[], None]
    replicas: PeerReplicas = field(default_factory=PeerReplicas)
    heard_voters: "HeardVoters" = field(init=False)
    """Set by `quorum.guard.guard`."""
    core: Core | None = None
    """None until the voters are known."""
    stopped: bool = False
    no_vote_up_to: int = -1
    """Up to this term a vote of ours may be forgotten (see `quorum.guard.repair`)."""
    silent_until: float = 0.0
    """Until then we don't vote unless every voter has spoken (`quorum.guard.memory`)."""
    compared: set[int] = field(default_factory=set)
    """Voters that told us, in this incarnation, what they remember of us (`quorum.guard.memory`).
    """
    repairs: list[str] = field(default_factory=list)
    """The repairs of the journal in this incarnation, a sentence each."""
    disk_is_stuck: bool = False
    counters: dict[str, int] = field(default_factory=dict)
    """How many messages were refused, by reason."""

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.clock.monotonic()

    @property
    def term(self) -> int:
        """The current term, which every frame of ours carries."""
        return self.core.term if self.core is not None else self.journal.term

    @property
    def may_vote(self) -> bool:
        """Whether this node may stand and lead: it is a voter with a sound journal."""
        return self.voters.we_vote and self.is_counted

    @property
    def is_counted(self) -> bool:
        """Whether our acknowledgements count: our journal is sound as far as anyone can tell.

        After a repair they count once a durable frame says that the repair is durable.
        """
        journal = self.journal
        return not journal.damage and journal.history.repair_is_noted and self._is_compared()

    def _is_compared(self) -> bool:
        """Tell whether every other voter has spoken since the start, or E has passed.

        Without the wait, a peer that remembers a promise of ours could lose a race against peers
        that don't, and we would vote without knowing of it.
        """
        if self.now >= self.silent_until:
            return True
        return self.other_voters <= self.compared

    @property
    def other_voters(self) -> set[int]:
        """The node ids of all voters but us."""
        return self.voters.members.keys() - {self.config.node_id}

    @property
    def others_that_may_vote(self) -> set[int]:
        """The node ids of all but us in every set of voters that may be in force."""
        core = self.core
        if core is None or self.voters.newest_is_committed(core.commit_index):
            return self.other_voters
        sets = self.voters.unsettled(core.commit_index)
        return {node_id for one in sets for node_id in one.members} - {self.config.node_id}

    @property
    def may_lead(self) -> bool:
        """Whether this node can serve as leader: its disk answers and has room."""
        return not self.disk_is_stuck and not self.journal.lack_of_room

    def count(self, reason: str) -> None:
        """Count a refusal."""
        self.counters[reason] = self.counters.get(reason, 0) + 1
