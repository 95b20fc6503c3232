"""The way back of a node whose journal was damaged.

Rule: it may have lost entries that it acknowledged and votes that it cast, so until it is
repaired it neither votes nor is counted. In one round of questions, asked by this
process, *every* other voter says its term; the highest bounds any vote that was forgotten, since a
candidate's own term is durable before it asks. Each has also said what it remembers of us, for
the incarnation that the repair begins has to be named above all of that (`quorum.journal.lineage`).
Once a leader of at least that term has brought us up to the last index that it named in the same
round, nothing we ever acknowledged can be missing from what we hold, and we vote again, in later
terms only.

While a change of the voters is not known to be committed, the members of both sets are asked, for
either may still elect somebody.

Why every voter, not a majority: the candidate that has our forgotten vote may be the one left
out, and a second vote in its term would make two leaders.
"""

from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.journal.lineage import DRAWN_BYTES
from quorum.journal.opening import UNKNOWN_VOTE
from quorum.raft.core import Core
from quorum.wire.frames import FrameKind


class Repair:
    """The repair of this node. Idle while the journal is sound."""

    def __init__(self, context: NodeContext) -> None:
        self._context = context
        self._round = context.random.getrandbits(60)
        self._answers: dict[int, tuple[int, int]] = {}
        self._target: tuple[int, int] | None = None
        self._asked_at = -1e9

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    @property
    def needed(self) -> bool:
        """Whether we are a voter whose journal is damaged."""
        return bool(self._context.journal.damage) and self._context.voters.we_vote

    def on_tick(self) -> None:
        """Ask every voter, once per election timeout, until a round is complete."""
        context = self._context
        if not self.needed or context.now - self._asked_at < context.config.election_timeout_s:
            return
        if self._target is not None and self._target[0] == context.term:
            return
        self._asked_at = context.now
        self._round += 1
        self._answers.clear()
        self._target = None
        for replica in context.replicas.linked_voters():
            context.outbox.send(replica.node_id, FrameKind.PROBE, context.term, self._round)

    def on_answer(self, replica: PeerReplica, term: int, number: int, last_index: int) -> None:
        """Take a voter's term and last index."""
        context = self._context
        if not self.needed or number != self._round or not replica.is_voter:
            return
        self._answers[replica.node_id] = (term, last_index)
        leader = self._core.leader
        if leader is None or not context.others_that_may_vote <= self._heard():
            return
        highest = max(term for term, _ in self._answers.values())
        leaders_term, leaders_last = self._answers.get(leader.node_id, (-1, 0))
        if leaders_term == context.term and leaders_term >= highest:
            self._target = (leaders_term, leaders_last)

    def _heard(self) -> set[int]:
        """The voters that answered in this round and told us what they remember of us."""
        return self._answers.keys() & self._context.compared

    def on_matched(self, term: int, index: int) -> None:
        """Finish the repair if our log, matched up to `index`, reaches the target."""
        context = self._context
        if not self.needed or self._target is None:
            return
        target_term, target = self._target
        if term != target_term or index < target or context.view.durable < target:
            return
        self._target = None
        # The forgotten vote may be one of this very term.
        context.no_vote_up_to = term
        context.journal.set_term(term, UNKNOWN_VOTE)
        context.repairs.append(f"journal repaired in epoch {term}: {context.journal.damage}")
        context.journal.history.repaired(context.random.randbytes(DRAWN_BYTES))
        context.log.info("journal_repaired", epoch=term, index=index)
